import ArgumentParser
import TarnAgent
import TarnControl
import TarnCore
import TarnEngine
import TarnRuntime

/// `tarn events`.
struct EventsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "events",
    abstract: "Show what happened to mirrors, and follow what happens.",
    usage: "tarn events [options] [MIRROR...]",
    discussion: """
      Examples:
        tarn events                           the newest ones
        tarn events --follow podcasts         as they come, until Ctrl-C
        tarn events --after 198 podcasts      all after the event with that number
        tarn events --after CURSOR --json     all since then, for programs

      Every event has a number, which only grows in its mirror, and a cursor, which is a place in the journals of \
      all: --after one of them nothing is missed, whoever ran in between. Without a running agent the \
      ledgers are read.
      """)

  @Flag(help: "Go on with events as they come.") var follow = false
  @Option(help: ArgumentHelp("Only what came after that event: its number, or its cursor.", valueName: "n"))
  var after: String?
  @Option(help: ArgumentHelp("Without --after, so many of the newest.", valueName: "n")) var newest = 20
  @OptionGroup var common: CommonOptions
  @Argument(help: ArgumentHelp("Names or folders.", valueName: "mirror")) var mirrors: [String] = []

  func validate() throws {
    if let after, EventCursor(after) == nil {
      throw ValidationError(
        "--after: '\(Printable.escape(after))' is neither the number of an event nor a cursor")
    }
    if !(0...10_000).contains(newest) {
      throw ValidationError("--newest: a number from 0 to 10000 is expected")
    }
  }

  func run() throws {
    let session = try Session(common)
    let places = try PassTargets(session: session).places(mirrors)
    if let number = after.flatMap({ EventCursor($0) })?.number, number > 0, places.count > 1 {
      throw PassFailure(
        .usage, code: "usage",
        "--after \(number): each mirror numbers its own events, and \(places.count) are asked",
        hint: "name the mirror: tarn events --after \(number) \(ShellWord.quote(places[0].name))")
    }
    let journal = Journal(session: session, places: places)
    let cursor = try journal.show(after: after, newest: newest)
    if follow { try journal.follow(after: cursor).end() }
  }
}

/// Reads the journals of mirrors, from the agent where one answers, else from the ledgers: the places in it are the same.
struct Journal {
  let session: Session
  let places: [Tarn.Place]
  private let link: AgentLink

  init(session: Session, places: [Tarn.Place]) {
    self.session = session
    self.places = places
    link = AgentLink(session.sources)
  }

  /// Shows all after a place, or else the newest.
  ///
  /// - Returns: where to go on.
  func show(after: String?, newest: Int) throws(PassFailure) -> String {
    var cursor = after
    var last: [EventDocument] = []
    while true {
      let page = try page(after: cursor)
      cursor = page.cursor
      if after != nil {
        for event in page.events { tell(event) }
      } else {
        last = (last + page.events).suffix(newest)
      }
      guard page.hasMore else { break }
    }
    for event in last { tell(event) }
    session.console.flush()
    return cursor ?? EventCursor().text
  }

  /// Until a signal. An agent that ends, or begins, in the meantime makes no gap.
  func follow(after start: String) throws(PassFailure) -> ExitStatus {
    let ended = Gate()
    let clients = Locked<ControlClient?>(nil)
    Interruption.shared.arm(StopFlag()) {
      ended.open()
      clients.withLock { $0 }?.end()
    } report: {
    }
    defer { Interruption.shared.disarm() }
    var cursor = start
    while !ended.isOpen {
      var reached = cursor
      _ = try? link.tryAsking { client in
        clients.withLock { $0 = client }
        _ = try client.follow(after: reached, mirrors: places.map(\.name)) { event in
          reached = event.cursor
          show(event)
          return !ended.isOpen
        }
      }
      cursor = reached
      cursor = try catchUp(after: cursor)
      if ended.wait(nanoseconds: 1_000_000_000) { break }
    }
    return ExitStatus.stopped(by: Interruption.shared.received)
  }

  private func catchUp(after start: String) throws(PassFailure) -> String {
    var cursor = start
    while true {
      let page = try page(after: cursor)
      for event in page.events { show(event) }
      cursor = page.cursor
      guard page.hasMore else { return cursor }
    }
  }

  private func page(after cursor: String?) throws(PassFailure) -> EventPage {
    let names = places.map(\.name)
    do throws(PassFailure) {
      let answer = try link.tryAsking { try $0.events(after: cursor, mirrors: names, limit: 1000) }
      if let answer { return answer }
    } catch {
      // The ledgers are asked instead; of what has none here there would be nothing, as if nothing had happened.
      if error.kind == .permission, let word = names.first(where: { link.isOnlyTheAgents($0, session) }) {
        throw link.refusal(of: word, error)
      }
    }
    return try session.tarn.events(
      of: places, after: cursor.flatMap { EventCursor($0) } ?? EventCursor(), limit: 1000)
  }

  private func show(_ event: EventDocument) {
    tell(event)
    session.console.flush()
  }

  private func tell(_ event: EventDocument) {
    session.console.data(session.isJSON ? JSONText.line(event) : Self.line(event, session.style), now: false)
  }

  /// `2026-11-21T22:00:00Z  podcasts  fetched  a.mp3 (1.2 MiB)`.
  static func line(_ event: EventDocument, _ style: Style) -> String {
    let bytes = event.bytes.map { " (\(Units.show($0)))" } ?? ""
    let detail = event.detail.map { ": \(Message.safe($0))" } ?? ""
    let path = event.path.map { "  \(Message.safe($0))" } ?? ""
    return
      "\(style.paint(event.time, .faint))  \(Printable.escape(event.mirror))  \(event.code)\(path)\(bytes)\(detail)"
  }
}
