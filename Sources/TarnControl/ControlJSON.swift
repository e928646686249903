internal import FoundationEssentials
package import TarnCore

/// Encodes and decodes the JSON of the socket: UTF-8, sorted keys, one line.
package enum ControlJSON {
  /// - Throws: `ControlFailure` of kind `defect`. No document has a number that is not finite.
  package static func encode(_ value: some Encodable) throws(ControlFailure) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
      return Array(try encoder.encode(value))
    } catch {
      throw ControlFailure(.defect, code: "not-encodable", "the answer cannot be written as JSON")
    }
  }

  /// Decodes an answer for a client. Unknown keys are ignored, because the agent may be newer. Returns `nil` when the JSON does not
  /// fit.
  package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) -> Value? {
    try? JSONDecoder().decode(type, from: Data(bytes))
  }

  /// Decodes a request for a server. Unknown keys are refused, because they may matter.
  ///
  /// - Parameter keys: all keys that are accepted, as from `ControlRoute.keys(of:)`.
  package static func decode<Value: Decodable>(
    _ type: Value.Type, from bytes: [UInt8], taking keys: [String]
  ) throws(ControlFailure) -> Value {
    let data = Data(bytes)
    let hint = "taken are: \(keys.joined(separator: ", "))"
    do {
      let decoder = JSONDecoder()
      if let unknown = try decoder.decode(KeyPaths.self, from: data).paths.first(where: { !keys.contains($0) }
      ) {
        throw ControlFailure(
          .usage, code: "body-key-unknown",
          "the body has a key that is not known: \(Printable.escape(unknown))",
          hint: hint)
      }
      return try decoder.decode(type, from: data)
    } catch let failure as ControlFailure {
      throw failure
    } catch {
      throw ControlFailure(.usage, code: "body-malformed", fault(error), hint: hint)
    }
  }

  private static func fault(_ error: any Error) -> String {
    func name(_ path: [any CodingKey]) -> String {
      Printable.escape(path.map(\.stringValue).joined(separator: "."))
    }
    switch error {
    case DecodingError.keyNotFound(let key, let context):
      return "the body lacks \(name(context.codingPath + [key]))"
    case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context),
      DecodingError.dataCorrupted(let context):
      let place = name(context.codingPath)
      return place.isEmpty
        ? "the body is not a JSON object, or a number of it is out of range"
        : "the body's \(place) is not a value that is taken"
    default: return "the body is not a JSON object"
    }
  }
}

/// The keys of an object and of all objects nested in it, also in lists.
private struct KeyPaths: Decodable {
  private struct Key: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  var paths: [String] = []

  init(from decoder: any Decoder) throws {
    if var list = try? decoder.unkeyedContainer() {
      while !list.isAtEnd { paths += try KeyPaths(from: list.superDecoder()).paths }
      return
    }
    guard let object = try? decoder.container(keyedBy: Key.self) else { return }
    for key in object.allKeys {
      paths.append(key.stringValue)
      let inner = try KeyPaths(from: object.superDecoder(forKey: key))
      paths += inner.paths.map { "\(key.stringValue).\($0)" }
    }
  }
}
