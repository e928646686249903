import ArgumentParser
import Glibc
import TarnAgent
import TarnControl
import TarnCore
import TarnEngine
import TarnRuntime

/// The mirrors that an order to the agent concerns.
struct SteeringTargets: ParsableArguments {
  @Flag(help: "All mirrors of the agent.") var all = false
  @Argument(
    help: ArgumentHelp(
      "A mirror, MIRROR:PATH for one transfer, session:ID or session:ID/TASK.", valueName: "target"),
    completion: .target)
  var targets: [String] = []

  func validate() throws {
    guard targets.isEmpty == all else {
      throw ValidationError(
        all ? "--all and single mirrors cannot be combined" : "say which mirrors are meant, or --all")
    }
  }
}

/// A target `session:ID` or `session:ID/TASK`.
private struct SessionTarget {
  let id: String
  let task: Int64?

  /// - Returns: `nil` when the word names no session.
  /// - Throws: `usage` when the task is not a number.
  init?(_ word: String) throws(PassFailure) {
    guard word.hasPrefix("session:") else { return nil }
    let parts = word.dropFirst(8).split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    id = String(parts[0])
    task = parts.count == 2 ? Int64(parts[1]) : nil
    guard parts.count == 1 || task != nil else {
      throw PassFailure(
        .usage, code: "usage", "\(Printable.escape(word)): a task is a number",
        hint: "'tarn session show \(ShellWord.quote(id))' lists them")
    }
  }

  func order(_ verb: ControlCommand.Verb, _ priority: ControlCommand.Priority?) -> SessionOrder {
    let word: SessionOrder.Verb =
      switch verb {
      case .pause: .suspend
      case .cancel: .cancel
      case .prioritize: .prioritize
      case .retry: .retry
      default: .resume
      }
    var order = SessionOrder(word, task: task)
    order.priority = priority.flatMap { TaskPriority(rawValue: $0.rawValue) }
    return order
  }
}

/// Gives orders to a running agent, for all commands that do so.
struct Steering {
  let session: Session

  /// Performs a command for single mirrors, or for all of them.
  func run(_ verb: ControlCommand.Verb, _ words: SteeringTargets) throws {
    guard words.all else { return try run(verb, words.targets) }
    try session.refuseMissingSettings()
    let names = try AgentLink(session.sources).ask { try $0.status(problemLimit: 0) }.mirrors.map(\.name)
    if names.isEmpty { session.say("the agent has no mirror") }
    if verb == .pause, !session.isQuiet { tellSessions() }
    try run(verb, names, areAgents: true)
  }

  /// Tells which sessions still download, for `--all` means mirrors.
  private func tellSessions() {
    let waiting = TaskState.allCases.filter { !$0.isEnd && $0 != .suspended }
    let sessions = (try? AgentLink(session.sources).ask { try $0.sessions().sessions }) ?? []
    let busy = sessions.filter { session in waiting.contains { session.tasks[$0.rawValue, default: 0] > 0 } }
    guard !busy.isEmpty else { return }
    let words = busy.prefix(5).map { "session:\($0.id)" }.joined(separator: " ")
    session.say("sessions go on; to pause them: tarn pause \(words)\(busy.count > 5 ? " ..." : "")")
  }

  /// Performs one command per target, and ends with the worst status.
  ///
  /// - Parameters:
  ///   - areAgents: true for names that the agent has told, whatever the settings here have by these names.
  ///   - change: adds the other parts of an order for a session; `nil` for none, as mirrors require.
  func run(
    _ verb: ControlCommand.Verb, _ words: [String], priority: ControlCommand.Priority? = nil,
    areAgents: Bool = false, change: ((inout SessionOrder) -> Void)? = nil
  ) throws {
    try session.refuseMissingSettings()
    let link = AgentLink(session.sources)
    var statuses: [ExitStatus] = []
    // All targets are checked before the first order.
    let targets = try words.map { word throws(PassFailure) -> SessionTarget? in
      try session.tarn.refuseEmptyNames(word, nil)
      try session.tarn.refuseFeed(word)
      return try SessionTarget(word)
    }
    for (word, known) in zip(words, targets) {
      if let target = known {
        var order = target.order(verb, priority)
        change?(&order)
        statuses.append(give(order, target.id, link))
        continue
      }
      if change != nil {
        throw PassFailure(
          .usage, code: "usage", "\(Printable.escape(word)): --first and --keep are for tasks of sessions",
          hint: "name a task as session:ID/TASK")
      }
      try RawArguments.refuseOtherBytes(
        "the mirror", RawArguments.bytes(of: word).prefix { $0 != UInt8(ascii: ":") })
      var command = ControlCommand(verb, self.target(word))
      command.priority = priority
      do throws(PassFailure) {
        let name = command.target.mirror
        if !areAgents { try refuseOther(name, verb, link) }
        let asked = areAgents ? link : link.asking(for: name, session.sources)
        show(try asked.ask { try $0.perform(command) })
        statuses.append(.inSync)
      } catch {
        let failure = hinting(error, of: command.target.mirror, word, link)
        statuses.append(session.tell(withoutAgent(failure, verb, word)))
      }
    }
    try ExitStatus.worst(statuses).end()
  }

