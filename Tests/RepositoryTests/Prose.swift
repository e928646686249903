import Foundation

/// Text for people, split for the rules.
enum Prose {
  /// Sentences of a page, as numbers of words. Blocks of code and lists of topics have none.
  static func sentences(_ text: String) -> [Int] {
    var paragraphs = [""]
    for line in withoutCode(text) {
      let isEnd = line.isEmpty || ["#", "|", "- "].contains { line.hasPrefix($0) }
      if isEnd { paragraphs.append("") }
      guard !line.hasPrefix("#"), !line.hasPrefix("|-"), !line.isEmpty else { continue }
      if line.hasPrefix("|") {
        paragraphs += line.split(separator: "|").map(String.init)
      } else {
        paragraphs[paragraphs.count - 1] += " " + line
      }
    }
    return paragraphs.flatMap { paragraph in
      paragraph.components(separatedBy: ". ").map { $0.split(separator: " ").count }
    }.filter { $0 > 2 }
  }

  /// The words in backticks, each up to its first space.
  static func codes(_ text: String) -> [String] {
    withoutCode(text).split(whereSeparator: \.isEmpty).flatMap { paragraph in
      paragraph.joined(separator: " ").split(separator: "`", omittingEmptySubsequences: false).enumerated()
        .filter { $0.offset % 2 == 1 }.compactMap { $0.element.split(separator: " ").first.map(String.init) }
    }
  }

  /// The lines outside of blocks of code, which are empty here.
  private static func withoutCode(_ text: String) -> [Substring] {
    var isCode = false
    return text.split(separator: "\n", omittingEmptySubsequences: false).map { line -> Substring in
      if line.hasPrefix("```") {
        isCode.toggle()
        return ""
      }
      return isCode || line.hasPrefix("    ") ? "" : line
    }
  }
}

/// The pages about the code: ARCHITECTURE.md, and the decisions in the catalogs of the targets.
enum Documents {
  /// Those in the catalogs of the targets, and those in `packaging/Decisions`.
  static let decisions = ["Sources", "packaging"].flatMap { Repository.sources(in: $0, suffixes: [".md"]) }
    .filter { $0.path.contains("/Decisions/") }

  static func architecture() throws -> Repository.Source {
    Repository.Source(path: "ARCHITECTURE.md", text: try Repository.text("ARCHITECTURE.md"))
  }

  /// `UnnamedFiles.md`.
  static func fileName(_ page: Repository.Source) -> String {
    page.path.split(separator: "/").last.map(String.init) ?? ""
  }

  private static let parts = ["Question", "Choice", "Cost", "Status"]

  /// A page has a title, and under it the four parts in their order, none of them empty.
  static func form(_ page: Repository.Source) -> [String] {
    guard page.text.hasPrefix("# ") else { return ["\(page.path): the first line is no title"] }
    let sections = page.text.components(separatedBy: "\n## ").dropFirst().map {
      $0.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
    }
    guard sections.map({ String($0[0]) }) == parts else {
      return ["\(page.path): its parts are not \(parts.joined(separator: ", "))"]
    }
    return sections.filter { $0.count < 2 || $0[1].allSatisfy(\.isWhitespace) }
      .map { "\(page.path): nothing is under \($0[0])" }
  }

  /// What a page names as a place of the repository: a path from the top level or from `Sources`, or the name of a file alone.
  ///
  /// - Parameter files: all paths of the repository, with their directories.
  static func missingPaths(_ page: Repository.Source, files: Set<String>) -> [String] {
    let names = Set(files.compactMap { $0.split(separator: "/").last.map(String.init) })
    return Prose.codes(page.text).compactMap { code -> String? in
      let path = code.hasSuffix("/") ? String(code.dropLast()) : code
      guard let first = path.split(separator: "/").first.map(String.init) else { return nil }
      let isThere: Bool
      if path.hasPrefix("/") {
        return nil
      } else if path.contains("/") {
        guard topLevel.contains(first) || Rules.arrows[first] != nil else { return nil }
        isThere = files.contains(path) || files.contains("Sources/" + path)
      } else {
        guard endings.contains(where: { path.hasSuffix($0) }), !path.hasPrefix(".") else { return nil }
        isThere = names.contains(path)
      }
      return isThere ? nil : "\(page.path): \(code) is not in the repository"
    }
  }

  private static let topLevel: Set<String> = ["Sources", "Tests", "config", "packaging"]
  private static let endings = [".swift", ".c", ".cpp", ".h", ".py", ".sh", ".md"]

  /// Names of types, with or without a member, that no source has.
  static func missingNames(_ page: Repository.Source, words: Set<Substring>) -> [String] {
    Prose.codes(page.text).filter { code in
      code.first?.isUppercase == true && code.contains { $0.isLowercase }
        && code.allSatisfy { $0.isLetter || $0.isNumber || $0 == "." }
        && !endings.contains(where: { code.hasSuffix($0) })
    }.flatMap { code in
      code.split(separator: ".").filter { !words.contains($0) }
        .map { "\(page.path): no source has \($0) of \(code)" }
    }
  }

  /// The words of all sources and tests.
  static func words() -> Set<Substring> {
    var words: Set<Substring> = []
    for source in Repository.sources(in: "Sources") + Repository.sources(in: "Tests") {
      for word in source.text.utf8.split(whereSeparator: { !isOfWord($0) }) { words.insert(Substring(word)) }
    }
    return words
  }

  private static func isOfWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 0x80...:
      true
    default: false
    }
  }

  /// The targets of the table in ARCHITECTURE.md, each with what it may import.
  static func targets(_ text: String) -> [String: Set<String>] {
    let rows =
      text.components(separatedBy: "\n## Targets\n").dropFirst().first?
      .components(separatedBy: "\n## ").first?.split(separator: "\n").filter { $0.hasPrefix("| ") } ?? []
    return rows.dropFirst().reduce(into: [:]) { targets, row in
      let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      guard cells.count == 3 else { return }
      targets[cells[0]] = cells[2] == "none" ? [] : Set(cells[2].components(separatedBy: ", "))
    }
  }
}
