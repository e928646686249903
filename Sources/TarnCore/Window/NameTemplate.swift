/// How the files of a window are named (`--template`): text with fields in braces, `/` makes directories.
package struct NameTemplate: Sendable, Equatable {
  package enum Field: String, Sendable, CaseIterable {
    /// `2026-11-21`: the day of the item in UTC; nothing when it has none.
    case date
    case title
    /// Without a dot.
    case ext
    /// Eight hexadecimal digits of the item's identity.
    case id8
    /// The last segment of the URL's path, without its extension.
    case name
  }

  private enum Part: Sendable, Equatable {
    case text([UInt8])
    case field(Field)
  }

  /// decisions.md: RSS names.
  package static let standard = NameTemplate(parts: [
    .field(.date), .text(Array(" ".utf8)), .field(.title), .text(Array(".".utf8)), .field(.ext),
  ])

  private let parts: [Part]

  private init(parts: [Part]) {
    self.parts = parts
  }

  /// - Returns: nil for an unknown field, a lone brace, a path that is absolute or has an empty, `.` or `..` segment, and a text without any of `{title}`,
  ///   `{name}` and `{id8}`, which would give every file one name.
  package init?(_ text: String) {
    var parts: [Part] = []
    var rest = Array(text.utf8)[...]
    while let first = rest.first {
      if first == UInt8(ascii: "{") {
        guard let end = rest.firstIndex(of: UInt8(ascii: "}")),
          let field = Field(rawValue: String(decoding: rest[(rest.startIndex + 1)..<end], as: UTF8.self))
        else { return nil }
        parts.append(.field(field))
        rest = rest[(end + 1)...]
      } else {
        let plain = rest.prefix { $0 != UInt8(ascii: "{") }
        guard !plain.contains(UInt8(ascii: "}")) else { return nil }
        parts.append(.text(Array(plain)))
        rest = rest[plain.endIndex...]
      }
    }
    let isTelling = [Field.title, .name, .id8].contains { parts.contains(.field($0)) }
    let segments = text.split(separator: "/", omittingEmptySubsequences: false)
    guard !segments.contains(where: { ["", ".", "..", ".tarn"].contains($0) }) else { return nil }
    guard isTelling, text.utf8.first != UInt8(ascii: "/"), !text.utf8.contains(0) else { return nil }
    self.parts = parts
  }

  /// What a template can be made of, for a message.
  package static var help: String {
    "text with " + Field.allCases.map { "{\($0.rawValue)}" }.joined(separator: ", ")
      + " in it, one of {title}, {name} and {id8} at least"
  }

  /// Bytes of a segment, so that ` [12345678]` can still be put in.
  private static let longest = PathRule.maximumSegment - 11

  /// The path for one file; every value is made safe first.
  ///
  /// - Parameter mark: put in brackets before the extension, so that two names differ.
  package func path(_ values: FileNaming, mark: [UInt8]? = nil) -> [UInt8] {
    var path: [UInt8] = []
    for part in parts {
      switch part {
      case .text(let text): path += text
      case .field(let field): path += values[field]
      }
    }
    let segments = path.split(separator: UInt8(ascii: "/"))
    return segments.indices.map { index in
      let isLast = index == segments.count - 1
      let tidy = FileNaming.tidy(segments[index])
      guard isLast else { return FileNaming.cut(tidy, to: Self.longest) }
      let suffix = tidy.hasSuffix([UInt8(ascii: ".")] + values[.ext]) ? values[.ext].count + 1 : 0
      let stem = FileNaming.cut(FileNaming.tidy(tidy.dropLast(suffix)), to: Self.longest - suffix)
      let marked = mark.map { stem + Array(" [".utf8) + $0 + Array("]".utf8) } ?? stem
      return (marked.isEmpty ? values[.id8] : marked) + tidy.suffix(suffix)
    }.joined(separator: [UInt8(ascii: "/")]).map { $0 }
  }
}

extension [UInt8] {
  fileprivate func hasSuffix(_ other: [UInt8]) -> Bool { suffix(other.count).elementsEqual(other) }
}
