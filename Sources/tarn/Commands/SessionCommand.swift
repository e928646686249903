import ArgumentParser
import TarnAgent
import TarnControl
import TarnCore
import TarnEngine
import TarnRuntime

/// The command `tarn session`.
struct SessionCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "session",
    abstract: "Manage downloads that the agent makes in the background.",
    discussion: """
      Examples:
        tarn session list
        tarn session show backup
        tarn session events --follow backup
        tarn session wait backup

      A session belongs to the user who made it, and outlives the program that did. The agent keeps its events \
      until somebody acknowledges them.
      """,
    subcommands: [
      SessionListCommand.self, SessionOpenCommand.self, SessionSetCommand.self, SessionShowCommand.self,
      SessionEventsCommand.self, SessionAckCommand.self, SessionAnswerCommand.self, SessionWaitCommand.self,
      SessionCloseCommand.self,
      SessionForgetCommand.self,
    ])
}

/// The command `tarn session list`.
struct SessionListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the sessions.", usage: "tarn session list [options]",
    discussion: """
      Examples:
        tarn session list
        tarn session list --json
      """)
  @OptionGroup var common: CommonOptions<NoneShown>

  func run() throws {
    let session = try Session(common)
    let list = try AgentLink(session.sources).ask { try $0.sessions() }
    if session.isJSON { return session.console.data(JSONText.line(list)) }
    if list.sessions.isEmpty { session.say("there is no session: tarn get --background URL makes one") }
    for document in list.sessions { session.console.data(SessionText.line(document)) }
  }
}

/// The settings of a session.
struct SessionSettingsOptions: ParsableArguments {
  @Option(name: [.customShort("N"), .long], help: ArgumentHelp("Run n transfers at a time.", valueName: "n"))
  var transfers: Int?
  @Option(
    parsing: .upToNextOption,
    help: ArgumentHelp(
      "Run this command when there is an event that nobody reads. All words up to the next option belong to it.",
      valueName: "command"))
  var wake: [String] = []
  @Option(
    help: ArgumentHelp(
      "Take all settings from this JSON file, as 'show --json' prints them below 'settings'. "
        + "Those that it does not name get their defaults.",
      valueName: "file"),
    completion: .file())
  var settings: String?

  func settings(
    _ session: Session, over old: SessionSettings = SessionSettings()
  ) throws(PassFailure) -> SessionSettings? {
    guard transfers != nil || !wake.isEmpty || settings != nil else { return nil }
    var settings = try read(session) ?? old
    settings.transfers = transfers ?? settings.transfers
    if !wake.isEmpty { settings.wake = wake }
    return settings
  }

  /// Returns those settings among others that these options name. A file names all of them.
  func named(among names: [String]?) -> [String]? {
    guard settings == nil else { return names }
    return names?.filter { $0 == "transfers" && transfers != nil || $0 == "wake" && !wake.isEmpty }
  }

  private func read(_ session: Session) throws(PassFailure) -> SessionSettings? {
    guard let file = settings else { return nil }
    let text = try session.text(of: file, option: "--settings")
    let settings: SessionSettings
    do throws(ControlFailure) {
      settings = try ControlJSON.decode(
        SessionSettings.self, from: Array(text.utf8), taking: ControlRoute.session.keys(of: "PUT"))
    } catch {
      throw PassFailure(
        .configuration, code: error.code, "--settings: \(Printable.escape(file)): \(error.message)",
        hint: "it is what 'tarn session show --json ID' has under 'settings'"
          + (error.hint.map { "; \($0)" } ?? ""))
    }
    do throws(TaskRequest.Refusal) {
      try settings.validate()
    } catch {
      throw PassFailure(
        .configuration, code: error.code, "--settings: \(Printable.escape(file)): \(error.message)",
        hint: "correct it in that file")
    }
    return settings
  }
}

/// The command `tarn session open`.
struct SessionOpenCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "open", abstract: "Make a session, or show the settings of one that exists.",
    usage: "tarn session open [options] ID",
    discussion: """
      Examples:
        tarn session open backup
        tarn session open -N 2 backup
      """)
  @OptionGroup var options: SessionSettingsOptions
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("The session.", valueName: "id"), completion: .session) var id: String

  func run() throws {
    let session = try Session(common)
    let settings = try options.settings(session)
    var document = try AgentLink(session.sources).ask { try $0.openSession(id, settings) }
    document.differs = options.named(among: document.differs)
    if session.isJSON { return session.console.data(JSONText.line(document)) }
    session.console.data(SessionText.line(document))
    if let differs = document.differs, !differs.isEmpty {
      session.say(
        "it exists already, and keeps its settings: \(differs.joined(separator: ", ")) differ; 'tarn session set' changes them"
      )
    }
  }
}