  /// Refuses a name of the settings here that the agent has for another folder: that mirror is not meant.
  private func refuseOther(
    _ name: String, _ verb: ControlCommand.Verb, _ link: AgentLink
  ) throws(PassFailure) {
    guard let own = session.names.settingsPlace(of: name)?.folder,
      let answer = try link.tryAsking({ try $0.status(mirrors: [name], problemLimit: 0) }),
      let other = answer.mirrors.first?.folder, !session.tarn.isSamePlace(own, other)
    else { return }
    throw PassFailure(
      .usage, code: "other-mirror",
      "the agent has another mirror of the name \(Printable.escape(name)), in \(Printable.escape(other)); nothing was changed",
      hint: link.isOfTheseSettings(session)
        ? "the agent has not read these settings yet: tarn reload"
        : "if that one is meant: tarn \(verb.rawValue) \(ShellWord.quote(other))")
  }

  private func give(_ order: SessionOrder, _ id: String, _ link: AgentLink) -> ExitStatus {
    do throws(PassFailure) {
      show(try link.order(order, id))
      return .inSync
    } catch {
      return session.tell(error)
    }
  }

  /// Adds a hint to the failure of a mirror that the agent does not have: the settings may name one that it has
  /// not read yet, and the word may mean a session, or be mistyped.
  private func hinting(
    _ failure: PassFailure, of mirror: String, _ word: String, _ link: AgentLink
  ) -> PassFailure {
    guard failure.code == "no-such-mirror" else { return failure }
    var failure = failure
    if session.configured((mirror, mirror, nil)) != nil, link.isOfTheseSettings(session) {
      failure.hint = "these settings name it, and the agent has not read them yet: tarn reload"
      return failure
    }
    let name = String(word.prefix { $0 != ":" })
    let parts = name.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    let mayBeTask = parts.count == 1 || parts.count == 2 && Int64(parts[1]) != nil
    if mayBeTask, (try? link.ask { try $0.session(parts[0]) }) != nil {
      failure.hint = "a session has that name; did you mean session:\(ShellWord.quote(name))?"
      return failure
    }
    guard !name.contains("/"), !name.hasPrefix(".") else { return withoutSync(failure, mirror) }
    let names = (try? link.ask { try $0.status(problemLimit: 0).mirrors.map(\.name) }) ?? []
    guard name != "all", let near = Spelling.nearest(name, names) else { return withoutSync(failure, mirror) }
    failure.hint = "did you mean '\(Printable.escape(near))'?"
    return failure
  }

  /// Replaces the advice to sync a folder, where none is a mirror.
  private func withoutSync(_ failure: PassFailure, _ mirror: String) -> PassFailure {
    guard mirror.hasPrefix("/"), session.tarn.isNoMirror(mirror) else { return failure }
    var failure = failure
    failure.hint = "no mirror is there; 'tarn status' lists the mirrors"
    return failure
  }

  /// Adds a hint what can be done to a mirror without an agent.
  private func withoutAgent(
    _ failure: PassFailure, _ verb: ControlCommand.Verb, _ word: String
  ) -> PassFailure {
    guard failure.code == "no-agent" else { return failure }
    var failure = failure
    let name = word.prefix { $0 != ":" }
    let sync = "tarn sync \(ShellWord.quote(String(name)))"
    switch verb {
    case .resume, .retry, .sync, .prioritize:
      failure.hint =
        "for a pass now, without an agent: \(sync); for passes on schedule: \(AgentText.start)"
    case .pause:
      failure.hint =
        "without an agent, only 'tarn sync' and timers begin passes; to start an agent: \(AgentText.start)"
    case .cancel:
      failure.hint =
        "to end a pass without an agent, press Ctrl-C where it runs; 'tarn status' names its process"
    case .approve: break
    }
    return failure
  }

  /// Returns the target of MIRROR or MIRROR:PATH. A word with a slash before its first colon is a folder.
  func target(_ word: String) -> ControlTarget {
    guard let colon = word.firstIndex(of: ":"), colon != word.startIndex, !word[..<colon].contains("/") else {
      return ControlTarget(mirror: mirror(word))
    }
    let bytes = RawArguments.bytes(of: word)
    let path = bytes.firstIndex(of: UInt8(ascii: ":")).map { Array(bytes[($0 + 1)...]) }
    return ControlTarget(mirror: mirror(String(word[..<colon])), path: path)
  }

