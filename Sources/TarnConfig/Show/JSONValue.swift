internal import FoundationEssentials

/// A JSON value.
indirect enum JSONValue: Sendable, Encodable {
  case text(String)
  case number(Int64)
  case boolean(Bool)
  case list([JSONValue])
  case object([(String, JSONValue)])

  private struct Key: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  func encode(to encoder: any Encoder) throws {
    switch self {
    case .text(let text): try encoder.encode(text)
    case .number(let number): try encoder.encode(number)
    case .boolean(let value): try encoder.encode(value)
    case .list(let values): try encoder.encode(values)
    case .object(let members):
      var container = encoder.container(keyedBy: Key.self)
      for (name, value) in members { try container.encode(value, forKey: Key(stringValue: name)) }
    }
  }

  /// Returns the value as text over several lines, with members sorted by name.
  func written() -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
    // Encoding fails only for numbers that are not finite.
    guard let data = try? encoder.encode(self) else { return "{}" }
    return String(decoding: data, as: UTF8.self)
  }
}

extension Encoder {
  fileprivate func encode(_ value: some Encodable) throws {
    var container = singleValueContainer()
    try container.encode(value)
  }
}
