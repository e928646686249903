import ArgumentParser
import TarnAgent
import TarnConfig
import TarnControl
import TarnCore
import TarnEngine
import TarnRuntime

/// The command `tarn events`.
struct EventsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "events",
    abstract: "Show what happened to mirrors, and follow what happens.",
    usage: "tarn events [options] [MIRROR...]",
    discussion: """
      Examples:
        tarn events                           the newest events
        tarn events --follow podcasts         events as they come, until Ctrl-C
        tarn events --since 1h                all events of the last hour
        tarn events --after 198 podcasts      all events after number 198
        tarn events --after CURSOR --json     all events since then, for programs

      Each event has a number, which only grows within its mirror. Each event also has a cursor, which is a \
      position in the journals of all mirrors. --json prints both. With --after CURSOR a program misses nothing, \
      even if it was away. If no agent runs, the command reads the ledgers.
      """)

  @Flag(help: "Print events as they come, until Ctrl-C.") var follow = false
  @Option(help: ArgumentHelp("Print only events after this number or cursor.", valueName: "n"))
  var after: String?
  @Option(
    help: ArgumentHelp("Print only events of the last 90m, 24h or 7d, for example.", valueName: "duration"))
  var since: String?
  @Option(
    help: ArgumentHelp(
      "Without --after and --since: print this many of the newest events.", valueName: "n"))
  var newest = 20
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("Names or folders.", valueName: "mirror"), completion: .mirror) var mirrors:
    [String] = []

  func validate() throws {
    if let after, EventCursor(after) == nil {
      throw ValidationError(
        "--after: '\(Printable.escape(after))' is neither the number of an event nor a cursor")
    }
    if let since, Units.duration(since) == nil {
      throw ValidationError(
        "--since: '\(Printable.escape(since))' is not a duration such as 90m, 24h or 7d")
    }
    if since != nil, after != nil { throw ValidationError("--since and --after cannot be combined") }
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
    let begin = since.flatMap(Units.duration).map { session.now.adding(seconds: -$0) }
    let (cursor, count) = try journal.show(after: after, since: begin, newest: newest)
    if journal.isUnread { return try journal.status.end() }
    // Who waits for events of a mirror that never begins has to know why.
    if let failure = report.failure {
      if count == 0, !follow { throw failure }
      session.console.message(failure.message + (failure.hint.map { "; \($0)" } ?? ""))
    }
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
  /// Returns the mirrors to show. Without words these include mirrors of faulty settings, and those that only
  /// the agent knows.
  ///
  /// - Throws: the errors of the settings, when they have any and no mirror is known.
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

/// Reads the journals of mirrors, from the agent when one answers, otherwise from the ledgers. Both use the
/// same cursors.
struct Journal {
  let session: Session
  /// True when all known mirrors are meant, also later ones. An agent that has all of them reports only its
  /// own. A mirror made outside of it is reported once the agent ends or its mirrors change.
  private let isAll: Bool
  private let given: [Tarn.Place]
  /// Those of the places that no settings name. Without an agent that knows them they must be mirrors.
  var unsure: [Tarn.Place] = []
  /// The mirrors that were found later; those that cannot be read are left out.
  private let found = Locked<[Tarn.Place]>([])
  /// Those that settings with errors may have for mirrors. No other agent is asked about them, for it may have such a name for
  /// another one.
  private let unclear: [Tarn.Place]
  /// Those that an agent may be asked about.
  private var places: [Tarn.Place] { clear(given) + found.withLock { $0 } }
  /// The time of the beginning: of mirrors found later only newer events are shown.
  private let began: Timestamp
  private let link: AgentLink
  /// The agent's names for its mirrors, by their folders; `nil` until it was asked.
  private let agentNames = Locked<[String: String]?>(nil)
  /// True when an agent has all mirrors that are meant; `nil` until it was asked.
  private let isAgents = Locked<Bool?>(nil)
  /// True once the agent did not answer; then it is not waited for again.
  private let isAgentSilent = Locked(false)
  /// The reasons why mirrors could not be read, each once, with their statuses.
  private let told = Locked<[(message: String, status: ExitStatus)]>([])

  init(session: Session, places: [Tarn.Place], isAll: Bool = false) {
    self.session = session
    self.isAll = isAll
    given = places
    began = session.now
    let all = AgentLink(session.sources)
    let unclear = places.filter { $0.name == $0.folder && session.sources.checked().mayName($0.name) }
    // The agent of these settings goes on with older ones.
    let asksOwn =
      !unclear.isEmpty && (unclear.count == places.count || (try? all.own.status(problemLimit: 0)) != nil)
    link = asksOwn ? all.own : all
    self.unclear = asksOwn ? [] : unclear
  }

  private func clear(_ places: [Tarn.Place]) -> [Tarn.Place] {
    places.filter { place in !unclear.contains { $0.name == place.name } }
  }

  /// The worst status of what could not be read so far.
  var status: ExitStatus { ExitStatus.worst(told.withLock { $0.map(\.status) }) }

  /// True when none of the given mirrors can be read.
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

  /// Shows all events after a place or since a time, or else the newest.
  ///
  /// - Returns: the cursor to continue with, and the number of events shown.
  func show(
    after: String?, since: Timestamp?, newest: Int
  ) throws(PassFailure) -> (cursor: String, count: Int) {
    var cursor = after
    var last: [EventDocument] = []
    var count = 0
    while true {
      let page = try page(after: cursor, unsure: unsure)
      cursor = page.cursor
      if after != nil || since != nil {
        let events = page.events.filter { Self.isNew($0, since: since) }
        for event in events { tell(event) }
        count += events.count
      } else {
        last = (last + page.events).suffix(newest)
      }
      guard page.hasMore else { break }
    }
    for event in last { tell(event) }
    session.console.flush()
    return (cursor ?? EventCursor().text, count + last.count)
  }

  /// True for an event of that time or later. An event without a time that can be read is shown.
  static func isNew(_ event: EventDocument, since: Timestamp?) -> Bool {
    guard let since, let time = Timestamp(rfc3339: event.time) else { return true }
    return time.seconds >= since.seconds
  }

  /// Follows the events until a signal. No event is lost when an agent ends or begins meanwhile.
  func follow(after start: String) throws(PassFailure) -> ExitStatus {
    let follower = AgentFollower()
    var cursor = start
    return try follower.run { () throws(PassFailure) in
      var reached = cursor
      // Another agent may have started, with fewer mirrors.
      isAgents.withLock { if $0 == true { $0 = nil } }
      _ = try? link.tryAsking { client in
        guard follower.willWait(client) else { return }
        _ = try client.follow(after: reached, mirrors: names(for: client, after: reached)) { event in
          if isNews(event, after: reached, start) { show(event) }
          reached = event.cursor
          return !follower.isOver
        }
      }
      cursor = reached
      lookForOthers()
      cursor = try catchUp(after: cursor, start)
    }
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

  /// True for an event to show. For a mirror that was found later, which may be old, only events since the
  /// beginning are.
  ///
  /// - Parameter start: the cursor of the beginning, which names the journals that existed then.
  private func isNews(_ event: EventDocument, after previous: String, _ start: String) -> Bool {
    guard isAll, let time = Timestamp(rfc3339: event.time), time.seconds < began.seconds,
      let place = EventCursor(event.cursor), let previous = EventCursor(previous),
      let start = EventCursor(start)
    else { return true }
    return place.isOfJournal(in: start, after: previous)
  }

  /// Reads a page, and reports what cannot be read.
  ///
  /// - Parameter unsure: places that are reported when they are no mirrors.
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
        if let answer {
          if let failure = unclear.isEmpty ? nil : SettingsReport(session).failure {
            for place in unclear { tell(EventPage.Unread(place.name, failure)) }
          }
          return answer
        }
      }
    } catch {
      if error.code == PassFailure.silentAgent {
        isAgentSilent.withLock { $0 = true }
        session.say("tarn: \(Message.safe(error.message)); this is what the ledgers say")
      }
      // The ledgers are asked instead. A mirror without a ledger here would show no events, as if nothing had
      // happened.
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

  /// Returns the names or folders to ask an agent for. No name means all of its mirrors, also later ones; it is used
  /// when the agent has all that are meant.
  private func names(for client: ControlClient, after cursor: String?) throws -> [String] {
    // A named mirror goes by its folder, for an agent may have its name for another one.
    let names = places.map { $0.name == $0.folder ? $0.name : resolved($0) }
    guard isAll, cursor.flatMap({ EventCursor($0) })?.number ?? 0 == 0 else { return names }
    if let known = isAgents.withLock({ $0 }) { return known ? [] : names }
    return setAgentNames(try client.status(problemLimit: 0).places) ? [] : names
  }

  /// - Parameter its: the agent's mirrors.
  /// - Returns: whether they include all that are meant.
  @discardableResult
  private func setAgentNames(_ its: [Tarn.Place]) -> Bool {
    let names = Dictionary(its.map { (resolved($0), $0.name) }) { first, _ in first }
    let hasAll = places.allSatisfy { names[resolved($0)] != nil }
    agentNames.withLock { $0 = names }
    isAgents.withLock { $0 = hasAll }
    return hasAll
  }

  /// Looks for mirrors that were not known before, by their folders or by an agent.
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

  /// Returns the places with the agent's names when one answers. It may not know all of them, and then
  /// reports none.
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

  /// Returns the line of an event: `2026-11-21T22:00:00Z  podcasts  fetched  a.mp3 (1.2 MiB)`.
  static func line(_ event: EventDocument, _ style: Style) -> String {
    let bytes = event.bytes.map { " (\(Units.show($0)))" } ?? ""
    let detail = event.detail.map { ": \(Message.safe($0))" } ?? ""
    let path = event.path.map { "  \(Message.safe($0))" } ?? ""
    return
      "\(style.paint(event.time, .faint))  \(Printable.escape(event.mirror))  \(event.code)\(path)\(bytes)\(detail)"
  }
}
