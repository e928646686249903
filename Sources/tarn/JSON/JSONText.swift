import FoundationEssentials
import TarnCore

enum JSONText {
  /// One line, keys sorted.
  static func line(_ value: some Encodable) -> String {
    text(value, [.sortedKeys, .withoutEscapingSlashes])
  }

  /// One document over several lines.
  static func document(_ value: some Encodable) -> String {
    text(value, [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted])
  }

  /// Encoding fails only for numbers that are not finite, and no document has any.
  private static func text(_ value: some Encodable, _ format: JSONEncoder.OutputFormatting) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = format
    guard let data = try? encoder.encode(value) else { return "{}" }
    return String(decoding: data, as: UTF8.self)
  }
}

/// A name in JSON: text that is safe to print, and the bytes themselves when that text is not them.
struct NameDocument {
  var path: String
  var pathBytes: String?

  init(_ bytes: [UInt8]) {
    path = Printable.escape(bytes)
    pathBytes = path.utf8.elementsEqual(bytes) ? nil : Base64.encode(bytes)
  }
}
