import ArgumentParser
import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// `tarn status`.
struct StatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show how mirrors are, also beside a running sync.",
    usage: "tarn status [options] [MIRROR...]",
    discussion: """
      Examples:
        tarn status                              the mirror you are in, or all
        tarn status --watch /srv/iso             live
        tarn status --check --max-age 26h        for monitoring: 0 or 3
        tarn status --json | jq .mirrors[].state

      --check of all mirrors leaves out those whose settings say dry-run, for their passes bring nothing into sync.
      """)

  @Flag(help: "Print one line, or one for each mirror whose last success is too old; end with 3 then.")
  var check = false
  @Option(help: ArgumentHelp("How old is too old for --check: 90m, 24h, 7d.", valueName: "duration"))
  var maxAge = "24h"
  @Flag(help: "Print again each second, until q or Ctrl-C.") var watch = false
  @OptionGroup var record: StateOption
  @OptionGroup var common: CommonOptions
  @Argument(help: ArgumentHelp("Names or folders.", valueName: "mirror"), completion: .directory) var mirrors:
    [String] = []

  func validate() throws {
    if Units.duration(maxAge) == nil {
      throw ValidationError(
        "--max-age: '\(Printable.escape(maxAge))' is not a duration such as 90m, 24h or 7d")
    }
    if check, watch { throw ValidationError("--check and --watch exclude each other") }
  }

  func run() throws {
    let session = try Session(common)
    try session.refuseMissingSettings()
    if check { return try self.check(session).end() }
    if watch { return try StatusWatch(session: session).run { read(session) }.end() }
    let reading = read(session)
    // A failure alone leaves standard output empty; some mirrors beside a failure are a document.
    if session.isJSON, !reading.documents.isEmpty || !reading.isFailed {
      session.console.data(JSONText.document(StatusAnswer(agent: reading.agent, mirrors: reading.documents)))
    } else if !session.isJSON {
      for line in lines(reading, session) { session.console.data(line, now: false) }
    }
    session.console.flush()
    try reading.tellFailures(session).end()
  }

  private func lines(_ reading: Reading, _ session: Session) -> [String] {
    let documents = reading.documents.filter { !session.isQuiet || !StatusText.isCalm($0) }
    let (now, style) = (session.now, session.style)
    // What is meant cannot be told of: only why is said.
    if reading.documents.isEmpty, !mirrors.isEmpty { return [] }
    var head = Self.head(reading, session)
    if reading.documents.isEmpty, reading.agent != nil, !session.isQuiet {
      head.append("no mirrors: its settings name none, and no other is known here")
    }
    if documents.count == 1 {
      return head + StatusText.card(documents[0], now: now, style: style, isLong: session.isVerbose)
    }
    return head + (documents.isEmpty ? [] : StatusText.table(documents, now: now, style: style))
  }

  /// What is said of the agent, if there is one.
  static func head(_ reading: Reading, _ session: Session) -> [String] {
    guard !session.isQuiet else { return [] }
    guard let agent = reading.agent else {
      return reading.agentFailure?.code == PassFailure.silentAgent ? [AgentText.silent(session.style)] : []
    }
    let check = session.sources.paths.command("config check")
    return AgentText.lines(agent, now: session.now, style: session.style, check: check)
  }

  /// What could be read, and why the rest could not.
  struct Reading {
    var agent: AgentDocument?
    /// Why no agent was asked, where there is one; nil for no agent.
    var agentFailure: PassFailure?
    var documents: [StatusDocument] = []
    var failures: [PassFailure] = []
    /// Settings with errors, while no agent goes on with older ones.
    var faulty: SettingsReport?
    /// Which mirrors there are is for these settings to say: nobody named any.
    var needsSettings = false

    /// There is something to look at, and may be more in a moment.
    var isWorthWatching: Bool { !documents.isEmpty || agent != nil }

    var isFailed: Bool { !failures.isEmpty || (needsSettings && faulty != nil) }

    /// Says all that failed, with each error of the settings.
    func tellFailures(_ session: Session) -> ExitStatus {
      var statuses = failures.map(session.tell)
      guard let faulty, let failure = faulty.failure else { return ExitStatus.worst(statuses) }
      if session.isJSON {
        _ = session.tell(failure)
      } else {
        faulty.tellProblems(session)
      }
      if needsSettings { statuses.append(.configuration) }
      return ExitStatus.worst(statuses)
    }
  }

  /// From the agent where it has the mirror, else from the ledger.
  private func read(_ session: Session) -> Reading {
    var reading = Reading()
    var known: [StatusDocument] = []
    do throws(PassFailure) {
      if let answer = try AgentLink(session.sources).status(problemLimit: problemLimit(session)) {
        reading.agent = answer.agent
        known = answer.mirrors
      }
    } catch {
      // A ledger may still be readable.
      reading.agentFailure = error
      let isMeant = !mirrors.isEmpty || session.sources.paths.overrides.contains { $0.name == "socket" }
      let isTold = isMeant || error.kind == .defect || error.code == PassFailure.silentAgent
      if isTold { reading.failures.append(error) }
    }
    if reading.agent == nil {
      let report = SettingsReport(session)
      reading.faulty = report.failure == nil ? nil : report
      reading.needsSettings = mirrors.isEmpty
    }
    do throws(PassFailure) {
      for place in try places(session, known, faulty: reading.faulty) {
        if let document = known.first(where: { Self.isOf($0, place, session) }) {
          reading.documents.append(document)
          continue
        }
        do throws(PassFailure) {
          reading.documents.append(try document(place, session))
        } catch {
          if let document = standIn(for: place, error, session) {
            reading.documents.append(document)
            continue
          }
          // One of these settings that was never synced has nothing to tell.
          let isNone = ["no-folder", "not-a-mirror"].contains(error.code)
          guard mirrors.isEmpty, reading.faulty != nil, isNone else {
            reading.failures.append(error)
            continue
          }
        }
      }
    } catch {
      take(error, into: &reading)
    }
    return reading
  }

  /// That no mirror is known is no failure of an agent that has none; and where one may not be asked, that is why.
  private func take(_ failure: PassFailure, into reading: inout Reading) {
    guard failure.code == "no-mirror" else { return reading.failures.append(failure) }
    // The settings, which may name some, are told all the same.
    guard reading.agent == nil, reading.faulty == nil else { return }
    if let agentFailure = reading.agentFailure {
      if reading.failures.isEmpty { reading.failures.append(agentFailure) }
    } else {
      reading.failures.append(failure)
    }
  }

  /// The mirrors that are meant; without words also those that only the agent knows, or settings with errors.
  private func places(
    _ session: Session, _ known: [StatusDocument], faulty: SettingsReport?
  ) throws(PassFailure) -> [Tarn.Place] {
    let targets = PassTargets(session: session)
    if let faulty { return try targets.places(mirrors, named: faulty.loaded.places) }
    guard mirrors.isEmpty, !known.isEmpty,
      session.tarn.mirrorFolder(containing: session.tarn.workingDirectory) == nil
    else { return try targets.places(mirrors) }
    let found = (try? targets.places([])) ?? []
    let others = found.filter { place in !known.contains { Self.isOf($0, place, session) } }
    return known.map { ($0.name, $0.folder, nil) } + others
  }

  private static func isOf(_ document: StatusDocument, _ place: Tarn.Place, _ session: Session) -> Bool {
    document.name.utf8.elementsEqual(place.name.utf8)
      || document.folder.utf8.elementsEqual(session.tarn.absolute(place.folder).utf8)
  }

  private func problemLimit(_ session: Session) -> Int { session.isVerbose ? PassReport.mostProblems : 20 }

  private func document(_ place: Tarn.Place, _ session: Session) throws(PassFailure) -> StatusDocument {
    if record.state == nil, let settings = session.configured(place) {
      return try session.tarn.status(
        of: settings, among: session.configuredNames, record: session.sources.paths.state, now: session.now,
        problemLimit: problemLimit(session))
    }
    var document = try session.tarn.status(
      folder: place.folder, state: record.state ?? place.state, problemLimit: problemLimit(session))
    document.name = place.name == place.folder ? document.folder : place.name
    return document
  }

  /// Tells of a mirror that this user has, and that is not there to be asked; for monitoring, of any that cannot be read.
  private func standIn(
    for place: Tarn.Place, _ failure: PassFailure, _ session: Session
  ) -> StatusDocument? {
    let folder = session.tarn.absolute(place.folder)
    let isGone = ["no-folder", "not-a-mirror", "not-a-folder"].contains(failure.code)
    let loss = isGone ? session.tarn.lossHint(folder) : nil
    guard check ? failure.kind != .usage : mirrors.isEmpty && loss != nil else { return nil }
    var document = StatusDocument(
      name: place.name == place.folder ? folder : place.name, feed: "", folder: folder, state: "failing")
    (document.lastFailure, document.hint) = (failure.message, loss ?? failure.hint)
    return document
  }

  /// Single mirrors, not all that are known: those are judged that only plan, too.
  private func areMeant(_ session: Session) -> Bool {
    !mirrors.isEmpty || session.tarn.mirrorFolder(containing: session.tarn.workingDirectory) != nil
  }

  private func check(_ session: Session) throws -> ExitStatus {
    let reading = read(session)
    let fault = reading.needsSettings ? reading.faulty?.failure : nil
    let failures = [fault].compactMap { $0 } + reading.failures
    if let wrong = failures.first(where: { $0.kind == .usage }) { throw wrong }
    let documents = reading.documents
    let judged = documents.filter { areMeant(session) || $0.dryRun != true }
    let result = StatusText.check(
      judged, leftOut: documents.count - judged.count, maxAge: Units.duration(maxAge) ?? 0, now: session.now)
    let isGood = result.isGood && failures.isEmpty
    if session.isJSON {
      session.console.data(JSONText.document(StatusAnswer(agent: reading.agent, mirrors: documents)))
      for failure in failures { _ = session.tell(failure) }
    } else if !session.isQuiet || !isGood {
      let isSaid = failures.isEmpty || !documents.isEmpty && !result.isGood
      let lines = failures.map { "late: \(Message.safe($0.message))" } + (isSaid ? result.lines : [])
      for line in lines { session.console.data(line) }
    }
    return isGood ? .inSync : .partial
  }
}
