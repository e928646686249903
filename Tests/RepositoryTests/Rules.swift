/// The rules of the house as functions from text to complaints, so that each can be shown to fail.
enum Rules {
  /// What each target may import. ARCHITECTURE.md shows the same arrows.
  static let arrows: [String: Set<String>] = [
    "TarnCore": [],
    "TarnRuntime": ["TarnCore", "Glibc", "Dispatch", "FoundationEssentials"],
    "TarnSchedule": ["TarnCore"],
    "TarnCrypto": ["TarnCore", "CCrypto"],
    "TarnFeeds": ["TarnCore", "CXML", "CZlib", "Glibc"],
    "TarnTransfer": [
      "TarnCore", "TarnRuntime", "CurlShim", "CCurl", "Glibc", "DequeModule",
    ],
    "TarnFolder": ["TarnCore", "TarnRuntime", "TarnCrypto", "LinuxShim", "Glibc"],
    "TarnLedger": ["TarnCore", "TarnRuntime", "CSQLite", "HeapModule", "Glibc"],
    "TarnWatch": ["TarnCore", "TarnRuntime", "Glibc"],
    "TarnConfig": ["TarnCore", "TarnSchedule", "TOMLShim", "FoundationEssentials", "Glibc"],
    "TarnEngine": ["TarnCore", "TarnRuntime", "DequeModule"],
    "TarnControl": [
      "TarnCore", "TarnRuntime", "NIOCore", "NIOHTTP1", "NIOPosix", "FoundationEssentials", "Glibc",
    ],
    "TarnKit": ["TarnControl", "TarnCore", "TarnRuntime", "NIOCore", "NIOPosix", "Glibc"],
    "TarnKitTesting": [
      "TarnKit", "NIOConcurrencyHelpers", "NIOCore", "NIOHTTP1", "NIOPosix", "FoundationEssentials", "Glibc",
    ],
    "TarnServer": [
      "TarnControl", "TarnCore", "TarnRuntime", "HTTPTypes", "HummingbirdCore", "Logging", "NIOCore",
      "NIOHTTPTypes", "NIOPosix", "Glibc",
    ],
    "TarnAgent": [
      "TarnCore", "TarnRuntime", "TarnFeeds", "TarnTransfer", "TarnFolder", "TarnLedger", "TarnConfig",
      "TarnWatch", "TarnEngine", "TarnServer", "TarnSchedule", "TarnCrypto", "Logging", "Glibc",
    ],
    "tarn": [
      "TarnAgent", "TarnConfig", "TarnControl", "TarnCore", "TarnEngine", "TarnRuntime", "TarnSchedule",
      "ArgumentParser", "Logging",
      "FoundationEssentials", "Glibc",
    ],
  ]

  /// C modules, each for one Swift target.
  static let cModules: Set<String> = [
    "CurlShim", "CCurl", "LinuxShim", "CXML", "CZlib", "CCrypto", "CSQLite", "TOMLShim",
  ]

  /// Where code may vouch for what the compiler cannot see.
  static let mayVouch: Set<String> = ["TarnRuntime", "TarnFeeds", "TarnTransfer", "TarnFolder", "TarnLedger"]

  static let topLevel: Set<String> = [
    "Package.swift", "Sources", "Tests", "config", "packaging", "README.md", "ARCHITECTURE.md",
    "CHANGELOG.md", "LICENSE",
  ]

  // MARK: - Imports

  /// The module of an import line; nil for any other line.
  static func importedModule(_ line: Substring) -> String? {
    var words = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
    while let first = words.first, first.hasPrefix("@") || accessLevels.contains(first) {
      words.removeFirst()
    }
    guard words.first == "import", words.count > 1 else { return nil }
    let kinds: Set<String> = [
      "struct", "class", "enum", "protocol", "func", "var", "let", "typealias", "actor",
    ]
    let name = kinds.contains(words[1]) && words.count > 2 ? words[2] : words[1]
    return name.split(separator: ".").first.map(String.init)
  }

  private static let accessLevels: Set<String> = ["public", "package", "internal", "fileprivate", "private"]

  static func imports(_ file: Repository.Code) -> [String] {
    guard let allowed = arrows[file.target] else {
      return ["\(file.path): no arrows are known for \(file.target)"]
    }
    return file.code.compactMap(importedModule)
      .filter { !allowed.contains($0) }.map { "\(file.path): \(file.target) may not import \($0)" }
  }

  static func sharedModules(_ files: [Repository.Code]) -> [String] {
    var importers: [String: Set<String>] = [:]
    for file in files {
      for module in file.code.compactMap(importedModule)
      where cModules.contains(module) {
        importers[module, default: []].insert(file.target)
      }
    }
    return importers.filter { $0.value.count > 1 }.map { "\($0.key) is imported by \($0.value.sorted())" }
      .sorted()
  }

