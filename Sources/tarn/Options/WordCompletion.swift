import ArgumentParser
import Glibc
import TarnAgent
import TarnConfig
import TarnControl
import TarnCore
import TarnEngine
import TarnRuntime

extension CompletionKind {
  /// Names of mirrors, and directories.
  static let mirror = custom { WordCompletion($0, $1, $2).mirrors() }
  /// A feed may stand there as well.
  static let mirrorOrFeed = custom { WordCompletion($0, $1, $2).mirrors(withFiles: true) }
  /// A mirror, and behind it one of its paths.
  static let mirrorThenPath = custom { WordCompletion($0, $1, $2).mirrorThenPath() }
  /// `MIRROR`, `MIRROR:PATH`, `session:ID`.
  static let target = custom { WordCompletion($0, $1, $2).targets() }
  static let session = custom { WordCompletion($0, $1, $2).sessions() }
  /// What lies in the trash of the mirror in front.
  static let trashed = custom { WordCompletion($0, $1, $2).trashed() }
  /// A plan that the mirror in front holds.
  static let plan = custom { WordCompletion($0, $1, $2).plans() }
}

/// What a shell may complete a word with. It asks the settings, this user's list of mirrors and an agent, none of them for long, and
/// says nothing of what goes wrong.
struct WordCompletion {
  /// The words of the command line, the program first.
  let words: [String]
  /// Of the word that is completed.
  let index: Int
  /// That word, up to the cursor.
  let prefix: String
  let shell: CompletionShell?

  init(
    _ words: [String], _ index: Int, _ prefix: String, shell: CompletionShell? = CompletionShell.requesting
  ) {
    (self.words, self.index, self.shell) = (words, index, shell)
    self.prefix = index < words.count - 1 ? words[index] : prefix
  }

  func mirrors(withFiles: Bool = false) -> [String] {
    guard let session = known else { return [] }
    var found = isPath ? [] : names(session)
    if isPath || prefix.isEmpty { found += session.tarn.knownFolders().sorted() }
    if !prefix.isEmpty { found += entries(of: session.tarn.workingDirectory, prefix, files: withFiles) }
    return offer(found)
  }

  func mirrorThenPath() -> [String] {
    guard let mirror = positionals.first, let session = known else { return mirrors(withFiles: true) }
    return offer(paths(of: mirror, prefix, session))
  }

  func targets() -> [String] {
    guard let session = known else { return [] }
    // bash parts words at a colon, other shells do not.
    var (front, rest) = ("", prefix)
    if index >= 2, words.indices.contains(index), words[index - 1] == ":" {
      front = words[index - 2]
    } else if index >= 1, prefix == ":", words.indices.contains(index - 1) {
      (front, rest) = (words[index - 1], "")
    } else if let colon = prefix.firstIndex(of: ":") {
      let name = String(prefix[..<colon])
      rest = String(prefix[prefix.index(after: colon)...])
      let found = name == "session" ? ids(session) : paths(of: name, rest, session)
      return offer(found.map { "\(name):\($0)" })
    }
    guard front.isEmpty else {
      return offer(front == "session" ? ids(session) : paths(of: front, rest, session), matching: rest)
    }
    return offer(names(session) + ids(session).map { "session:\($0)" })
  }

  func sessions() -> [String] {
    guard positionals.isEmpty, let session = known else { return [] }
    return offer(ids(session))
  }

  func trashed() -> [String] {
    guard let session = known, let place = place(session) else { return [] }
    let rows = (try? session.tarn.trash(folder: place.folder, state: place.state)) ?? []
    return offer(rows.map { $0.path.printable })
  }

  func plans() -> [String] {
    guard let session = known, let place = place(session) else { return [] }
    let held = try? session.tarn.heldPaths(folder: place.folder, state: place.state, limit: 0)
    return offer(held.map { [$0.plan.id] } ?? [])
  }

  // MARK: Sources

  /// nil where nothing can be known, such as in a directory that is gone.
  private var known: Session? { try? Session(GivenWords(words)) }

  private var isPath: Bool { prefix.contains("/") || prefix.hasPrefix(".") || prefix.hasPrefix("~") }

  /// Those of the settings, and those of an agent.
  private func names(_ session: Session) -> [String] {
    let loaded = session.sources.checked()
    let agents = agent(session) { try $0.status(problemLimit: 0).mirrors.map(\.name) } ?? []
    return Array(Set(loaded.places.map(\.name) + agents)).sorted()
  }

  private func ids(_ session: Session) -> [String] {
    (agent(session) { try $0.sessions().sessions.map(\.id) } ?? []).sorted()
  }

