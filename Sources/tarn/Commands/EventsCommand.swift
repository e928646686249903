import ArgumentParser
import TarnAgent
import TarnConfig
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
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("Names or folders.", valueName: "mirror"), completion: .mirror) var mirrors:
    [String] = []

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
    try session.refuseMissingSettings()
    let report = SettingsReport(session)
    let places = try places(session, report)
    if let number = after.flatMap({ EventCursor($0) })?.number, number > 0, places.count > 1 {
      throw PassFailure(
        .usage, code: "usage",
        "--after \(number): each mirror numbers its own events, and \(places.count) are asked",
        hint: "name the mirror: tarn events --after \(number) \(ShellWord.quote(places[0].name))")
    }
    let isAll =
      mirrors.isEmpty && session.tarn.mirrorFolder(containing: session.tarn.workingDirectory) == nil
    var journal = Journal(session: session, places: places, isAll: isAll)
    let named = Set(report.loaded.places.map(\.name))
    journal.unsure = mirrors.isEmpty ? [] : places.filter { !named.contains($0.name) }
    let (cursor, count) = try journal.show(after: after, newest: newest)
    if journal.isUnread { return try journal.status.end() }
    if follow { return try journal.follow(after: cursor).end() }
    if session.isJSON {
      let summary = JournalSummary(exitStatus: journal.status.rawValue, events: count, cursor: cursor)
      session.console.data(JSONText.line(summary))
      session.console.flush()
    }
    try journal.status.end()
  }
}

extension EventsCommand {
  /// The mirrors that are meant; without words also those that settings with errors name, or only the agent knows.
  ///
  /// - Throws: where none is known and the settings have errors, what those are.
  private func places(_ session: Session, _ report: SettingsReport) throws(PassFailure) -> [Tarn.Place] {
    let targets = PassTargets(session: session)
    let mirrors = mirrors.map { session.mirror(around: $0) }
    do throws(PassFailure) {
      guard report.failure != nil else { return try targets.places(mirrors) }
      return try targets.places(mirrors, named: report.loaded.places)
    } catch {
      guard error.code == "no-mirror" else { throw error }
      if let places = try AgentLink(session.sources).places() { return places }
      throw report.failure ?? error
    }
  }
}

/// Reads the journals of mirrors, from the agent where one answers, else from the ledgers: the places in it are the same.
struct Journal {
  let session: Session
  /// All that are known are meant, those that come later among them. Where an agent has all of them it tells of its own alone: of
  /// one that is made outside of it is heard when the agent ends, or its mirrors are others.
  private let isAll: Bool
  private let given: [Tarn.Place]
  /// Of these, those that no settings name: where no agent tells of them they have to be mirrors.
  var unsure: [Tarn.Place] = []
  /// What was not known at the beginning: what of it cannot be read is left out.
  private let found = Locked<[Tarn.Place]>([])
  private var places: [Tarn.Place] { given + found.withLock { $0 } }
  /// What was found has no older news.
  private let began: Timestamp
  private let link: AgentLink
  /// What the agent calls its mirrors, by their folders; nil until it was asked.
  private let agentNames = Locked<[String: String]?>(nil)
  /// An agent has all that are meant; nil until it was asked.
  private let isAgents = Locked<Bool?>(nil)
  /// It does not answer, and is not waited for again.
  private let isAgentSilent = Locked(false)
  /// Why mirrors could not be read, each told once, and with which status.
  private let told = Locked<[(message: String, status: ExitStatus)]>([])

  init(session: Session, places: [Tarn.Place], isAll: Bool = false) {
    self.session = session
    self.isAll = isAll
    given = places
    began = session.now
    link = AgentLink(session.sources)
  }

  /// Of what could not be read so far.
  var status: ExitStatus { ExitStatus.worst(told.withLock { $0.map(\.status) }) }

  /// None of those that are meant can be read.
  var isUnread: Bool {
    let count = told.withLock(\.count)
    return count > 0 && count >= given.count
  }

  private func tell(_ unread: EventPage.Unread) {
    let failure = unread.failure
    guard !told.withLock({ $0.contains { $0.message == failure.message } }) else { return }
    let status = session.tell(failure, of: given.count > 1 ? unread.mirror : nil)
    told.withLock { $0.append((failure.message, status)) }
  }

