import ArgumentParser
import TarnAgent
import TarnControl
import TarnCore
import TarnEngine
import TarnRuntime

/// `tarn get`.
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

      A file appears under its name when all of it is there, and has the digest that was given. What was \
      fetched when a download is ended is kept: the same command goes on from there.
      """)

  @Option(
    help: ArgumentHelp("Where the file goes: a path, or a folder.", valueName: "path"), completion: .file())
  var to: String?
  @Option(
    help: ArgumentHelp("The file's name; without it the one that the server suggests.", valueName: "name"))
  var name: String?
  @Option(help: ArgumentHelp("The SHA-256 of the file, in hexadecimal.", valueName: "hex")) var sha256:
    String?
  @Option(
    name: [.customShort("i"), .customLong("input")],
    help: ArgumentHelp("Download the URLs in this file, one a line.", valueName: "list"), completion: .file())
  var list: String?
  @Option(
    help: ArgumentHelp(
      "Where a file of that name is: fail, replace it, or keep-both.", valueName: "what"))
  var existing: String?
  @Flag(name: [.customShort("p"), .long], help: "Make the folders that are missing.") var makeDirectories =
    false
  @Option(name: [.customShort("N"), .long], help: ArgumentHelp("Transfers at a time.", valueName: "n"))
  var transfers = 4
  @Option(help: ArgumentHelp("Attempts after the first.", valueName: "n")) var retries: Int?
  @Option(help: ArgumentHelp("Bytes per second at most: 2MiB/s.", valueName: "rate")) var limitRate: String?
  @Option(
    help: ArgumentHelp("Send the 'Name: value' lines of this file.", valueName: "file"), completion: .file())
  var headerFile: String?
  @Option(
    help: ArgumentHelp("Trust the authorities in this PEM file.", valueName: "file"), completion: .file())
  var cacert: String?
  @Option(help: ArgumentHelp("http://host:port or socks5h://host:port.", valueName: "url")) var proxy: String?
  @Flag(name: [.customShort("b"), .long], help: "Hand it to the agent, and return.") var background = false
  @Option(help: ArgumentHelp("The session that it belongs to, with --background.", valueName: "id"))
  var session: String?
  @Option(help: ArgumentHelp("high, normal or low, with --background.", valueName: "priority"))
  var priority: String?
  @Option(help: ArgumentHelp("What the file is, for those who read the session.", valueName: "text"))
  var label: String?
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("What to download.", valueName: "url")) var urls: [String] = []

  func validate() throws {
    if urls.isEmpty, list == nil { throw ValidationError("a URL is expected: tarn get URL...") }
    if name != nil || sha256 != nil, urls.count != 1 || list != nil {
      throw ValidationError("--name and --sha256 are for one URL")
    }
    if let existing, TaskRequest.Existing(rawValue: existing) == nil {
      throw ValidationError("--existing is one of fail, replace and keep-both")
    }
    if !background, session != nil || priority != nil || label != nil {
      throw ValidationError("--session, --priority and --label go with --background")
    }
    if background, limitRate != nil || cacert != nil || retries != nil || proxy != nil {
      throw ValidationError(
        "--limit-rate, --cacert, --retries and --proxy are of a download that this command waits for")
    }
    if let priority, TaskPriority(rawValue: priority) == nil {
      throw ValidationError("--priority is one of high, normal and low")
    }
    if !(1...64).contains(transfers) { throw ValidationError("--transfers is a number from 1 to 64") }
    if let retries, !(0...100).contains(retries) {
      throw ValidationError("--retries is a number from 0 to 100")
    }
  }

  func run() throws {
    let session = try Session(common)
    if background { return try handOver(session) }
    var request = GetRequest(try tasks(session))
    request.transfers = transfers
    request.options = try options()
    try GetRun(session: session).run(request).end()
  }

  /// What a session is called where nobody says.
  static let standardSession = "get"

  private func handOver(_ session: Session) throws {
    let id = self.session ?? Self.standardSession
    let tasks = try tasks(session)
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
    let headers = try headerFile.map { path throws -> [String] in
      try HeaderLines(session.text(of: path, option: "--header-file")).headers
    }
    let listed = try list.map { try session.text(of: $0, option: "--input").lines } ?? []
    return (urls + listed).map { url in
      var task = TaskRequest(url: url, to: destination(session))
      task.digest = sha256.map { "sha256:\($0.lowercased())" }
      task.existing = existing.flatMap(TaskRequest.Existing.init)
      task.makeDirectories = makeDirectories ? true : nil
      task.headers = headers
      task.priority = priority.flatMap(TaskPriority.init)
      task.label = label
      return task
    }
  }

  /// A folder ends with a slash.
  private func destination(_ session: Session) -> String {
    let path = session.tarn.absolute(to ?? ".")
    let isFolder = to == nil || to?.hasSuffix("/") == true || TextFile.isDirectory(path)
    guard let name else { return isFolder ? (path.hasSuffix("/") ? path : path + "/") : path }
    return path.hasSuffix("/") ? path + name : "\(path)/\(name)"
  }
}

extension String {
  /// Those that say something: neither blank nor a comment.
  fileprivate var lines: [String] {
    split(whereSeparator: \.isNewline).map { line in
      String(line.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" })
    }.filter { !$0.isEmpty && !$0.hasPrefix("#") }
  }
}

extension Session {
  /// - Throws: `configuration` for a file that cannot be read.
  func text(of path: String, option: String) throws(PassFailure) -> String {
    if path == "-" { return StandardInputText.read() }
    guard let text = TextFile.read(tarn.absolute(path), limit: 16 << 20) else {
      throw PassFailure(
        .configuration, code: "file-not-readable", "\(option): \(Printable.escape(path)) cannot be read",
        hint: "give a text file that exists and that this user can read")
    }
    return text
  }
}

private enum StandardInputText {
  static func read() -> String {
    var text = ""
    while let line = readLine(strippingNewline: false) { text += line }
    return text
  }
}