  /// A person waits for the answer.
  private func agent<Answer>(_ session: Session, _ body: (ControlClient) throws -> Answer) -> Answer? {
    var link = AgentLink(session.sources)
    link.limits.connecting = .milliseconds(200)
    link.limits.telling = .milliseconds(500)
    return try? link.tryAsking(body)
  }

  /// The mirror in front of the word.
  private func place(_ session: Session) -> (folder: String, state: String?)? {
    positionals.first.map { word in
      session.names.settingsPlace(of: word) ?? (session.tarn.absolute(Self.expanded(word, session)), nil)
    }
  }

  /// What lies in a mirror's folder, and the paths that something is wrong with.
  private func paths(of mirror: String, _ prefix: String, _ session: Session) -> [String] {
    let place = session.names.settingsPlace(of: mirror)
    let folder = place?.folder ?? session.tarn.absolute(Self.expanded(mirror, session))
    let status = try? session.tarn.status(folder: folder, state: place?.state, problemLimit: 100)
    return entries(of: folder, prefix, files: true) + (status?.problems.map(\.path) ?? [])
  }

  /// The names in a directory that a path's front leads to, each with that front.
  private func entries(of base: String, _ prefix: String, files: Bool) -> [String] {
    let front = prefix.lastIndex(of: "/").map { String(prefix[...$0]) } ?? ""
    let start = prefix.dropFirst(front.count)
    let home = environment("HOME") ?? ""
    let place = front.hasPrefix("~/") ? home + front.dropFirst() : front
    let directory = place.hasPrefix("/") ? place : "\(base)/\(place)"
    guard let names = try? DiskSettings().names(in: directory).names else { return [] }
    return names.sorted().prefix(Self.mostEntries).compactMap { name in
      guard name.hasPrefix(start), name != ".", name != "..", !name.hasPrefix(".") || start.hasPrefix(".")
      else {
        return nil
      }
      let isDirectory = TextFile.isDirectory("\(directory)/\(name)")
      guard files || isDirectory else { return nil }
      // bash puts the slash itself.
      return front + name + (isDirectory && shell != .bash ? "/" : "")
    }
  }

  private static func expanded(_ word: String, _ session: Session) -> String {
    guard word.hasPrefix("~/"), let home = session.tarn.homeDirectory else { return word }
    return home + word.dropFirst()
  }

  private static let mostEntries = 5000

  // MARK: Words

  /// Words before this one that are neither commands nor options.
  private var positionals: [String] {
    var type: any ParsableCommand.Type = Root.self
    var found: [String] = []
    var isValue = false
    for word in words.prefix(index).dropFirst() {
      if isValue {
        isValue = false
      } else if word.hasPrefix("-") {
        isValue = Self.valued.contains(word)
      } else if found.isEmpty,
        let next = type.configuration.subcommands.first(where: { $0.configuration.commandName == word })
      {
        type = next
      } else {
        found.append(word)
      }
    }
    return found
  }

  /// Options of the commands that ask here whose value is the next word.
  private static let valued: Set = [
    "--config", "--socket", "--color", "--state", "--to", "--priority", "--url", "--header-file", "--after",
    "--settings", "--transfers", "-N",
  ]

  /// Once each, as the shell takes them: what does not print is left out.
  private func offer(_ words: [String], matching prefix: String? = nil) -> [String] {
    let prefix = prefix ?? self.prefix
    var seen: Set<String> = []
    return words.filter { word in
      word.hasPrefix(prefix) && Printable.escape(word) == word && seen.insert(word).inserted
    }.map(written)
  }

  /// bash expands what compgen is given: `$(rm x)` in the name of a file would be carried out. zsh takes a colon for the beginning of a
  /// description.
  private func written(_ word: String) -> String {
    if shell == .bash { return Self.escaped(word) }
    return shell == .zsh ? word.replacing("\\", with: "\\\\").replacing(":", with: "\\:") : word
  }

  private static func escaped(_ word: String) -> String {
    var text = ""
    for character in word {
      let isPlain = character.isLetter || character.isNumber || "/._-+:,@%=".contains(character)
      let isTilde = character == "~" && word.first != "~"
      if !isPlain, !isTilde { text.append("\\") }
      text.append(character)
    }
    return text
  }
}

/// The options among the words of an unfinished command line that say which settings and which agent are meant.
private struct GivenWords: CommonValues {
  let json = true
  let quiet = true
  let verbose = false
  let color = ColorChoice.never
  let noInput = true
  let yes = false
  let config: String?
  let socket: String?

  init(_ words: [String]) {
    func value(_ option: String) -> String? {
      for (word, next) in zip(words, words.dropFirst()) where word == option && !next.isEmpty { return next }
      return words.first { $0.hasPrefix("\(option)=") }.map { String($0.dropFirst(option.count + 1)) }
    }
    (config, socket) = (value("--config"), value("--socket"))
  }
}