  /// Shows all after a place, or else the newest.
  ///
  /// - Returns: where to go on, and how many were shown.
  func show(after: String?, newest: Int) throws(PassFailure) -> (cursor: String, count: Int) {
    var cursor = after
    var last: [EventDocument] = []
    var count = 0
    while true {
      let page = try page(after: cursor, unsure: unsure)
      cursor = page.cursor
      if after != nil {
        for event in page.events { tell(event) }
        count += page.events.count
      } else {
        last = (last + page.events).suffix(newest)
      }
      guard page.hasMore else { break }
    }
    for event in last { tell(event) }
    session.console.flush()
    return (cursor ?? EventCursor().text, count + last.count)
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
      // Another agent may have come, which has fewer.
      isAgents.withLock { if $0 == true { $0 = nil } }
      _ = try? link.tryAsking { client in
        clients.withLock { $0 = client }
        _ = try client.follow(after: reached, mirrors: names(for: client, after: reached)) { event in
          if isNews(event, after: reached, start) { show(event) }
          reached = event.cursor
          return !ended.isOpen
        }
      }
      cursor = reached
      lookForOthers()
      cursor = try catchUp(after: cursor, start)
      if ended.wait(atMost: .seconds(1)) { break }
    }
    return ExitStatus.stopped(by: Interruption.shared.received)
  }

  private func catchUp(after reached: String, _ start: String) throws(PassFailure) -> String {
    var cursor = reached
    while true {
      let page = try page(after: cursor)
      for event in page.events {
        if isNews(event, after: cursor, start) { show(event) }
        cursor = event.cursor
      }
      cursor = page.cursor
      guard page.hasMore else { return cursor }
    }
  }

  /// Of a mirror that was found, which may be an old one, only what came since all this began.
  ///
  /// - Parameter start: names the journals that were there.
  private func isNews(_ event: EventDocument, after previous: String, _ start: String) -> Bool {
    guard isAll, let time = Timestamp(rfc3339: event.time), time.seconds < began.seconds,
      let place = EventCursor(event.cursor), let previous = EventCursor(previous),
      let start = EventCursor(start)
    else { return true }
    return place.isOfJournal(in: start, after: previous)
  }

  /// Tells of what cannot be read.
  ///
  /// - Parameter unsure: told when they are no mirrors.
  private func page(after cursor: String?, unsure: [Tarn.Place] = []) throws(PassFailure) -> EventPage {
    let page = try read(after: cursor, unsure: unsure)
    for unread in page.unread ?? [] { tell(unread) }
    return page
  }

  private func read(after cursor: String?, unsure: [Tarn.Place]) throws(PassFailure) -> EventPage {
    do throws(PassFailure) {
      if !isAgentSilent.withLock({ $0 }) {
        let answer = try link.tryAsking { client in
          try client.events(after: cursor, mirrors: self.names(for: client, after: cursor), limit: 1000)
        }
        if let answer { return answer }
      }
    } catch {
      if error.code == PassFailure.silentAgent {
        isAgentSilent.withLock { $0 = true }
        session.say("tarn: \(Message.safe(error.message)); this is what the ledgers say")
      }
      // The ledgers are asked instead; of what has none here there would be nothing, as if nothing had happened.
      if error.kind == .permission,
        let place = given.first(where: { link.isOnlyTheAgents($0.name, session) })
      {
        throw link.refusal(of: place.name, error)
      }
    }
    for place in unsure {
      do throws(PassFailure) {
        try session.tarn.refuseNoMirror(place)
      } catch {
        tell(EventPage.Unread(place.name, error))
      }
    }
    return session.tarn.events(
      of: named(given), and: named(found.withLock { $0 }),
      after: cursor.flatMap { EventCursor($0) } ?? EventCursor(), limit: 1000)
  }

  /// What an agent is asked for. No name means all of its mirrors, also those that come later: where it has all that are meant.
  private func names(for client: ControlClient, after cursor: String?) throws -> [String] {
    let names = places.map(\.name)
    guard isAll, cursor.flatMap({ EventCursor($0) })?.number ?? 0 == 0 else { return names }
    if let known = isAgents.withLock({ $0 }) { return known ? [] : names }
    return setAgentNames(try client.status(problemLimit: 0).places) ? [] : names
  }

  /// - Parameter its: the agent's mirrors.
  /// - Returns: whether they are all that are meant.
  @discardableResult
  private func setAgentNames(_ its: [Tarn.Place]) -> Bool {
    let names = Dictionary(its.map { (resolved($0), $0.name) }) { first, _ in first }
    let hasAll = places.allSatisfy { names[resolved($0)] != nil }
    agentNames.withLock { $0 = names }
    isAgents.withLock { $0 = hasAll }
    return hasAll
  }

  /// Mirrors that were not known before: by their folders, or by an agent.
  private func lookForOthers() {
    guard isAll else { return }
    let its = agentsPlaces()
    let others = (its ?? []) + session.tarn.knownFolders().map { ($0, $0, nil) }
    var known = Set(places.map(resolved))
    let new = others.filter { known.insert(resolved($0)).inserted }
    found.withLock { $0 += new }
    isAgents.withLock { $0 = nil }
    if let its { setAgentNames(its) }
  }

  private func agentsPlaces() -> [Tarn.Place]? {
    isAgentSilent.withLock { $0 } ? nil : try? link.places()
  }

  private func resolved(_ place: Tarn.Place) -> String {
    session.tarn.resolved(session.tarn.absolute(place.folder))
  }

  /// The places, by the agent's names where one answers: it may not know them all, and then tells of none.
  private func named(_ places: [Tarn.Place]) -> [Tarn.Place] {
    if agentNames.withLock({ $0 == nil }), let its = agentsPlaces() { setAgentNames(its) }
    let names = agentNames.withLock { $0 ?? [:] }
    return places.map { place in (names[resolved(place)] ?? place.name, place.folder, place.state) }
  }

  private func show(_ event: EventDocument) {
    tell(event)
    session.console.flush()
  }

  private func tell(_ event: EventDocument) {
    session.console.data(
      session.isJSON ? JSONText.line(JournalLine(event: event)) : Self.line(event, session.style), now: false)
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
