internal import FoundationEssentials

/// Reads and writes JSON for people and programs, with sorted keys.
package enum JSONText {
  /// Returns the JSON in one line.
  package static func line(_ value: some Encodable) -> String {
    text(value, [.sortedKeys, .withoutEscapingSlashes])
  }

  /// Returns a document over several lines.
  package static func document(_ value: some Encodable) -> String {
    text(value, [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted])
  }

  /// Encodes a value. This fails only for numbers that are not finite, which no document has.
  private static func text(_ value: some Encodable, _ format: JSONEncoder.OutputFormatting) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = format
    guard let data = try? encoder.encode(value) else { return "{}" }
    return String(decoding: data, as: UTF8.self)
  }

  /// - Returns: `nil` for text that is not JSON of that type. Unknown keys are ignored.
  package static func value<Value: Decodable>(_ type: Value.Type, from text: String) -> Value? {
    try? JSONDecoder().decode(type, from: Data(text.utf8))
  }
}
