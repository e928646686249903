import Glibc
import TarnAgent
import TarnConfig
import TarnControl
import TarnCore
import TarnEngine
import TarnRuntime

/// Follows a pass that the agent makes: for `tarn sync MIRROR`, and for `tarn sync FEED FOLDER` of a mirror
/// of the agent.
struct AgentSync {
  let session: Session
  let link: AgentLink

  init(session: Session) {
    self.session = session
    var link = AgentLink(session.sources)
    // A user who waits for a pass has time for a busy agent.
    link.limits.telling = link.limits.answering
    self.link = link
  }

  /// The end of an agent's pass, as far as it was followed.
  struct End {
    var status: ExitStatus
    /// The last pass; `nil` when it was not waited for.
    var last: StatusDocument.LastRun?
  }

  /// Asks for a pass, and shows its progress until it has ended. A signal ends the watching, not the pass.
  ///
  /// - Returns: `nil` when no agent has this mirror.
  /// - Throws: also `usage`, when the agent's mirror has another feed, or other options than those given.
  func run(_ request: SyncRequest, isOnlyOne: Bool) throws(PassFailure) -> End? {
    try session.tarn.refuseEmptyNames(request.folder, request.state)
    let expected = try expectation(request)
    // The word after a FEED is a folder, whatever the names of mirrors are.
    let isFolder = request.name == nil && request.feed != nil
    let word = request.name ?? (isFolder ? session.tarn.absolute(request.folder) : request.folder)
    let began = session.now
    guard let order = try ask(word, expected) else {
      if let name = request.name { tellOther(name) }
      return nil
    }
    if let agent = order.agent { tellOfOlderSettings(agent) }
    return try follow(order, since: began, isOnlyOne: isOnlyOne) { () throws(PassFailure) in
      try ask(word, expected)
    }
  }

  /// Tells that the agent, where it has the mirror, has not read what these settings say by now.
  func tellOfOlderSettings(of mirror: String) {
    let answer = try? link.tryAsking(about: mirror, session) { client, mirror in
      try client.status(mirrors: [mirror], problemLimit: 0)
    }
    if let agent = answer?.agent { tellOfOlderSettings(agent) }
  }

  private func tellOfOlderSettings(_ agent: AgentDocument) {
    guard agent.settingsCheck == session.sources.paths.command("config check"),
      let read = Timestamp(rfc3339: agent.settingsRead),
      let newer = SettingsReport(session).files.first(where: { file in
        TextFile.status(file).map { Int64($0.st_mtim.tv_sec) > read.seconds } ?? false
      })
    else { return }
    session.say(
      "\(Printable.escape(newer)) was changed since the agent read it, and the agent goes by the old text; to let it read: "
        + session.sources.paths.command("reload"))
  }

  /// Tells that an agent has this name for another folder, and so for another mirror.
  private func tellOther(_ name: String) {
    let answer = try? link.tryAsking { try $0.status(mirrors: [name], problemLimit: 0) }
    guard let other = answer?.mirrors.first else { return }
    let word = ShellWord.quote(name)
    // An agent of other settings never reads these.
    let advice =
      link.isOfTheseSettings(session) ? " If the agent should use these settings, too: tarn reload" : ""
    session.say(
      "the agent has another mirror of the name \(word), in \(Printable.escape(other.folder)). This pass goes by the settings here, "
        + "without the agent.\(advice)")
  }

  /// A pass that was asked for.
  private struct Order {
    /// The agent's name for the mirror.
    var mirror: String
    var run: UInt64
    /// The agent that took the order; one that is started later does not know it.
    var agent: AgentDocument?

    func isKnown(to other: AgentDocument?) -> Bool {
      agent?.process == other?.process && agent?.started == other?.started
    }
  }

  /// - Returns: `nil` when no agent has this mirror.
  private func ask(_ word: String, _ expected: ControlExpectation?) throws(PassFailure) -> Order? {
    let answer = try link.tryAsking(about: word, session) { client, mirror in
      // Asked before the order: one that is lost in between is given again.
      let agent = try client.status(mirrors: [mirror], problemLimit: 1).agent
      var command = ControlCommand(.sync, ControlTarget(mirror: mirror))
      command.expected = expected
      return (agent, try client.perform(command))
    }
    guard let (agent, answer) = answer, let run = answer.run else { return nil }
    return Order(mirror: answer.mirror ?? word, run: run, agent: agent)
  }

