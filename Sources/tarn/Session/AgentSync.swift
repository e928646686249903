import TarnAgent
import TarnControl
import TarnCore
import TarnEngine
import TarnRuntime

/// A pass that the agent makes, followed from here: for `tarn sync MIRROR` and `tarn sync FEED FOLDER` of a mirror that an
/// agent looks after.
struct AgentSync {
  let session: Session
  let link: AgentLink

  /// Asks for a pass, and shows how far it is until it has ended. A signal ends the watching, not the pass.
  ///
  /// - Returns: nil when no agent has this mirror.
  /// - Throws: also `usage`, when the agent's mirror has another feed, or other options than those given.
  func run(_ request: SyncRequest, isOnlyOne: Bool) throws(PassFailure) -> ExitStatus? {
    try session.tarn.refuseEmptyNames(request.folder, request.state)
    let expected = request.name == nil ? try expectation(request) : nil
    // What follows a FEED is a folder, whatever mirrors are called.
    let isFolder = request.name == nil && request.feed != nil
    let word = request.name ?? (isFolder ? session.tarn.absolute(request.folder) : request.folder)
    let answer = try link.tryAsking(about: word, session) { client, mirror in
      var command = ControlCommand(.sync, ControlTarget(mirror: mirror))
      command.expected = expected
      return try client.perform(command)
    }
    guard let answer, let run = answer.run else { return nil }
    return try follow(answer.mirror ?? word, run, isOnlyOne: isOnlyOne)
  }

  /// What was given beside the folder; nil for nothing.
  private func expectation(_ request: SyncRequest) throws(PassFailure) -> ControlExpectation? {
    var expected = ControlExpectation()
    expected.feed = try request.feed.map { text throws(PassFailure) in try session.tarn.feedText(text) }
    if !request.options.values.isEmpty { expected.options = request.options.encoded }
    if request.adopt { expected.adopts = true }
    expected.state = request.state.map(session.tarn.absolute)
    return expected == ControlExpectation() ? nil : expected
  }

  private func follow(_ mirror: String, _ run: UInt64, isOnlyOne: Bool) throws(PassFailure) -> ExitStatus {
    let ended = Gate()
    Interruption.shared.arm(StopFlag()) {
      ended.open()
    } report: {
    }
    defer {
      Interruption.shared.disarm()
      session.console.draw([])
    }
    var state = ""
    while !ended.isOpen {
      let document = try link.ask { try $0.status(mirrors: [mirror], problemLimit: 10) }.mirrors.first
      guard let document else { break }
      if let last = document.lastRun, last.number >= run { return show(last, document, isOnlyOne: isOnlyOne) }
      tell(document, run, &state)
      _ = ended.wait(nanoseconds: Terminal.messages.canRedraw ? 200_000_000 : 500_000_000)
    }
    session.say("the agent goes on with the pass: 'tarn cancel \(ShellWord.quote(mirror))' ends it")
    return ExitStatus.stopped(by: Interruption.shared.received)
  }

  private func tell(_ document: StatusDocument, _ run: UInt64, _ state: inout String) {
    guard !session.isQuiet, !session.isJSON else { return }
    let now = document.run == run ? document.state : "waiting for a place"
    if Terminal.messages.canRedraw {
      let width = Terminal.messages.size.columns - 1
      session.console.draw(
        (StatusText.transfers(document).lines + ["the agent: \(now)"]).map { Columns.front($0, width) })
    } else if now != state {
      session.console.message("\(session.now.rfc3339) the agent: \(now)")
    }
    state = now
  }

  private func show(
    _ last: StatusDocument.LastRun, _ document: StatusDocument, isOnlyOne: Bool
  ) -> ExitStatus {
    let status = ExitStatus(rawValue: last.exitStatus) ?? .defect
    session.console.draw([])
    if session.isJSON {
      session.console.data(JSONText.line(AgentSummary(document, last, isOnlyOne: isOnlyOne)))
    } else if !session.isQuiet || status != .inSync {
      let line = (isOnlyOne ? "" : "\(Printable.escape(document.name)): ") + Message.safe(last.message)
      let isFailure = status.rawValue >= 64
      if isFailure {
        session.console.message(session.messageStyle.paint("tarn:", .bad) + " " + line)
      } else {
        session.console.data(line)
      }
      if status == .partial {
        for text in StatusText.card(document, now: session.now, style: session.style).dropFirst() {
          session.console.data(text)
        }
      }
    }
    return status
  }
}

/// The end of a pass of the agent's, as a line of `sync --json`.
struct AgentSummary: Encodable {
  var schema = SyncRun.schema
  var type: String
  var exitStatus: Int32
  var inSync: Bool
  var code: String
  var message: String
  /// How the mirror is now, as in `status --json`.
  var mirror: StatusDocument

  init(_ document: StatusDocument, _ last: StatusDocument.LastRun, isOnlyOne: Bool) {
    type = isOnlyOne ? "summary" : "mirror"
    exitStatus = last.exitStatus
    inSync = last.exitStatus == 0
    code = last.code
    message = Message.safe(last.message)
    mirror = document
  }
}
