internal import FoundationEssentials

/// JSON for people and programs, keys sorted.
package enum JSONText {
  /// One line.
  package static func line(_ value: some Encodable) -> String {
    text(value, [.sortedKeys, .withoutEscapingSlashes])
  }

  /// One document over several lines.
  package static func document(_ value: some Encodable) -> String {
    text(value, [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted])
  }

  /// Encoding fails only for numbers that are not finite, and no document has any.
  private static func text(_ value: some Encodable, _ format: JSONEncoder.OutputFormatting) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = format
    guard let data = try? encoder.encode(value) else { return "{}" }
    return String(decoding: data, as: UTF8.self)
  }

  /// - Returns: nil for what is no JSON of that type. Keys that it does not know are passed over.
  package static func value<Value: Decodable>(_ type: Value.Type, from text: String) -> Value? {
    try? JSONDecoder().decode(type, from: Data(text.utf8))
  }
}