  /// Returns what was given beside the mirror; `nil` for nothing. The settings here are left out, for the
  /// agent uses its own.
  private func expectation(_ request: SyncRequest) throws(PassFailure) -> ControlExpectation? {
    var expected = ControlExpectation()
    let given = request.given ?? SyncRequest.CommandOverrides(request)
    expected.feed = try given.feed.map { text throws(PassFailure) in try session.tarn.feedText(text) }
    if !given.options.values.isEmpty { expected.options = given.options.encoded }
    if given.adopt { expected.adopts = true }
    if given.recreate { expected.recreates = true }
    expected.state = given.state.map(session.tarn.absolute)
    return expected == ControlExpectation() ? nil : expected
  }

  /// The time to wait for an agent that was ended to come back, at most.
  private static let longestRestart = Duration.seconds(10)

  /// Waits before the next look at a pass: short at first, for the pass of an unchanged feed takes milliseconds.
  private struct Pauses {
    private var next = Duration.milliseconds(10)

    /// - Parameter longest: the longest pause.
    mutating func pause(longest: Duration) -> Duration {
      defer { next = min(next * 2, longest) }
      return next
    }
  }

  /// - Parameter again: repeats the order to an agent that was started since.
  private func follow(
    _ order: Order, since began: Timestamp, isOnlyOne: Bool, again: () throws(PassFailure) -> Order?
  ) throws(PassFailure) -> End {
    var order = order
    let mirror = order.mirror
    let ended = Gate()
    Interruption.shared.arm(StopFlag()) {
      ended.open()
    } report: {
    }
    defer {
      Interruption.shared.disarm()
      session.console.draw([])
    }
    var told = Told()
    var pauses = Pauses()
    var answered = session.clock.monotonic()
    var isAway = false
    while !ended.isOpen {
      let isPatient = session.clock.monotonic() - answered < Self.longestRestart
      guard let status = try status(of: mirror, mayBeAway: isPatient) else {
        if !isAway { session.say("the agent has ended, or does not answer: waiting for it to come back") }
        isAway = true
        _ = ended.wait(atMost: .milliseconds(200))
        continue
      }
      isAway = false
      answered = session.clock.monotonic()
      guard let document = status.mirrors.first else { throw Self.removed(mirror) }
      if let last = document.lastRun, last.number >= order.run {
        tellFiles(document, since: began)
        return End(status: show(last, document, isOnlyOne: isOnlyOne), last: last)
      }
      if !order.isKnown(to: status.agent) {
        guard let anew = try again() else {
          throw PassFailure(
            .folderUnusable, code: "no-such-mirror",
            "the agent was restarted, and its settings no longer have \(Printable.escape(mirror)); no pass was made",
            hint: "'tarn status' lists its mirrors")
        }
        order = anew
        continue
      }
      // A mirror that was removed and added meanwhile does not know the order. Any other one takes the
      // repetition for the same order.
      if document.run != order.run, status.agent?.settingsRead != order.agent?.settingsRead {
        guard let anew = try again() else { throw Self.removed(mirror) }
        order = anew
        continue
      }
      tell(document, order.run, isOnlyOne: isOnlyOne, &told)
      _ = ended.wait(atMost: pauses.pause(longest: .milliseconds(Terminal.messages.canRedraw ? 200 : 500)))
    }
    session.say("the agent goes on with the pass: 'tarn cancel \(ShellWord.quote(mirror))' ends it")
    return End(status: ExitStatus.stopped(by: Interruption.shared.received))
  }

  /// - Parameter mayBeAway: true when an agent that does not answer may be restarting.
  /// - Returns: `nil` for such an agent.
  private func status(of mirror: String, mayBeAway: Bool) throws(PassFailure) -> StatusAnswer? {
    func ask(_ client: ControlClient) throws -> StatusAnswer {
      try client.status(mirrors: [mirror], problemLimit: 10)
    }
    do throws(PassFailure) {
      return mayBeAway ? try link.tryAsking(ask) : try link.ask(ask)
    } catch {
      if error.code == "no-such-mirror" { throw Self.removed(mirror) }
      guard error.code == "no-agent" else { throw error }
      // It may have ended while it answered.
      if mayBeAway { return nil }
      let word = ShellWord.quote(mirror)
      throw PassFailure(
        .noAgent, code: "no-agent",
        "the agent ended while this command waited for its pass of \(word); what was fetched is kept",
        hint: "to go on without it: tarn sync \(word)")
    }
  }