  /// Returns a name, or the absolute path of the mirror's folder. A word that is no name counts as a folder
  /// when it exists, and may lie in the mirror.
  private func mirror(_ word: String) -> String {
    if session.tarn.place(of: word) != nil { return word }
    let folder = session.tarn.absolute(session.mirror(around: word))
    return word.contains("/") || word.hasPrefix(".") || access(folder, F_OK) == 0 ? folder : word
  }

  func show(_ answer: ControlAnswer) {
    if session.isJSON {
      session.console.data(JSONText.line(answer))
    } else if !session.isQuiet {
      session.console.data(Message.safe(answer.message))
    }
  }
}

/// The command `tarn pause`.
struct PauseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pause",
    abstract: "Pause mirrors until 'tarn resume'.",
    usage: """
      tarn pause [options] TARGET...
      tarn pause [options] --all
      """,
    discussion: """
      Examples:
        tarn pause podcasts
        tarn pause podcasts iso
        tarn pause --all
        tarn pause iso:debian.iso    one transfer; the others go on

      A pass at work ends, and the agent keeps what it has downloaded. A pause outlives the agent.
      """)
  @OptionGroup var common: CommonOptions<NoneShown>
  @OptionGroup var words: SteeringTargets

  func run() throws { try Steering(session: Session(common)).run(.pause, words) }
}

/// The command `tarn resume`.
struct ResumeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume",
    abstract: "Resume paused mirrors.",
    usage: """
      tarn resume [options] TARGET...
      tarn resume [options] --all
      """,
    discussion: """
      Examples:
        tarn resume podcasts
        tarn resume --all
        tarn resume iso:debian.iso
      """)
  @OptionGroup var common: CommonOptions<NoneShown>
  @OptionGroup var words: SteeringTargets

  func run() throws { try Steering(session: Session(common)).run(.resume, words) }
}

/// The command `tarn retry`.
struct RetryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retry",
    abstract: "Try failed mirrors now, without waiting.",
    usage: """
      tarn retry [options] TARGET...
      tarn retry [options] --all
      """,
    discussion: """
      Examples:
        tarn retry iso
        tarn retry iso:debian.iso    this transfer now

      The current pass tries a single transfer again, even after 'tarn cancel'. If no pass is running, one \
      begins at once. The answer says which.
      """)
  @OptionGroup var common: CommonOptions<NoneShown>
  @OptionGroup var words: SteeringTargets

  func run() throws { try Steering(session: Session(common)).run(.retry, words) }
}

/// The command `tarn cancel`.
struct CancelCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cancel",
    abstract: "End the current passes of mirrors.",
    usage: """
      tarn cancel [options] TARGET...
      tarn cancel [options] --all
      """,
    discussion: """
      Examples:
        tarn cancel iso
        tarn cancel iso:debian.iso   one transfer of the current pass
        tarn cancel --keep session:backup/3

      The agent keeps what it has downloaded. The next pass comes as planned, and resumes there.
      """)
  @Flag(help: "For a task of a session: keep what was downloaded.") var keep = false
  @OptionGroup var common: CommonOptions<NoneShown>
  @OptionGroup var words: SteeringTargets

  func run() throws {
    let steering = Steering(session: try Session(common))
    guard keep else { return try steering.run(.cancel, words) }
    try steering.run(.cancel, words.targets) { $0.keep = true }
  }
}

/// The command `tarn prioritize`.
struct PrioritizeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "prioritize",
    abstract: "Give mirrors more or fewer of the agent's turns.",
    usage: "tarn prioritize [options] TARGET...",
    discussion: """
      Examples:
        tarn prioritize iso                 four turns for each turn of the others
        tarn prioritize --priority low iso  only when no other mirror waits
        tarn prioritize --priority normal iso
        tarn prioritize iso:debian.iso      this file gets the next connection
        tarn prioritize --first session:backup/3
      """)
  @Option(help: ArgumentHelp("high, normal or low. Default: high.", valueName: "priority")) var priority:
    ControlCommand.Priority?
  @Flag(help: "For a task of a session: put it before all others of its priority.") var first = false
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(
    help: ArgumentHelp(
      "A mirror, MIRROR:PATH for one transfer, session:ID or session:ID/TASK.", valueName: "target"),
    completion: .target)
  var targets: [String]

  /// Refuses a priority among the targets, unless a mirror has that name.
  private func refuseWordsOfPriority(_ session: Session) throws(PassFailure) {
    guard priority == nil, targets.count > 1,
      let word = targets.first(where: {
        ControlCommand.Priority(rawValue: $0) != nil && session.tarn.place(of: $0) == nil
      })
    else { return }
    let others = targets.filter { $0 != word }.map(ShellWord.quote).joined(separator: " ")
    throw PassFailure(
      .usage, code: "usage", "a priority is given by an option",
      hint: "tarn prioritize --priority \(word) \(others)")
  }

  func run() throws {
    let session = try Session(common)
    try refuseWordsOfPriority(session)
    let putFirst =
      first ? { (order: inout SessionOrder) in order = SessionOrder(.first, task: order.task) } : nil
    try Steering(session: session).run(.prioritize, targets, priority: priority ?? .high, change: putFirst)
  }
}