  /// What programs and their tests use. Their signatures show their own types only: they import all others internally, but for TarnKit.
  static let publicTargets: Set<String> = ["TarnKit", "TarnKitTesting"]

  private static func mayBePublic(_ line: Substring, of target: String) -> Bool {
    guard publicTargets.contains(target) else { return false }
    let module = importedModule(line)
    return module == nil || (module == "TarnKit" && target != "TarnKit")
  }

  // MARK: - Words

  static func words(_ file: Repository.Code) -> [String] {
    var complaints: [String] = []
    for (index, line) in file.code.enumerated() {
      for (word, why) in [
        ("public", "nothing is public here: package at most"),
        ("open", "nothing is public here: package at most"),
      ]
      where startsDeclaration(line, with: word)
        && !mayBePublic(line, of: file.target)
      {
        complaints.append("\(file.path):\(index + 1): \(why)")
      }
      for word in ["try!", "fatalError", "as!"] where contains(line, word: word) {
        complaints.append("\(file.path):\(index + 1): \(word)")
      }
    }
    return complaints
  }

  /// Declarations of the libraries for programs that have no comment for their users, cases of an enumeration as well.
  static func undocumented(_ file: Repository.Code) -> [String] {
    guard publicTargets.contains(file.target) else { return [] }
    return file.code.indices.compactMap { index in
      let line = file.code[index].drop { $0 == " " }
      let isPublic =
        startsDeclaration(line, with: "public") && importedModule(line) == nil
        && !line.hasPrefix("public extension ")
      // A pattern of a `switch` begins with a dot or with one of these words.
      let words = line.split(separator: " ")
      let isCase =
        words.first == "case" && words.count > 1 && words[1].first?.isLetter == true
        && !["let", "is", "nil"].contains(words[1])
      guard isPublic || isCase else { return nil }
      let above = file.lines[..<index].last { !$0.drop { $0 == " " }.hasPrefix("@") }?.drop { $0 == " " }
      return above?.hasPrefix("///") == true ? nil : "\(file.path):\(index + 1): without a comment"
    }
  }

  /// `@unchecked Sendable` and its kin: only where C is held, under a comment that says why.
  static func vouching(_ file: Repository.Code) -> [String] {
    var complaints: [String] = []
    for (index, line) in file.code.enumerated()
    where line.contains("@unchecked") || line.contains("nonisolated(unsafe)") {
      if !mayVouch.contains(file.target) {
        complaints.append("\(file.path):\(index + 1): \(file.target) may not vouch for concurrency")
      }
      let near = file.lines[max(0, index - 6)...min(index + 3, file.lines.count - 1)]
      if !near.contains(where: { $0.contains("Safe because") && $0.contains("//") }) {
        complaints.append("\(file.path):\(index + 1): without a comment that says `Safe because`")
      }
    }
    return complaints
  }

  /// Paths of the machine that something was written or built on.
  static func machinePaths(_ file: Repository.Source) -> [String] {
    let roots = ["work", "home", "root"].map { "/" + $0 + "/" }
    return file.lines.enumerated().compactMap { index, line in
      roots.contains(where: { line.contains($0) })
        ? "\(file.path):\(index + 1): names a path of a machine" : nil
    }
  }

  /// Comments that send the reader to a document that is not in the repository.
  static func citations(_ file: Repository.Source) -> [String] {
    file.lines.enumerated().compactMap { index, line in
      let words = line.drop { $0 == " " }
      guard ["//", "#", "\"\"\""].contains(where: { words.hasPrefix($0) }) else { return nil }
      let names = words.split { !$0.isLetter && !$0.isNumber && !"._-/".contains($0) }
      guard let name = names.first(where: { $0.hasSuffix(".md") && !documents.contains(String($0)) }) else {
        return nil
      }
      return "\(file.path):\(index + 1): \(name) is not in the repository"
    }
  }

