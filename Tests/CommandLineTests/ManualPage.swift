import Foundation

/// A page of packaging/man, as far as the tests look into it.
struct ManualPage {
  /// An item of a list: what it is of, and its text.
  struct Item {
    /// `Sh` and `Ss` above it; the second is empty where there is none.
    var section: String
    var part: String
    /// Words of the item itself, after `Cm` or without a macro.
    var names: [String]
    /// Options of the item, and what they take.
    var flags: [String] = []
    var value: String?
    var text = ""
  }

  /// An option, and the section that names it.
  struct Flag: Hashable {
    var section: String
    var name: String
  }

  static let directory = Documents.root.appendingPathComponent("packaging/man")

  /// `tarn-sync.1`.
  let file: String
  /// What the page is of: `tarn-sync`, `tarn-plan`.
  private(set) var names: [String] = []
  private(set) var items: [Item] = []
  private(set) var flags: Set<Flag> = []
  /// Displays below EXAMPLES, line by line.
  private(set) var examples: [String] = []
  /// Displays elsewhere.
  private(set) var displays: [String] = []
  /// What stands in quotes: `tarn status --json`.
  private(set) var quoted: [String] = []

  /// Pages that stand by themselves.
  static let all: [ManualPage] = files.compactMap { file in
    guard target(of: file) == nil, let text = try? text(file) else { return nil }
    return ManualPage(file, text)
  }

  /// All files, links to another one as well.
  static let files: [String] =
    ((try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []).sorted()

  static func text(_ file: String) throws -> String {
    try String(contentsOf: directory.appendingPathComponent(file), encoding: .utf8)
  }

  static func named(_ file: String) throws -> ManualPage { ManualPage(file, try text(file)) }

  /// `tarn-sync.1` of a link to that file.
  static func target(of file: String) -> String? {
    try? FileManager.default.destinationOfSymbolicLink(atPath: directory.appendingPathComponent(file).path)
  }

  var section: String { String(file.suffix(1)) }

  func items(_ section: String, _ part: String? = nil) -> [Item] {
    items.filter { $0.section == section && (part == nil || $0.part == part) }
  }

  /// Names of the items of a section, sorted.
  func words(_ section: String, _ part: String? = nil) -> [String] {
    items(section, part).flatMap(\.names).sorted()
  }

  init(_ file: String, _ source: String) {
    self.file = file
    var (section, part, display): (String, String, Bool) = ("", "", false)
    for line in source.split(separator: "\n", omittingEmptySubsequences: false) {
      let words = line.split(separator: " ").map { Self.plain(String($0)) }
      let rest = words.dropFirst().joined(separator: " ")
      switch words.first {
      case ".Bd": display = true
      case ".Ed": display = false
      case _ where display:
        displays.append(Self.plain(String(line)))
        guard section == "EXAMPLES", let shown = displays.last else { break }
        if let last = examples.last, last.hasSuffix("\\") {
          // A command goes on in the next line.
          examples[examples.count - 1] = String(last.dropLast()) + shown
        } else {
          examples.append(shown)
        }
      case ".Sh": (section, part) = (rest, "")
      case ".Ss": part = rest
      case ".It": items.append(Self.item(words, section, part))
      case ".Nm" where section == "NAME": names += words.dropFirst().filter { $0 != "," }
      default:
        if words.first == ".Ql" { quoted.append(Self.withoutPunctuation(words.dropFirst())) }
        if !items.isEmpty, items[items.count - 1].section == section, items[items.count - 1].part == part {
          items[items.count - 1].text += " " + words.joined(separator: " ")
        }
      }
      guard !display, words.first?.hasPrefix(".") == true else { continue }
      for name in Self.flags(words) { flags.insert(Flag(section: section, name: name)) }
    }
  }

  private static func item(_ words: [String], _ section: String, _ part: String) -> Item {
    var item = Item(section: section, part: part, names: [], flags: flags(words))
    let rest = words.dropFirst()
    if let value = rest.firstIndex(of: "Ar"), value + 1 < words.count, !item.flags.isEmpty {
      item.value = words[value + 1]
    }
    guard item.flags.isEmpty else { return item }
    var name: [String] = []
    for word in rest + [","] {
      if word == "," {
        if !name.isEmpty { item.names.append(name.joined(separator: " ")) }
        name = []
      } else if !["Cm", "Ar", "Ev", "Pa"].contains(word) {
        name.append(word)
      }
    }
    return item
  }

  /// Those behind `Fl`, with their dashes.
  private static func flags(_ words: [String]) -> [String] {
    words.indices.dropLast().compactMap { index in
      guard words[index] == "Fl" || words[index] == ".Fl" else { return nil }
      return "-" + words[index + 1]
    }
  }

  private static func withoutPunctuation(_ words: ArraySlice<String>) -> String {
    var words = Array(words)
    while let last = words.last, last.count == 1, ".,:;)?!".contains(last) { words.removeLast() }
    if words.first == "(" { words.removeFirst() }
    return words.joined(separator: " ")
  }

  /// Without the escapes of roff.
  private static func plain(_ text: String) -> String {
    var text = text
    for (escape, character) in [
      ("\\-", "-"), ("\\(aq", "'"), ("\\(dq", "\""), ("\\(ti", "~"), ("\\(ha", "^"), ("\\(ga", "`"),
      ("\\&", ""), ("\\:", ""), ("\\e", "\\"),
    ] {
      text = text.replacingOccurrences(of: escape, with: character)
    }
    return text
  }
}
