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
        tarn status --check --max-age 26h        for monitoring: one line, 0 or 3
        tarn status --json | jq .mirrors[].state
      """)

  @Flag(help: "Print one line; end with 3 when a mirror's last success is too old.") var check = false
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
    let head = Self.head(reading, session)
    if documents.count == 1 { return head + StatusText.card(documents[0], now: now, style: style) }
    return head + (documents.isEmpty ? [] : StatusText.table(documents, now: now, style: style))
  }

  /// What is said of the agent, if there is one.
  static func head(_ reading: Reading, _ session: Session) -> [String] {
    guard let agent = reading.agent, !session.isQuiet else { return [] }
    let check = session.sources.paths.command("config check")
    return AgentText.lines(agent, now: session.now, style: session.style, check: check)
  }

  /// What could be read, and why the rest could not.
  struct Reading {
    var agent: AgentDocument?
    var documents: [StatusDocument] = []
    var failures: [PassFailure] = []
    /// Settings with errors, while no agent goes on with older ones.
    var faulty: SettingsReport?
    /// Which mirrors there are is for these settings to say: nobody named any.
    var needsSettings = false

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
      if !mirrors.isEmpty || error.kind == .defect { reading.failures.append(error) }
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
          // One of these settings that was never synced has nothing to tell.
          let isNone = ["no-folder", "not-a-mirror"].contains(error.code)
          guard mirrors.isEmpty, reading.faulty != nil, isNone else {
            reading.failures.append(error)
            continue
          }
        }
      }
    } catch {
      // The settings, which may name some, are told all the same.
      if reading.faulty == nil || error.code != "no-mirror" { reading.failures.append(error) }
    }
    return reading
  }

  /// The mirrors that are meant; without words also those that only the agent knows, or settings with errors.
  private func places(
    _ session: Session, _ known: [StatusDocument], faulty: SettingsReport?
  ) throws(PassFailure) -> [Tarn.Place] {
    let targets = PassTargets(session: session)
    if let faulty { return try places(targets, named: faulty.loaded.places) }
    guard mirrors.isEmpty, !known.isEmpty,
      session.tarn.mirrorFolder(containing: session.tarn.workingDirectory) == nil
    else { return try targets.places(mirrors) }
    let found = (try? targets.places([])) ?? []
    let others = found.filter { place in !known.contains { Self.isOf($0, place, session) } }
    return known.map { ($0.name, $0.folder, nil) } + others
  }

  /// Where settings with errors name mirrors, those are looked at in their records.
  private func places(
    _ targets: PassTargets, named: [LoadedSettings.Place]
  ) throws(PassFailure) -> [Tarn.Place] {
    let tarn = targets.session.tarn
    func place(_ place: LoadedSettings.Place) -> Tarn.Place { (place.name, place.folder, place.state) }
    if mirrors.isEmpty {
      guard tarn.mirrorFolder(containing: tarn.workingDirectory) == nil, !named.isEmpty else {
        return try targets.places([])
      }
      let others = tarn.knownFolders().filter { folder in
        !named.contains { $0.folder.utf8.elementsEqual(folder.utf8) }
      }
      return named.map(place) + others.map { ($0, $0, nil) }
    }
    var places: [Tarn.Place] = []
    for word in mirrors {
      if let known = named.first(where: { $0.name.utf8.elementsEqual(word.utf8) }) {
        places.append(place(known))
      } else {
        places += try targets.places([word])
      }
    }
    return places
  }

  private static func isOf(_ document: StatusDocument, _ place: Tarn.Place, _ session: Session) -> Bool {
    document.name.utf8.elementsEqual(place.name.utf8)
      || document.folder.utf8.elementsEqual(session.tarn.absolute(place.folder).utf8)
  }

  private func problemLimit(_ session: Session) -> Int { session.isVerbose ? PassReport.mostProblems : 20 }

  private func document(_ place: Tarn.Place, _ session: Session) throws(PassFailure) -> StatusDocument {
    if record.state == nil, let settings = session.configured(place.name) {
      return try session.tarn.status(
        of: settings, record: session.sources.paths.state, problemLimit: problemLimit(session))
    }
    var document = try session.tarn.status(
      folder: place.folder, state: record.state ?? place.state, problemLimit: problemLimit(session))
    document.name = place.name == place.folder ? document.folder : place.name
    return document
  }

  private func check(_ session: Session) throws -> ExitStatus {
    let reading = read(session)
    let fault = reading.needsSettings ? reading.faulty?.failure : nil
    if let failure = fault ?? reading.failures.first {
      guard failure.kind != .usage else { throw failure }
      session.console.data("late: \(Message.safe(failure.message))")
      return .partial
    }
    let documents = reading.documents
    let result = StatusText.check(documents, maxAge: Units.duration(maxAge) ?? 0, now: session.now)
    if session.isJSON {
      session.console.data(JSONText.document(StatusAnswer(agent: reading.agent, mirrors: documents)))
    } else if !session.isQuiet || !result.isGood {
      session.console.data(result.line)
    }
    return result.isGood ? .inSync : .partial
  }
}