extension ControlCommand.Priority: ExpressibleByArgument {}

/// The command `tarn limit`.
struct LimitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "limit",
    abstract: "Limit the rate of all mirrors and sessions.",
    usage: "tarn limit [options] RATE",
    discussion: """
      Examples:
        tarn limit 2MiB/s
        tarn limit off
        tarn limit settings      back to the settings

      The limit holds until the timetable of the settings reaches its next row, [limits] of the settings changes, or \
      the agent ends. To limit a single mirror, use limit-rate in its settings. 'tarn sync --limit-rate' limits one that no \
      agent keeps.
      """)
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(
    help: ArgumentHelp("A rate such as 2MiB/s, off or settings.", valueName: "rate"),
    completion: .list(["off", "settings"]))
  var words: [String] = []

  private var rate: String { words.first ?? "" }

  /// Returns the error for several words: somebody has named a mirror, before the rate or after it.
  private static func ofOne(_ words: [String]) -> String {
    let rate = words.first { Units.rate($0) != nil }
    let mirror = words.first { $0 != rate && $0 != "settings" } ?? "NAME"
    let line = "limit-rate" + (rate.map { " = \"\($0)\"" } ?? "")
    return "one rate is for all mirrors together; for one alone write \(line) below [mirror."
      + "\(Printable.escape(mirror))] of the settings, then: tarn reload"
  }

  func validate() throws {
    guard words.count == 1 else {
      throw ValidationError(
        words.isEmpty
          ? "say which rate, such as 2MiB/s, off or settings"
          : Self.ofOne(words))
    }
    if rate != "settings", Units.rate(rate) == nil {
      throw ValidationError("'\(Printable.escape(rate))' is not a rate such as 2MiB/s, off or settings")
    }
    try PassFlags.refuseDoubt(ofRate: rate)
  }

  func run() throws {
    let session = try Session(common)
    try session.refuseMissingSettings()
    let limit = rate == "settings" ? nil : ControlRate(bytesPerSecond: Units.rate(rate) ?? nil)
    let answer = try AgentLink(session.sources).ask { try $0.limit(limit) }
    Steering(session: session).show(answer)
  }
}

/// The command `tarn reload`.
struct ReloadCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reload",
    abstract: "Make the agent read its settings again.",
    usage: "tarn reload [options]",
    discussion: """
      Examples:
        tarn reload

      The command returns when the new settings hold. If they have an error, the old settings stay in force, and \
      the command ends with 78. A tarn.toml or conf.d that the agent has read and that is now missing is an error \
      too. To take out everything in it, leave it empty.

      A mirror whose settings did not change is not disturbed. The folder of a mirror that you took out stays as \
      it is. 'tarn forget FOLDER' removes its record and its trash.
      """)
  @OptionGroup var common: CommonOptions<NoneShown>

  func run() throws {
    let session = try Session(common)
    try session.refuseMissingSettings()
    let answer = try AgentLink(session.sources).ask { try $0.reload() }
    if session.isJSON {
      session.console.data(JSONText.document(answer))
    } else {
      for problem in answer.problems { session.console.message(Self.lines(problem)) }
      if !answer.isTaken {
        session.console.message(
          session.messageStyle.paint("tarn:", .bad)
            + " the settings were not taken; the old ones stay in force")
      } else if !session.isQuiet {
        session.console.data(Self.summary(answer))
        for folder in answer.left ?? [] {
          session.console.data(
            "\(ShellWord.quote(folder)) stays as it is: the settings no longer name it; "
              + Tarn.stepsIfLeft(folder))
        }
      }
    }
    if !answer.isTaken { try ExitStatus.failed(.configuration).end() }
  }

  private static func lines(_ problem: String) -> String {
    problem.split(whereSeparator: \.isNewline).map { Message.safe(String($0)) }.joined(separator: "\n")
  }

  private static func summary(_ answer: ReloadAnswer) -> String {
    let parts = [("added", answer.added), ("removed", answer.removed), ("changed", answer.changed)]
      .filter { !$0.1.isEmpty }.map {
        "\($0.0): \($0.1.map { Printable.escape($0) }.joined(separator: ", "))"
      }
    let restart =
      answer.needRestart.isEmpty ? "" : "; a restart takes up \(answer.needRestart.joined(separator: ", "))"
    return "settings read again: " + (parts.isEmpty ? "no mirror changed" : parts.joined(separator: "; "))
      + restart
  }
}