/// The command `tarn session set`.
struct SessionSetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Change the settings of a session.", usage: "tarn session set [options] ID",
    discussion: """
      Examples:
        tarn session set -N 8 backup
        tarn session set backup --wake /usr/local/bin/collect
        tarn session set --settings backup.json backup
      """)
  @OptionGroup var options: SessionSettingsOptions
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("The session.", valueName: "id"), completion: .session) var id: String

  func run() throws {
    let session = try Session(common)
    let document = try AgentLink(session.sources).ask { client in
      let old = try client.session(id).settings
      return try client.openSession(id, options.settings(session, over: old) ?? old, isUpdate: true)
    }
    if session.isJSON { return session.console.data(JSONText.line(document)) }
    session.console.data(SessionText.line(document))
  }
}

/// The command `tarn session show`.
struct SessionShowCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a session and its tasks.", usage: "tarn session show [options] ID",
    discussion: """
      Examples:
        tarn session show backup
        tarn session show --json backup
      """)
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("The session.", valueName: "id"), completion: .session) var id: String

  func run() throws {
    let session = try Session(common)
    try AgentLink(session.sources).ask { client in
      let document = try client.session(id)
      session.console.data(session.isJSON ? JSONText.line(document) : SessionText.line(document))
      var after: Int64 = 0
      while true {
        let page = try client.tasks(of: id, after: after)
        for task in page.tasks {
          session.console.data(session.isJSON ? JSONText.line(task) : SessionText.line(task))
          guard !session.isJSON, let step = SessionText.step(task.task, of: id) else { continue }
          session.console.data("   next: \(session.sources.paths.completing(step))")
        }
        guard page.hasMore, let last = page.tasks.last else { return }
        after = last.task.number
      }
    }
  }
}

/// The command `tarn session events`.
struct SessionEventsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "events", abstract: "Show what happened in a session.",
    usage: "tarn session events [options] ID",
    discussion: """
      Examples:
        tarn session events backup              all unacknowledged events
        tarn session events --follow backup     new events too, until Ctrl-C
        tarn session events --after 12 --json backup
      """)
  @Flag(help: "Print events as they come, until Ctrl-C.") var follow = false
  @Option(help: ArgumentHelp("Print only events after this number.", valueName: "n"))
  var after: Int64 = 0
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("The session.", valueName: "id"), completion: .session) var id: String

  func run() throws {
    let session = try Session(common)
    let link = AgentLink(session.sources)
    if follow { return try SessionFollower(session: session, link: link, id: id).run(after: after).end() }
    try link.ask { client in
      var after = after
      let last = try after == 0 ? 0 : client.session(id).lastEvent
      if after > last {
        session.console.message(
          "session '\(id)' has no event \(after): it was made anew since, and this is all that it has now")
        after = 0
      }
      while true {
        let page = try client.events(of: id, after: after)
        for event in page.events { SessionText.show(event, session) }
        guard page.hasMore, let last = page.events.last else { return }
        after = last.number
      }
    }
    session.console.flush()
  }
}

/// Follows a session's events. No event is lost when an agent ends or begins meanwhile.
struct SessionFollower {
  let session: Session
  let link: AgentLink
  let id: String

  /// Follows the events until a signal, or until the session is forgotten.
  func run(after start: Int64) throws(PassFailure) -> ExitStatus {
    let follower = AgentFollower()
    var reached = start
    var (isFirst, isForgotten) = (true, false)
    let status = try follower.run { () throws(PassFailure) in
      // At the beginning it is an error when no agent answers.
      if isFirst { _ = try link.ask { try $0.session(id) } }
      isFirst = false
      do throws(PassFailure) {
        _ = try link.tryAsking { client in
          guard follower.willWait(client) else { return }
          _ = try client.followSession(id, after: reached) { event in
            reached = event.number
            SessionText.show(event, session)
            session.console.flush()
            return !follower.isOver
          }
        }
      } catch {
        guard error.code == "no-such-session" else { return }
        isForgotten = true
        follower.end()
      }
    }
    guard isForgotten else { return status }
    session.console.message("session '\(id)' is over")
    return .inSync
  }
}

/// The command `tarn session ack`.
struct SessionAckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ack", abstract: "Acknowledge events up to a number.",
    usage: "tarn session ack [options] ID NUMBER",
    discussion: """
      Examples:
        tarn session ack backup 12      all events up to number 12

      Acknowledged events are not shown again, and wake no program.
      """)
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("The session.", valueName: "id"), completion: .session) var id: String
  @Argument(help: ArgumentHelp("The number of the last event.", valueName: "number")) var number: Int64

  func run() throws {
    var order = SessionOrder(.acknowledge)
    order.number = number
    try Session(common).give(order, to: id)
  }
}

