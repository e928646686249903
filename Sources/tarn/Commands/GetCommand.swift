import ArgumentParser
import TarnAgent
import TarnControl
import TarnCore
import TarnEngine
import TarnRuntime

/// The command `tarn get`.
struct GetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Download files.",
    usage: "tarn get [options] URL...",
    discussion: """
      Examples:
        tarn get https://example.org/debian.iso
        tarn get --to ~/Downloads/ --sha256 9f86d0... https://example.org/debian.iso
        tarn get -i urls.txt --to /srv/files/
        tarn get --background https://example.org/debian.iso   the agent does it

      A file appears under its name only when it is whole and has the digest that you gave. If a download is \
      interrupted, the same command resumes it.
      """)

  @Option(
    help: ArgumentHelp("Where the file goes: a path, or a folder.", valueName: "path"), completion: .file())
  var to: String?
  @Option(
    help: ArgumentHelp("The name of the file. Default: the one that the server suggests.", valueName: "name"))
  var name: String?
  @Option(help: ArgumentHelp("The SHA-256 of the file, in hexadecimal.", valueName: "hex")) var sha256:
    String?
  @Option(
    name: [.customShort("i"), .customLong("input")],
    help: ArgumentHelp("Download the URLs in this file, one per line.", valueName: "list"),
    completion: .file())
  var list: String?
  @Option(
    help: ArgumentHelp(
      "What to do if a file of that name exists: fail, replace or keep-both. Default: fail.",
      valueName: "what"), completion: .list(["fail", "replace", "keep-both"]))
  var existing: String?
  @Flag(name: [.customShort("p"), .long], help: "Create missing folders.") var makeDirectories =
    false
  @Option(
    name: [.customShort("N"), .long],
    help: ArgumentHelp("Run n transfers at a time, 1 to 64. Default: 4.", valueName: "n")
  )
  var transfers: Int?
  @Option(help: ArgumentHelp("Try n more times after a failure, 0 to 100. Default: 5.", valueName: "n"))
  var retries: Int?
  @Option(help: ArgumentHelp("Limit the rate, such as 2MiB/s.", valueName: "rate")) var limitRate: String?
  @Option(
    help: ArgumentHelp("Send the 'Name: value' lines of this file.", valueName: "file"), completion: .file())
  var headerFile: String?
  @Option(
    help: ArgumentHelp("Trust the certificate authorities in this PEM file.", valueName: "file"),
    completion: .file())
  var cacert: String?
  @Option(help: ArgumentHelp("Use a proxy: http://host:port or socks5h://host:port.", valueName: "url"))
  var proxy: String?
  @Flag(name: [.customShort("b"), .long], help: "Hand the download to the agent, and return.")
  var background = false
  @Option(
    help: ArgumentHelp("With --background: the session to use. Default: get.", valueName: "id"),
    completion: .sessionOption)
  var session: String?
  @Option(
    help: ArgumentHelp("high, normal or low, among the downloads of a session.", valueName: "priority"),
    completion: .list(["high", "normal", "low"]))
  var priority: String?
  @Option(help: ArgumentHelp("With --background: a text for those who read the session.", valueName: "text"))
  var label: String?
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("The URLs to download.", valueName: "url")) var urls: [String] = []

  func validate() throws {
    if urls.isEmpty, list == nil { throw ValidationError("a URL is expected: tarn get URL...") }
    for (option, value) in [("--to", to), ("--name", name), ("--input", list), ("--header-file", headerFile)]
    where value?.isEmpty == true {
      throw ValidationError("\(option) is empty: is a variable not set? '.' is the working directory")
    }
    if let sha256, digest == nil {
      throw ValidationError(
        "--sha256 takes 64 hexadecimal digits, with or without 'sha256:' in front, not '\(Printable.escape(sha256))'"
      )
    }
    if name != nil || sha256 != nil, urls.count != 1 || list != nil {
      throw ValidationError("--name and --sha256 are for one URL")
    }
    if let existing, TaskRequest.Existing(rawValue: existing) == nil {
      throw ValidationError("--existing takes fail, replace or keep-both")
    }
    if !background, session != nil || label != nil {
      throw ValidationError("--session and --label go with --background")
    }
    if background, let limitRate {
      throw ValidationError(
        "--limit-rate cannot be combined with --background: 'tarn limit \(Printable.escape(limitRate))' limits "
          + "the agent's sessions and mirrors together")
    }
    if background, cacert != nil || retries != nil || proxy != nil {
      throw ValidationError(
        "--cacert, --retries and --proxy cannot be combined with --background")
    }
    if let priority, TaskPriority(rawValue: priority) == nil {
      throw ValidationError("--priority takes high, normal or low")
    }
    if background, transfers != nil {
      throw ValidationError(
        "--transfers is one of the session's settings with --background: tarn session set -N N "
          + (session ?? Self.standardSession))
    }
    if let transfers, !(1...64).contains(transfers) {
      throw ValidationError("--transfers takes a number from 1 to 64")
    }
    if let retries, !(0...100).contains(retries) {
      throw ValidationError("--retries takes a number from 0 to 100")
    }
    try PassFlags.refuseDoubt(ofRate: limitRate)
  }

  func run() throws {
    let session = try Session(common)
    let tasks = try tasks(session)
    guard !tasks.isEmpty else {
      return session.say("the list names no URL: nothing is downloaded")
    }
    if background { return try handOver(tasks, session) }
    var request = GetRequest(tasks)
    request.transfers = transfers ?? request.transfers
    request.options = try options()
    try GetRun(session: session).run(request).end()
  }

  /// The id of the session when none is given.
  static let standardSession = "get"

  private func handOver(_ tasks: [TaskRequest], _ session: Session) throws {
    let id = self.session ?? Self.standardSession
    // The agent would tell the line of a batch, and nobody wrote lines.
    try session.tarn.refuseInvalid(tasks)
    warnOfMissingFolder(session)
    var added: [AddedTasks.Task] = []
    try AgentLink(session.sources).ask { client in
      _ = try client.openSession(id)
      for start in stride(from: 0, to: tasks.count, by: ControlRoute.mostTasks) {
        added += try client.add(
          Array(tasks[start..<min(tasks.count, start + ControlRoute.mostTasks)]), to: id
        ).tasks
      }
    }
    if session.isJSON { return session.console.data(JSONText.line(AddedTasks(added))) }
    if session.isQuiet { return }
    for (task, url) in zip(added, tasks.map(\.url)) {
      let was = task.wasThere ? ", was there" : ""
      session.console.data(
        "session:\(id)/\(task.number)  \(task.state.rawValue)\(was)  \(Printable.escape(url))")
    }
    session.say("next: \(session.tarn.command("session wait \(ShellWord.quote(id))"))")
  }

  /// Warns of a missing folder: the agent begins after this command has ended, and would tell nobody.
  private func warnOfMissingFolder(_ session: Session) {
    let place = destination(session)
    let folder = place.lastIndex(of: "/").map { String(place[...$0]) } ?? place
    guard !makeDirectories, !session.tarn.isThere(folder) else { return }
    session.say(
      session.messageStyle.paint("warning:", .warning)
        + " there is no folder \(ShellWord.quote(folder)), and the download fails; -p creates missing folders"
    )
  }

  /// Refuses what is no URL to download, with what may be meant.
  private static func refuse(_ url: String, _ session: Session) throws(PassFailure) {
    guard !url.isEmpty else {
      throw PassFailure(.usage, code: "empty-name", "a URL is empty", hint: "is a variable not set?")
    }
    do throws(TaskRequest.Refusal) {
      try TaskRequest.validate(url: url)
    } catch {
      let isURL = URLScheme.remotePrefixes.contains { url.lowercased().hasPrefix($0) }
      let isFolder =
        url.hasSuffix("/") && !url.contains(":") || TextFile.isDirectory(session.tarn.absolute(url))
      let hint: String? =
        if isURL {
          url.contains("@") ? "write it into a file that only you can read: --header-file FILE" : nil
        } else if isFolder {
          "to put the files into that folder: --to \(ShellWord.quote(url))"
        } else {
          "a URL begins with \(URLScheme.remotePrefixes.joined(separator: " or "))"
        }
      throw PassFailure(.usage, code: error.code, error.message, hint: hint)
    }
  }

  private func options() throws -> PassOptions {
    var values: [PassOptions.Name: [String]] = [:]
    values[.limitRate] = limitRate.map { [$0] }
    values[.cacert] = cacert.map { [$0] }
    values[.proxy] = proxy.map { [$0] }
    values[.retries] = retries.map { [String($0)] }
    return PassOptions(values: values)
  }

  private func tasks(_ session: Session) throws -> [TaskRequest] {
    let headers = try headerFile.map(session.tarn.headers)
    let listed = try list.map { try URLList(session.text(of: $0, option: "--input"), name: $0).urls } ?? []
    let all = urls + listed
    for url in all { try Self.refuse(url, session) }
    let place = destination(session)
    if all.count > 1, !place.hasSuffix("/"), existing != TaskRequest.Existing.keepBoth.rawValue {
      throw PassFailure(
        .usage, code: "one-place",
        "--to \(ShellWord.quote(to ?? place)) is the place of one file, and "
          + "\(Numbers.count(all.count, "URL")) are given",
        hint: "a folder ends with '/'; --existing keep-both gives the others names with numbers")
    }
    return all.map { url in
      var task = TaskRequest(url: url, to: place)
      task.digest = digest
      task.existing = existing.flatMap(TaskRequest.Existing.init)
      task.makeDirectories = makeDirectories ? true : nil
      task.headers = headers
      task.priority = priority.flatMap(TaskPriority.init)
      task.label = label
      return task
    }
  }

  /// The digest with its label; `nil` when `--sha256` is invalid or missing.
  private var digest: String? {
    guard let sha256 = sha256?.lowercased() else { return nil }
    let label = "sha256:"
    let digits = sha256.hasPrefix(label) ? sha256.dropFirst(label.count) : sha256[...]
    let isDigest =
      digits.utf8.count == 64 && digits.utf8.allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
    return isDigest ? "\(label)\(digits)" : nil
  }

  /// The destination of the files; a folder ends with a slash.
  private func destination(_ session: Session) -> String {
    let path = session.tarn.absolute(to ?? ".")
    let isFolder = to == nil || to?.hasSuffix("/") == true || TextFile.isDirectory(path)
    guard let name else { return isFolder ? (path.hasSuffix("/") ? path : path + "/") : path }
    return path.hasSuffix("/") ? path + name : "\(path)/\(name)"
  }
}

extension Session {
  /// Returns the text of a file or a pipe; `-` is standard input.
  ///
  /// - Throws: `configuration` for a file that cannot be read.
  func text(of path: String, option: String) throws(PassFailure) -> String {
    let limit = 16 << 20
    do throws(TextFile.Refusal) {
      if let number = path == "-" ? 0 : StandardInput.descriptor(path) {
        return try TextFile.all(of: number, limit: limit)
      }
      return try TextFile.contentsWaiting(tarn.absolute(path), limit: limit)
    } catch {
      let reason =
        switch error {
        case .cannotRead(let number): "cannot be read: \(errorText(number))"
        case .notRegular: "is neither a file nor a pipe"
        case .tooLarge: "is larger than \(Units.show(UInt64(limit)))"
        }
      throw PassFailure(
        .configuration, code: "file-not-readable", "\(option): \(Printable.escape(path)) \(reason)",
        hint: "give a text file that exists and that this user can read, or - for standard input")
    }
  }
}
