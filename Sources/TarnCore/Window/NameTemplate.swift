/// The template for the names of a window's files (`--template`): text with fields in braces, where `/` makes directories.
///
/// A field without a value takes along what belongs to it: the letters that touch it, and the separator between it and the rest.
/// `S{season}E{episode} - {title}` becomes the title for an item without numbers.
package struct NameTemplate: Sendable, Equatable {
  package enum Field: String, Sendable, CaseIterable {
    /// The day of the item in UTC, such as `2026-11-21`; empty when it has none.
    case date
    case title
    /// The extension without a dot.
    case ext
    /// Eight hexadecimal digits of the item's identity.
    case id8
    /// The last segment of the URL's path, without its extension.
    case name
    /// The number of the season or the episode as the feed writes it; empty when it gives none.
    case season, episode
    /// The item's own identity; the same as `id8` when it has none.
    case guid
    /// The title of the feed.
    case feed
  }

  private enum Piece: Sendable, Equatable {
    case text([UInt8])
    case field(Field)
  }

  /// A part of a segment: adjoining pieces, with the blanks and punctuation before them. It is left out when it has fields and none
  /// of them has a value.
  private struct Group: Sendable, Equatable {
    var separator: [UInt8] = []
    var pieces: [Piece] = []

    func has(_ field: Field) -> Bool { pieces.contains(.field(field)) }

    func isLeftOut(_ values: FileNaming) -> Bool {
      let fields = pieces.compactMap { if case .field(let field) = $0 { field } else { nil } }
      return !fields.isEmpty && fields.allSatisfy { values[$0].isEmpty }
    }
  }

  /// The standard, `{date} {title}.{ext}`, without the date where an item has none.
  package static let standard = NameTemplate(segments: [
    [
      Group(pieces: [.field(.date)]), Group(separator: [0x20], pieces: [.field(.title)]),
      Group(separator: [0x2E], pieces: [.field(.ext)]),
    ]
  ])

  private let segments: [[Group]]
  /// True when the template names no extension, so that each file keeps its own.
  private let addsExt: Bool

  private init(segments: [[Group]]) {
    self.segments = segments
    addsExt = false
  }

  /// Reads a template. If its last name lacks `{ext}`, it is added, since a file without an extension has no kind.
  ///
  /// - Returns: `nil` for an unknown field, a lone brace, and a path that is absolute or has an empty, `.`, `..` or `.tarn`
  ///   segment. Also for a text without any of `{title}`, `{name}`, `{guid}` and `{id8}`, which would give every file the same
  ///   name.
  package init?(_ text: String) {
    guard Self.isPath(text), !text.utf8.contains(0) else { return nil }
    var segments: [[Group]] = []
    for name in text.split(separator: "/", omittingEmptySubsequences: false) {
      guard let groups = Self.groups(of: Array(name.utf8)) else { return nil }
      segments.append(groups)
    }
    let isTelling = [Field.title, .name, .guid, .id8].contains { field in
      segments.contains { $0.contains { $0.has(field) } }
    }
    guard isTelling, let last = segments.last else { return nil }
    addsExt = !last.contains { $0.has(.ext) }
    if addsExt {
      segments[segments.count - 1] = last + [Group(separator: [0x2E], pieces: [.field(.ext)])]
    }
    self.segments = segments
  }

  /// All fields, for people.
  package static var fields: String { Field.allCases.map { "{\($0.rawValue)}" }.joined(separator: " ") }

  private static func isPath(_ text: String) -> Bool {
    !text.split(separator: "/", omittingEmptySubsequences: false).contains {
      ["", ".", "..", ".tarn"].contains($0)
    }
  }

  /// Returns what is accepted in place of an invalid text.
  package static func help(for text: String) -> String {
    isPath(text) ? help : "a path below the mirror's folder: none of its names is empty, '.', '..' or '.tarn'"
  }

  /// The parts of a template, for a message.
  package static var help: String {
    "text with " + Field.allCases.map { "{\($0.rawValue)}" }.joined(separator: ", ")
      + " in it, one of {title}, {name}, {guid} and {id8} at least"
  }

  private static func groups(of text: [UInt8]) -> [Group]? {
    var groups: [Group] = []
    var isTouching = false
    func add(_ piece: Piece) {
      if !isTouching { if groups.last?.pieces.isEmpty != true { groups.append(Group()) } }
      groups[groups.count - 1].pieces.append(piece)
      isTouching = true
    }
    var rest = text[...]
    while let first = rest.first {
      let run: ArraySlice<UInt8>
      if first == UInt8(ascii: "{") {
        guard let end = rest.firstIndex(of: UInt8(ascii: "}")) else { return nil }
        run = rest[...end]
        guard let field = Field(rawValue: String(decoding: run.dropFirst().dropLast(), as: UTF8.self)) else {
          return nil
        }
        add(.field(field))
      } else {
        let isSeparator = separators.contains(first)
        run = rest.prefix { separators.contains($0) == isSeparator && $0 != 0x7B && $0 != 0x7D }
        guard !run.isEmpty else { return nil }
        if isSeparator { groups.append(Group(separator: Array(run))) } else { add(.text(Array(run))) }
        if isSeparator { isTouching = false }
      }
      rest = rest[run.endIndex...]
    }
    return groups
  }

  private static let separators = Array(" -_.,;:|+~".utf8)

  /// The most bytes of a segment, so that ` [12345678]` and an underscore still fit.
  private static let longest = PathRule.maximumSegment - 12

  /// Returns the path for one file. Every value is made safe first.
  ///
  /// - Parameter mark: text put in brackets before the extension, so that two names differ.
  package func path(_ values: FileNaming, mark: [UInt8]? = nil) -> [UInt8] {
    var path: [[UInt8]] = []
    for groups in segments.dropLast() {
      let name = FileNaming.tidy(Self.text(of: groups, values))
      if !name.isEmpty { path.append(values.portable(FileNaming.cut(name, to: Self.longest))) }
    }
    var last = Self.text(of: segments.last ?? [], values)
    let ending = [UInt8(ascii: ".")] + values[.ext]
    // `{title}.mp3` has the extension already.
    if addsExt, last.dropLast(ending.count).suffix(ending.count).elementsEqual(ending) {
      last.removeLast(ending.count)
    }
    let suffix = last.suffix(ending.count).elementsEqual(ending) ? ending.count : 0
    let stem = FileNaming.cut(FileNaming.tidy(last.dropLast(suffix)), to: Self.longest - suffix)
    let marked = mark.map { stem + Array(" [".utf8) + $0 + Array("]".utf8) } ?? stem
    path.append(values.portable((marked.isEmpty ? values[.id8] : marked) + last.suffix(suffix)))
    return Array(path.joined(separator: [UInt8(ascii: "/")]))
  }

  private static func text(of groups: [Group], _ values: FileNaming) -> [UInt8] {
    var text: [UInt8] = []
    for (index, group) in groups.enumerated() where !group.isLeftOut(values) {
      // The dot of an extension stays, whatever is left out before it.
      if index == 0 || !text.isEmpty || group.pieces == [.field(.ext)] { text += group.separator }
      for piece in group.pieces {
        switch piece {
        case .text(let plain): text += plain
        case .field(let field): text += values[field]
        }
      }
    }
    return text
  }
}