  /// A decision is cited by the name of its page: `UnnamedFiles.md`.
  private static let documents = Set(
    ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "Tests/Benchmark/README.md", "packaging/INSTALL.md"]
      + Documents.decisions.map(Documents.fileName))

  // MARK: - Size

  static func size(_ file: Repository.Source, limit: Int) -> [String] {
    let count = file.lines.count - (file.text.hasSuffix("\n") ? 1 : 0)
    return count > limit ? ["\(file.path): \(count) lines, at most \(limit)"] : []
  }

  /// Functions and initializers longer than so many lines, from the line of `func` to its closing brace.
  static func longFunctions(_ file: Repository.Code, limit: Int) -> [String] {
    var complaints: [String] = []
    var open: [(line: Int, depth: Int)] = []
    var waiting: Int?
    var depth = 0
    for (index, line) in file.code.enumerated() {
      if beginsFunction(line) { waiting = index }
      for character in line {
        if character == "{" {
          if let start = waiting {
            open.append((start, depth))
            waiting = nil
          }
          depth += 1
        } else if character == "}" {
          depth -= 1
          if let last = open.last, last.depth == depth {
            open.removeLast()
            let length = index - last.line + 1
            if length > limit {
              complaints.append("\(file.path):\(last.line + 1): \(length) lines, at most \(limit)")
            }
          }
        }
      }
    }
    return complaints
  }

  private static func beginsFunction(_ line: Substring) -> Bool {
    let words = line.split(whereSeparator: { " \t".contains($0) })
    return words.contains {
      $0 == "func" || $0.hasPrefix("init(") || $0.hasPrefix("init?(") || $0.hasPrefix("init<")
    }
      && !line.contains(".init(") && !line.contains("self.init")
  }

  // MARK: - Text

  private static func startsDeclaration(_ line: Substring, with word: String) -> Bool {
    let declarations: Set<String> = [
      "func", "var", "let", "class", "struct", "enum", "protocol", "init", "extension", "typealias", "actor",
      "import",
      "static", "final", "subscript", "override", "convenience", "mutating",
    ]
    let words = line.split(whereSeparator: { " \t(".contains($0) }).map(String.init)
    guard let place = words.firstIndex(where: { $0 == word || $0.hasPrefix(word + "(") }) else {
      return false
    }
    return words[(place + 1)...].prefix(3).contains(where: { declarations.contains($0) })
      && words[..<place].allSatisfy { $0.hasPrefix("@") || declarations.contains($0) }
  }

  /// The word with nothing before it that could be part of a name.
  private static func contains(_ line: Substring, word: String) -> Bool {
    var rest = line
    while let range = rest.firstRange(of: word) {
      let before = range.lowerBound == rest.startIndex ? " " : rest[rest.index(before: range.lowerBound)]
      if !before.isLetter && !before.isNumber && before != "_" { return true }
      rest = rest[range.upperBound...]
    }
    return false
  }

  /// The same lines with comments and the contents of string literals blanked.
  static func withoutComments(_ text: String) -> String {
    var scanner = Scanner(text)
    return scanner.blanked()
  }
}

/// Walks Swift text far enough to tell code from comments and strings.
private struct Scanner {
  private let bytes: [UInt8]
  private var index = 0
  private var result: [UInt8] = []

  init(_ text: String) {
    bytes = Array(text.utf8)
    result.reserveCapacity(bytes.count)
  }

  private func starts(_ text: StaticString) -> Bool {
    text.withUTF8Buffer { bytes[index...].starts(with: $0) }
  }

  private mutating func blank(_ count: Int = 1) {
    for _ in 0..<count where index < bytes.count {
      result.append(bytes[index] == UInt8(ascii: "\n") ? bytes[index] : UInt8(ascii: " "))
      index += 1
    }
  }

  mutating func blanked() -> String {
    while index < bytes.count {
      if starts("//") {
        while index < bytes.count, bytes[index] != UInt8(ascii: "\n") { blank() }
      } else if starts("/*") {
        blankBlock()
      } else if starts("\"\"\"") {
        blankString(quotes: 3)
      } else if starts("\"") {
        blankString(quotes: 1)
      } else {
        result.append(bytes[index])
        index += 1
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  private mutating func blankBlock() {
    var depth = 0
    repeat {
      if starts("/*") {
        depth += 1
        blank(2)
      } else if starts("*/") {
        depth -= 1
        blank(2)
      } else {
        blank()
      }
    } while depth > 0 && index < bytes.count
  }

  /// Interpolations are blanked with the rest, but their parentheses are followed, for the strings inside them.
  private mutating func blankString(quotes: Int) {
    blank(quotes)
    while index < bytes.count {
      if starts("\\(") {
        blank(2)
        blankInterpolation()
      } else if starts("\\") {
        blank(2)
      } else if quotes == 3 ? starts("\"\"\"") : starts("\"") {
        blank(quotes)
        return
      } else if quotes == 1, starts("\n") {
        return
      } else {
        blank()
      }
    }
  }

  private mutating func blankInterpolation() {
    var depth = 1
    while index < bytes.count, depth > 0 {
      if starts("\"") {
        blankString(quotes: 1)
      } else {
        if starts("(") { depth += 1 }
        if starts(")") { depth -= 1 }
        blank()
      }
    }
  }
}