/// The command `tarn session answer`.
struct SessionAnswerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "answer", abstract: "Answer a task that waits because the server refused it.",
    usage: "tarn session answer [options] ID NUMBER",
    discussion: """
      Examples:
        tarn session answer backup 3 --url 'https://example.org/a?signature=new'
        tarn session answer backup 3 --header-file token.txt
        tarn session answer backup 3 --to /srv/other/    another place for the file
        tarn session answer backup 3           the same request again

      If the server still has the same file, the agent keeps what it has downloaded.
      """)
  @Option(help: ArgumentHelp("The new URL of the file.", valueName: "url")) var url: String?
  @Option(
    help: ArgumentHelp("Send the 'Name: value' lines of this file.", valueName: "file"), completion: .file())
  var headerFile: String?
  @Option(
    help: ArgumentHelp("Where the file goes: a path, or a folder.", valueName: "path"), completion: .file())
  var to: String?
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("The session.", valueName: "id"), completion: .session) var id: String
  @Argument(help: ArgumentHelp("The number of the task.", valueName: "number")) var number: Int64

  func validate() throws {
    for (option, value) in [("--url", url), ("--to", to), ("--header-file", headerFile)]
    where value?.isEmpty == true {
      throw ValidationError("\(option) is empty: is a variable not set?")
    }
  }

  func run() throws {
    let session = try Session(common)
    var order = SessionOrder(.answer, task: number)
    order.url = url
    order.to = to.map { to in
      let path = session.tarn.absolute(to)
      let isFolder = !path.hasSuffix("/") && (to.hasSuffix("/") || TextFile.isDirectory(path))
      return isFolder ? path + "/" : path
    }
    order.headers = try headerFile.map(session.tarn.headers)
    try session.give(order, to: id)
  }
}

/// The command `tarn session wait`.
struct SessionWaitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "wait", abstract: "Wait until every task of a session has ended.",
    usage: "tarn session wait [options] ID",
    discussion: """
      Examples:
        tarn session wait backup && echo done

      The command ends with 3 if a task has failed, was cancelled, or is suspended. If a task waits for an \
      answer, the command says so and goes on waiting.
      """)
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("The session.", valueName: "id"), completion: .session) var id: String

  func run() throws {
    let session = try Session(common)
    let link = AgentLink(session.sources)
    let ended = Gate()
    Interruption.shared.arm(StopFlag()) {
      ended.open()
    } report: {
    }
    defer { Interruption.shared.disarm() }
    var isOver = try isOver(link)
    var told: Set<String> = []
    while !isOver {
      if ended.wait(atMost: .milliseconds(500)) {
        return try ExitStatus.stopped(by: Interruption.shared.received).end()
      }
      // An agent that ends or begins meanwhile is waited for.
      do throws(PassFailure) {
        isOver = try self.isOver(link)
        try tellQuestions(session, link, &told)
      } catch {
        if error.code == "no-such-session" { throw error }
      }
    }
    let document = try link.ask { try $0.session(id) }
    if session.isJSON {
      session.console.data(JSONText.line(document))
    } else if !session.isQuiet {
      session.console.data(SessionText.line(document))
    }
    if document.tasks[TaskState.suspended.rawValue, default: 0] > 0 {
      session.console.message(
        session.sources.paths.completing("to let suspended tasks go on: tarn resume session:\(id)"))
    }
    let hasFailed = [TaskState.failed, .cancelled, .suspended].contains {
      document.tasks[$0.rawValue, default: 0] > 0
    }
    try (hasFailed ? ExitStatus.partial : .inSync).end()
  }

  /// Reports each task that waits for an answer, once.
  private func tellQuestions(
    _ session: Session, _ link: AgentLink, _ told: inout Set<String>
  ) throws(PassFailure) {
    for task in try link.ask({ try $0.tasks(of: id, in: [.waiting]) }).tasks.map(\.task) {
      guard let step = SessionText.step(task, of: id) else { continue }
      guard told.insert("\(task.number) \(task.code ?? "")").inserted else { continue }
      session.console.message(
        "task \(task.number) waits for an answer: \(task.message ?? "")\n  hint: \(session.sources.paths.completing(step))"
      )
    }
  }

  private func isOver(_ link: AgentLink) throws(PassFailure) -> Bool {
    let tasks = try link.ask { try $0.session(id).tasks }
    return !TaskState.allCases.contains { $0.isOpen && tasks[$0.rawValue, default: 0] > 0 }
  }
}

/// The command `tarn session close`.
struct SessionCloseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "close", abstract: "Take no more tasks, and end the session after the last one.",
    usage: "tarn session close [options] ID",
    discussion: """
      Examples:
        tarn session close backup
      """)
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("The session.", valueName: "id"), completion: .session) var id: String

  func run() throws { try Session(common).give(SessionOrder(.close), to: id) }
}

/// The command `tarn session forget`.
struct SessionForgetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "forget", abstract: "End a session now: cancel running tasks, keep finished files.",
    usage: "tarn session forget [options] ID",
    discussion: """
      Examples:
        tarn session forget backup
      """)
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("The session.", valueName: "id"), completion: .session) var id: String

  func run() throws { try Session(common).give(SessionOrder(.forget), to: id) }
}

extension Session {
  func give(_ order: SessionOrder, to id: String) throws(PassFailure) {
    let answer = try AgentLink(sources).order(order, id)
    if isJSON { console.data(JSONText.line(answer)) } else { say(answer.message) }
  }
}