  /// Returns the failure for a mirror that was removed while its pass was waited for.
  private static func removed(_ mirror: String) -> PassFailure {
    PassFailure(
      .folderUnusable, code: "no-such-mirror",
      "\(Printable.escape(mirror)) was taken out of the agent's settings while this command waited for its pass; what was fetched is kept",
      hint: "'tarn status' lists the mirrors; a folder is synced without an agent, too: tarn sync FOLDER")
  }

  /// What was last told in a log.
  private struct Told {
    var word = ""
    var time = Instant()
  }

  private func tell(_ document: StatusDocument, _ run: UInt64, isOnlyOne: Bool, _ told: inout Told) {
    guard !session.isQuiet, !session.isJSON else { return }
    let word = Self.word(document, run)
    let line = (isOnlyOne ? "" : "\(Printable.escape(document.name)): ") + Self.line(document, run)
    if Terminal.messages.canRedraw {
      let width = Terminal.messages.size.columns - 1
      let lines = StatusText.transfers(document, most: StatusText.mostTransfers).lines + [line]
      return session.console.draw(lines.flatMap { Columns.wrapped($0, width) })
    }
    // Outside of a terminal there is a line for each change, and one a minute, as for a pass without an
    // agent.
    let now = session.clock.monotonic()
    guard word != told.word || now - told.time >= .seconds(60) else { return }
    session.console.message("\(session.now.rfc3339) \(line)")
    told = Told(word: word, time: now)
  }

  /// Returns `the agent: transferring  43%  1 of 2 files`: the pass with this number, and how far it is.
  static func line(_ document: StatusDocument, _ run: UInt64) -> String {
    let progress = document.run == run ? document.progress.map { ProgressText.share($0) } ?? [] : []
    return "the agent: " + ([word(document, run)] + progress).joined(separator: "  ")
  }

  /// Returns the state of the pass with this number, which has not ended.
  static func word(_ document: StatusDocument, _ run: UInt64) -> String {
    switch document.runKind {
    case _ where document.run == run: document.state
    case "repair": "waiting for a repair of local changes to end"
    case "pass": "waiting for the pass before it to end"
    default: "waiting for a free slot"
    }
  }

  /// With `--verbose`: prints the events of the mirror since the order, which name the files.
  private func tellFiles(_ document: StatusDocument, since began: Timestamp) {
    guard session.isVerbose, !session.isJSON else { return }
    session.console.draw([])
    let journal = Journal(session: session, places: [(document.name, document.folder, nil)])
    _ = try? journal.show(after: nil, since: began, newest: 0)
  }

  private func show(
    _ last: StatusDocument.LastRun, _ document: StatusDocument, isOnlyOne: Bool
  ) -> ExitStatus {
    let status = ExitStatus(rawValue: last.exitStatus) ?? .failed(.defect)
    session.console.draw([])
    if session.isJSON {
      session.console.data(JSONText.line(AgentSummary(document, last, isOnlyOne: isOnlyOne)))
    } else if !session.isQuiet || status != .inSync {
      let line = (isOnlyOne ? "" : "\(Printable.escape(document.name)): ") + Message.safe(last.message)
      let isFailure = status.rawValue >= 64
      if isFailure {
        session.console.message(session.messageStyle.paint("tarn:", .bad) + " " + line)
        if let hint = last.hint { session.console.message("  hint: " + Message.safe(hint)) }
      } else {
        session.console.data(line)
      }
      if status == .partial {
        let card = StatusText.card(document, now: session.now, style: session.style)
        for text in session.sources.paths.completing(card).dropFirst() {
          session.console.data(text)
        }
      }
    }
    return status
  }
}

/// The end of an agent's pass, as a line of `sync --json`.
struct AgentSummary: Encodable {
  var schema = SyncRun.schema
  var type: String
  var exitStatus: Int32
  var inSync: Bool
  var code: String
  var message: String
  var hint: String?
  /// The counts of the pass, as in the summary of a pass without an agent; left out when it failed before it
  /// did anything.
  var counts: [String: Int]?
  var bytes: [String: UInt64]?
  /// The status of the mirror now, as in `status --json`.
  var mirror: StatusDocument

  init(_ document: StatusDocument, _ last: StatusDocument.LastRun, isOnlyOne: Bool) {
    type = isOnlyOne ? "summary" : "mirror"
    exitStatus = last.exitStatus
    inSync = last.code == "in-sync"
    code = last.code
    message = Message.safe(last.message)
    hint = last.hint.map(Message.safe)
    (counts, bytes) = (last.counts, last.bytes)
    mirror = document
  }
}
