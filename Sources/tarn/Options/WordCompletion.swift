import ArgumentParser
import Glibc
import TarnAgent
import TarnConfig
import TarnControl
import TarnCore
import TarnEngine
import TarnRuntime

extension CompletionKind {
  /// Completes names of mirrors, and directories.
  static let mirror = custom { WordCompletion($0, $1, $2).mirrors() }
  /// Completes names of mirrors in the settings, and directories.
  static let configuredMirror = custom { WordCompletion($0, $1, $2).configuredMirrors() }
  /// Completes names of mirrors, and files for a feed.
  static let mirrorOrFeed = custom { WordCompletion($0, $1, $2).mirrors(withFiles: true) }
  /// Completes a mirror, and after it one of its paths.
  static let mirrorThenPath = custom { WordCompletion($0, $1, $2).mirrorThenPath() }
  /// Completes `MIRROR`, `MIRROR:PATH` and `session:ID`.
  static let target = custom { WordCompletion($0, $1, $2).targets() }
  static let session = custom { WordCompletion($0, $1, $2).sessions() }
  /// Completes a session as the value of an option, wherever it stands.
  static let sessionOption = custom { WordCompletion($0, $1, $2).allSessions() }
  /// Completes files in the trash of the mirror before the word.
  static let trashed = custom { WordCompletion($0, $1, $2).trashed() }
  /// Completes the held plan of the mirror before the word.
  static let plan = custom { WordCompletion($0, $1, $2).plans() }
}

/// The words with which a shell may complete a word. It asks the settings, this user's list of mirrors and an
/// agent, each only briefly, and reports no errors.
struct WordCompletion {
  /// The words of the command line, the program first.
  let words: [String]
  /// The index of the word that is completed.
  let index: Int
  /// That word, up to the cursor, without quoting.
  let prefix: String
  let shell: CompletionShell?
  /// How the word is quoted; only bash gives words as they were typed.
  private let quoting: BashWord.Quoting

  init(
    _ words: [String], _ index: Int, _ prefix: String, shell: CompletionShell? = CompletionShell.requesting
  ) {
    let word = BashWord(index < words.count - 1 ? words[index] : prefix)
    (self.index, self.shell) = (index, shell)
    self.words = shell == .bash ? words.map { BashWord($0).text } : words
    self.prefix = shell == .bash ? word.text : word.typed
    quoting = shell == .bash ? word.quoting : .plain(isHome: false)
  }

  func mirrors(withFiles: Bool = false) -> [String] {
    guard let session = known else { return [] }
    var found = isPath ? [] : names(session)
    if isPath || prefix.isEmpty { found += session.tarn.knownFolders().sorted() }
    if !prefix.isEmpty { found += entries(of: session.tarn.workingDirectory, prefix, files: withFiles) }
    return offer(found)
  }

  func configuredMirrors() -> [String] {
    guard !isPath else { return mirrors() }
    return known.map { offer($0.sources.checked().places.map(\.name).sorted()) } ?? []
  }

  func mirrorThenPath() -> [String] {
    guard let mirror = positionals.first, let session = known else { return mirrors(withFiles: true) }
    return offer(paths(of: mirror, prefix, session))
  }

  func targets() -> [String] {
    guard let session = known else { return [] }
    // bash splits words at a colon; other shells do not.
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
    positionals.isEmpty ? allSessions() : []
  }

  func allSessions() -> [String] {
    guard let session = known else { return [] }
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

  /// The session; `nil` when nothing can be known, such as in a directory that is gone.
  private var known: Session? { try? Session(GivenWords(words)) }

  private var isPath: Bool { prefix.contains("/") || prefix.hasPrefix(".") || prefix.hasPrefix("~") }

  /// Returns the names of mirrors in the settings and of an agent, which tells them to every user.
  private func names(_ session: Session) -> [String] {
    let loaded = session.sources.checked()
    let agents = (try? link(session).status(problemLimit: 0))?.mirrors.map(\.name) ?? []
    return Array(Set(loaded.places.map(\.name) + agents)).sorted()
  }

  private func ids(_ session: Session) -> [String] {
    ((try? link(session).tryAsking { try $0.sessions().sessions.map(\.id) }) ?? []).sorted()
  }

  /// An agent with short limits, for a person waits for the answer.
  private func link(_ session: Session) -> AgentLink {
    var link = AgentLink(session.sources)
    link.limits.connecting = .milliseconds(200)
    link.limits.telling = .milliseconds(500)
    return link
  }

  /// Returns the place of the mirror before the word.
  private func place(_ session: Session) -> (folder: String, state: String?)? {
    positionals.first.map { word in
      session.names.settingsPlace(of: word) ?? (session.tarn.absolute(Self.expanded(word, session)), nil)
    }
  }

  /// Returns the paths in a mirror's folder, and those with a problem.
  private func paths(of mirror: String, _ prefix: String, _ session: Session) -> [String] {
    let place = session.names.settingsPlace(of: mirror)
    let folder = place?.folder ?? session.tarn.absolute(Self.expanded(mirror, session))
    let status = try? session.tarn.status(folder: folder, state: place?.state, problemLimit: 100)
    return entries(of: folder, prefix, files: true) + (status?.problems.map(\.path) ?? [])
  }

  /// Returns the names in the directory that the front of a path names, each with that front.
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
      return front + name + (isDirectory ? "/" : "")
    }
  }

  private static func expanded(_ word: String, _ session: Session) -> String {
    guard word.hasPrefix("~/"), let home = session.tarn.homeDirectory else { return word }
    return home + word.dropFirst()
  }

  private static let mostEntries = 5000

  // MARK: Words

  /// The words before this one that are neither commands nor options.
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

  /// The options, of commands that use completion, whose value is the next word.
  private static let valued: Set = [
    "--config", "--socket", "--color", "--state", "--to", "--priority", "--url", "--header-file", "--after",
    "--settings", "--transfers", "-N",
  ]

  /// Returns each matching word once, in the form of the shell. Words that do not print are left out.
  private func offer(_ words: [String], matching prefix: String? = nil) -> [String] {
    let prefix = prefix ?? self.prefix
    var seen: Set<String> = []
    return words.filter { word in
      word.hasPrefix(prefix) && Printable.escape(word) == word && seen.insert(word).inserted
    }.compactMap(written)
  }

  /// Returns a word as the shell's script takes it. bash inserts it into the line as it is. zsh takes a colon
  /// for the start of a description.
  private func written(_ word: String) -> String? {
    if shell == .bash { return quoting.quote(word) }
    return shell == .zsh ? word.replacing("\\", with: "\\\\").replacing(":", with: "\\:") : word
  }
}

/// The options of an unfinished command line that choose the settings and the agent.
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
