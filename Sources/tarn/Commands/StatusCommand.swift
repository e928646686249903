import ArgumentParser
import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// The command `tarn status`.
struct StatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show the state of mirrors, even while a sync is running.",
    usage: "tarn status [options] [MIRROR...]",
    discussion: """
      Examples:
        tarn status                              the mirror you are in, or all
        tarn status --watch /srv/iso             live
        tarn status --check --max-age 26h        for monitoring: 0 or 3
        tarn status --check --format nagios      a plugin of Nagios or Icinga: 0 to 3
        tarn status --json | jq '.mirrors[].state'
        tarn status sub/file.iso                 the mirror that holds this file

      A path with a slash stands for the mirror around it, whether the file is there or not. A word without a \
      slash is a name, a folder, or a file that is there or that the mirror's record has.

      --check gives each mirror one of these verdicts:
        late          its last success is older than --max-age, or none is known
        clock         its last success lies in the future
        failing       its last pass failed, or left files undone
        held          deletions wait for approval
        interrupted   files are missing: its last pass was stopped, or it is paused
        good          none of these

      For Nagios, late and clock are critical (2), and the others but good are a warning (1). A mirror \
      that cannot be looked at, and a word that names none, are unknown (3). Without names, --check leaves out \
      mirrors with dry-run in their settings, and mirrors that the settings no longer name.
      """)

  enum CheckFormat: String, CaseIterable, ExpressibleByArgument { case text, nagios }

  @Flag(
    help: "Print one line for each mirror that is not good, and end with 3. If all are good, print one line.")
  var check = false
  @Option(help: ArgumentHelp("With --check: print text, or nagios for a plugin.", valueName: "name"))
  var format = CheckFormat.text
  @Option(
    help: ArgumentHelp(
      "With --check: a mirror is late if its last success is older, such as 90m or 7d. Default: 24h.",
      valueName: "duration"))
  var maxAge: String?
  @Flag(help: "Refresh the output every second, until q or Ctrl-C.") var watch = false
  @OptionGroup var record: StateOption
  enum Shown: ShownOptions {
    static let verbose: String? = "Print options, all transfers and all problems too."
  }
  @OptionGroup var common: CommonOptions<Shown>
  @Argument(help: ArgumentHelp("Names, folders, or paths in them.", valueName: "mirror"), completion: .mirror)
  var mirrors: [String] = []

  func validate() throws {
    if let maxAge, Units.duration(maxAge) == nil {
      throw ValidationError(
        "--max-age: '\(Printable.escape(maxAge))' is not a duration such as 90m, 24h or 7d")
    }
    if check, watch { throw ValidationError("--check and --watch cannot be combined") }
    if maxAge != nil, !check { throw ValidationError("--max-age goes with --check") }
    if format == .nagios, !check { throw ValidationError("--format nagios goes with --check") }
    if format == .nagios, common.json { throw ValidationError("--format and --json cannot be combined") }
  }

  func run() throws {
    if check, format == .nagios { return try tellNagios() }
    let session = try Session(common)
    try refuse(session)
    if check { return try tellCheck(session) }
    if watch { return try StatusWatch(session: session).run { read(session) }.end() }
    let reading = read(session)
    // A failure alone leaves standard output empty; mirrors beside a failure are printed.
    if session.isJSON, !reading.documents.isEmpty || !reading.isFailed {
      session.console.data(JSONText.document(StatusAnswer(agent: reading.agent, mirrors: reading.documents)))
    } else if !session.isJSON {
      for line in lines(reading, session) { session.console.data(line, now: false) }
    }
    session.console.flush()
    try reading.tellFailures(session).end()
  }

  /// Refuses settings that are missing, and words that name no mirror whatever is there.
  private func refuse(_ session: Session) throws(PassFailure) {
    for word in mirrors { try session.tarn.refuseEmptyNames(word, record.state) }
    try session.refuseMissingSettings()
  }

  private func lines(_ reading: Reading, _ session: Session) -> [String] {
    let documents = reading.here.filter { !session.isQuiet || !StatusText.isCalm($0) }
    let (now, style) = (session.now, session.style)
    // Only the reason is told when the named mirrors cannot be shown.
    if reading.documents.isEmpty, !mirrors.isEmpty { return [] }
    var head = Self.head(reading, session)
    if reading.documents.isEmpty, reading.agent != nil, !session.isQuiet {
      let isSystems = !reading.isOwnAgent && session.sources.paths.instance == .user
      head.append(
        "no mirrors: its settings name none, and no other is known here; "
          + (isSystems
            ? "to add one to them: sudo tarn add FEED FOLDER; to your own: tarn add FEED FOLDER"
            : SettingsReport(session).placeForMirrors))
    }
    let width = Terminal.output.width
    let gone = reading.goneLines(style)
    if documents.count == 1 {
      let card = StatusText.card(documents[0], now: now, style: style, isLong: session.isVerbose)
      return FittedLines.of(session.sources.paths.completing(head + card + gone), width)
    }
    let lost = lost(documents, session)
    let table =
      documents.isEmpty
      ? [] : StatusText.table(documents, now: now, style: style, width: width, explained: lost)
    // With -v the options of each mirror are shown, so that nobody has to guess whether it deletes.
    let options = session.isVerbose ? documents.flatMap(StatusText.optionLines) : []
    return FittedLines.of(session.sources.paths.completing(head + table), width) + options
      + FittedLines.of(lostLines(lost, session) + gone, width)
  }

  /// The names of configured mirrors whose folders are gone, by their hints.
  private func lost(_ documents: [StatusDocument], _ session: Session) -> [String] {
    documents.filter { StatusText.hint($0) == session.tarn.stepIfLost([$0.name]) }.map(\.name)
  }

  /// One line about lost folders, with the command that makes all of them anew.
  private func lostLines(_ names: [String], _ session: Session) -> [String] {
    guard !names.isEmpty else { return [] }
    let folders = names.count == 1 ? "the folder" : "the folders"
    let were = names.count == 1 ? "was" : "were"
    let shown = names.map { Printable.escape($0) }.joined(separator: ", ")
    return [
      "\(session.style.paint("gone:", .warning)) \(folders) of \(shown) \(were) moved or deleted; "
        + session.tarn.stepIfLost(names)
    ]
  }

  /// The lines about the agent, if there is one. They show only the hosts of named mirrors.
  static func head(_ reading: Reading, _ session: Session) -> [String] {
    guard !session.isQuiet else { return [] }
    guard var agent = reading.agent else {
      return reading.agentFailure?.code == PassFailure.silentAgent ? [AgentText.silent(session.style)] : []
    }
    let check = session.sources.paths.command("config check")
    let isSystem = session.sources.paths.instance == .system
    if reading.isOwnAgent { agent.settingsCheck = AgentText.check(of: agent, session) }
    let lines = AgentText.lines(
      agent, of: reading.isOfNamed ? reading.documents.map(\.name) : nil, now: session.now,
      style: session.style, check: check,
      label: reading.isOwnAgent ? "agent:" : isSystem ? "other agent:" : "system's agent:")
    guard !reading.isOwnAgent, reading.documents.contains(where: { session.configured($0.name) != nil })
    else { return lines }
    let start = SettingsChange.start(session.sources.paths)
    return lines + [session.style.paint("agent:", .warning) + " yours does not run: \(start)"]
  }

  /// The statuses that could be read, and the reasons why others could not.
  struct Reading {
    var agent: AgentDocument?
    /// True unless the agent that answers follows other settings than these.
    var isOwnAgent = true
    /// True when the mirrors were named.
    var isOfNamed = false
    /// The failure of asking the agent; `nil` when it answered, or there is none.
    var agentFailure: PassFailure?
    var documents: [StatusDocument] = []
    var failures: [PassFailure] = []
    /// The mirrors that failures are about, by the indexes of those.
    var unreadNames: [Int: String] = [:]
    /// Settings with errors, when their own agent does not run with older ones.
    var faulty: SettingsReport?
    /// The missing folders of this user's mirrors, which are in `documents` as well.
    var gone: [String] = []
    /// True when no mirror was named, so that the settings say which ones there are.
    var needsSettings = false

    /// True when there is something to show, or may be soon.
    var isWorthWatching: Bool { !documents.isEmpty || agent != nil }

    /// The mirrors that are not gone.
    var here: [StatusDocument] {
      documents.filter { document in !gone.contains { $0.utf8.elementsEqual(document.folder.utf8) } }
    }

    /// One line about the mirrors that are gone, with the command that forgets all of them.
    func goneLines(_ style: Style) -> [String] {
      guard let first = gone.first else { return [] }
      let label = style.paint("gone:", .warning)
      guard gone.count > 1 else {
        return [
          "\(label) there is no folder \(Printable.escape(first)) any more; "
            + "if it is gone for good: tarn forget \(ShellWord.quote(first))"
        ]
      }
      let names = gone.prefix(3).map { Printable.escape($0) }.joined(separator: ", ")
      let more = gone.count > 3 ? " and \(Numbers.grouped(gone.count - 3)) more" : ""
      return [
        "\(label) \(Numbers.count(gone.count, "mirror")) without a folder: \(names)\(more); "
          + "if they are gone for good: tarn forget --gone"
      ]
    }

    var isFailed: Bool { !failures.isEmpty || (needsSettings && faulty != nil) }

    /// Reports everything that failed, with each error of the settings.
    func tellFailures(_ session: Session) -> ExitStatus {
      var statuses = failures.map { session.tell($0) }
      guard let faulty, let failure = faulty.failure else { return ExitStatus.worst(statuses) }
      if session.isJSON {
        _ = session.tell(failure)
      } else {
        faulty.tellProblems(session)
      }
      if needsSettings { statuses.append(.failed(.configuration)) }
      return ExitStatus.worst(statuses)
    }
  }

  /// Reads statuses from the agent when it has the mirror, otherwise from the ledger.
  private func read(_ session: Session) -> Reading {
    var reading = Reading(isOfNamed: !mirrors.isEmpty)
    var known: [StatusDocument] = []
    do throws(PassFailure) {
      let problemLimit = problemLimit(session)
      if let (answer, isOwn) = try AgentLink(session.sources).anyStatus(problemLimit: problemLimit) {
        (reading.agent, reading.isOwnAgent) = (answer.agent, isOwn && !isOther(answer.agent, session))
        known = answer.mirrors
      }
    } catch {
      // A ledger may still be readable.
      reading.agentFailure = error
      let isMeant = !mirrors.isEmpty || session.sources.paths.overrides.contains { $0.name == "socket" }
      let isTold = isMeant || error.kind == .defect || error.code == PassFailure.silentAgent
      if isTold { reading.failures.append(error) }
    }
    // Only the agent of these settings goes on with older ones.
    if reading.agent == nil || !reading.isOwnAgent {
      let report = SettingsReport(session)
      reading.faulty = report.failure == nil ? nil : report
      reading.needsSettings = mirrors.isEmpty
    }
    var isOurs: Bool?
    do throws(PassFailure) {
      let agents = AgentsMirrors(known, session, faulty: reading.faulty)
      for (place, told) in try meant(session, agents, faulty: reading.faulty) {
        if let told {
          reading.documents.append(told)
          continue
        }
        do throws(PassFailure) {
          var document = try document(place, session)
          if let agent = reading.agent, session.configured(place) != nil {
            let isAgents = isOurs ?? AgentLink(session.sources).isOfTheseSettings(session, agent: agent)
            isOurs = isAgents
            document.awaitsReload = isAgents ? true : nil
          }
          reading.documents.append(document)
        } catch {
          if let document = standIn(for: place, error, session) {
            reading.documents.append(document)
            if error.code == "no-folder", place.name == place.folder { reading.gone.append(document.folder) }
            continue
          }
          // A mirror of faulty settings that was never synced has no status.
          let isNone = ["no-folder", "not-a-mirror"].contains(error.code)
          guard mirrors.isEmpty, reading.faulty != nil, isNone else {
            reading.unreadNames[reading.failures.count] = place.name
            reading.failures.append(error)
            continue
          }
        }
      }
    } catch {
      record(error, into: &reading)
    }
    return reading
  }

  /// With `--config` the agent at the usual socket may be another's.
  private func isOther(_ agent: AgentDocument?, _ session: Session) -> Bool {
    guard session.sources.paths.file != nil, let agent else { return false }
    return !AgentLink(session.sources).isOfTheseSettings(session, agent: agent)
  }

  /// Records a failure. An agent without mirrors is no failure; when the agent may not be asked, that is the
  /// reason.
  private func record(_ failure: PassFailure, into reading: inout Reading) {
    guard failure.code == "no-mirror" else { return reading.failures.append(failure) }
    // The errors of the settings, which may name mirrors, are reported anyway.
    guard reading.agent == nil, reading.faulty == nil else { return }
    if let agentFailure = reading.agentFailure {
      if reading.failures.isEmpty { reading.failures.append(agentFailure) }
    } else {
      reading.failures.append(failure)
    }
  }

  /// A mirror that is meant, and what the agent tells of it.
  private typealias Meant = (place: Tarn.Place, told: StatusDocument?)

  /// The mirrors that are meant. Without words these include mirrors that only the agent or faulty settings
  /// name.
  private func meant(
    _ session: Session, _ agents: AgentsMirrors, faulty: SettingsReport?
  ) throws(PassFailure) -> [Meant] {
    let targets = PassTargets(session: session)
    let words = mirrors.map { agents.isName($0) ? $0 : session.mirror(around: $0) }
    func places(_ words: [String]) throws(PassFailure) -> [Tarn.Place] {
      guard let faulty else { return try targets.places(words) }
      return try targets.places(words, named: faulty.loaded.places)
    }
    guard words.isEmpty, !agents.all.isEmpty,
      session.tarn.mirrorFolder(containing: session.tarn.workingDirectory) == nil
    else { return try places(words).map { ($0, agents.document(of: $0)) } }
    let found = (try? places([])) ?? []
    let others = found.filter { agents.document(of: $0) == nil }
    let known: [Meant] = agents.all.map { (($0.name, $0.folder, nil), $0) }
    let rest: [Meant] = others.map { ($0, nil) }
    return known + rest
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

  /// Returns a status for a mirror of this user that is gone. A folder that never was a mirror cannot be
  /// examined.
  private func standIn(
    for place: Tarn.Place, _ failure: PassFailure, _ session: Session
  ) -> StatusDocument? {
    let folder = session.tarn.absolute(place.folder)
    let isNone = ["no-folder", "not-a-mirror", "not-a-folder"].contains(failure.code)
    let wasMirror = session.tarn.lossHint(folder) != nil
    let isKnown = wasMirror || !isNone
    let isLost = wasMirror && (isNone || failure.code == "marker-missing")
    guard check ? failure.kind == .folderUnusable && isKnown : mirrors.isEmpty && isLost else { return nil }
    var document = StatusDocument(
      name: place.name == place.folder ? folder : place.name, feed: "", folder: folder, state: "failing")
    let isReplaced = failure.code == "not-a-folder"
    document.lastFailure = failure.message
    document.hint = isReplaced ? session.tarn.lossHint(folder) ?? failure.hint : failure.hint
    return document
  }

  /// True when single mirrors are meant, not all known ones. Then mirrors that only plan, or left the
  /// settings, are judged as well.
  private func areMeant(_ session: Session) -> Bool {
    !mirrors.isEmpty || session.tarn.mirrorFolder(containing: session.tarn.workingDirectory) != nil
  }

  /// - Returns: the check, and everything that was read for it.
  private func check(_ session: Session) throws(PassFailure) -> (StatusCheck, Reading) {
    let reading = read(session)
    let documents = reading.documents
    // One wrong entry in the settings does not hide the other mirrors.
    let isMeant = !mirrors.isEmpty || documents.isEmpty
    if isMeant, let wrong = reading.failures.first(where: { $0.kind == .usage && $0.code != "no-mirror" }) {
      throw wrong
    }
    let areMeant = areMeant(session)
    let known = documents.filter { areMeant || $0.leftSettings != true }
    let judged = known.filter { areMeant || $0.dryRun != true }
    var check = StatusCheck(
      judged, leftOut: known.count - judged.count, unnamed: documents.count - known.count,
      maxAge: Units.duration(maxAge ?? "24h") ?? 0, now: session.now)
    check.failures = reading.failures
    // A named mirror is judged by its record. It is not when it may belong to faulty settings: then no pass
    // of it runs.
    if let faulty = reading.faulty,
      reading.needsSettings || mirrors.contains(where: faulty.loaded.mayName)
        || documents.contains(where: { faulty.names($0.name) || faulty.mayHave($0.folder, session.tarn) })
    {
      check.settingsFailure = faulty.failure
    }
    return (check, reading)
  }

  private func tellCheck(_ session: Session) throws {
    let (check, reading) = try check(session)
    if session.isJSON {
      session.console.data(JSONText.document(CheckDocument(check, reading)))
      for failure in check.allFailures { _ = session.tell(failure) }
    } else if !session.isQuiet || !check.isGood {
      for line in check.lines { session.console.data(line) }
    }
    try (check.isGood ? ExitStatus.inSync : .partial).end()
  }

  /// Prints the check for Nagios; every failure becomes one of its states.
  private func tellNagios() throws {
    do {
      let session = try Session(common)
      try refuse(session)
      let check = try check(session).0
      for line in NagiosText.lines(check) { session.console.data(line) }
      try NagiosStatus(check).end()
    } catch let failure as PassFailure {
      Console.shared.data(NagiosText.line(failure.withSettings))
      try NagiosStatus.unknown.end()
    }
  }
}

/// The statuses of an agent's mirrors, by their folders.
private struct AgentsMirrors {
  let all: [StatusDocument]
  private let session: Session
  private let faulty: SettingsReport?
  private var byPlace: [[UInt8]: Int] = [:]
  /// The indexes of mirrors whose folders this user may not know, by their names.
  private var byName: [[UInt8]: Int] = [:]

  /// - Parameter faulty: settings with errors that the agent does not follow.
  init(_ documents: [StatusDocument], _ session: Session, faulty: SettingsReport?) {
    (all, self.session, self.faulty) = (documents, session, faulty)
    for (index, document) in documents.enumerated() {
      if document.folder.hasPrefix("/") {
        byPlace[session.tarn.realPlace(document.folder)] = index
      } else {
        byName[Array(document.name.utf8)] = index
      }
    }
  }

  /// True for the name of a mirror whose folder this user may not know. A name of the settings here is not one:
  /// they may have it for another mirror.
  func isName(_ word: String) -> Bool {
    byName[Array(word.utf8)] != nil && session.configured(word) == nil
      && faulty?.loaded.mayName(word) != true
  }

  /// Finds a mirror by its folder, with links followed, or else by such a name.
  func document(of place: Tarn.Place) -> StatusDocument? {
    guard !all.isEmpty else { return nil }
    let index =
      byPlace[session.tarn.realPlace(place.folder)]
      ?? (isName(place.name) ? byName[Array(place.name.utf8)] : nil)
    return index.map { all[$0] }
  }
}

/// The document of `status --check --json`.
struct CheckDocument: Encodable {
  struct Mirror: Encodable {
    /// `nil` for a failure that is about no single mirror.
    var name: String?
    /// `good`, `interrupted`, `held`, `failing`, `clock`, `late` or `unknown`.
    var verdict: String
    /// The seconds since its last success; `nil` when there was none, or it lies in the future.
    var age: Int64?
    var message: String

    private enum CodingKeys: String, CodingKey { case name, verdict, age, message }

    /// Writes what is not known as null.
    func encode(to encoder: any Encoder) throws {
      var values = encoder.container(keyedBy: CodingKeys.self)
      try values.encode(name, forKey: .name)
      try values.encode(verdict, forKey: .verdict)
      try values.encode(age, forKey: .age)
      try values.encode(message, forKey: .message)
    }
  }
  var schema = "tarn-status/1"
  var agent: AgentDocument?
  var mirrors: [StatusDocument]
  var check: [Mirror]

  init(_ check: StatusCheck, _ reading: StatusCommand.Reading) {
    agent = reading.agent
    mirrors = reading.documents
    self.check = check.mirrors.map {
      Mirror(name: $0.document.name, verdict: $0.verdict.rawValue, age: $0.age, message: $0.line)
    }
    for (index, failure) in check.failures.enumerated() {
      let name = reading.unreadNames[index].map { Printable.escape($0) }
      self.check.append(
        Mirror(name: name, verdict: "unknown", age: nil, message: StatusCheck.line(of: failure)))
    }
    if let failure = check.settingsFailure {
      self.check.append(
        Mirror(name: nil, verdict: "unknown", age: nil, message: StatusCheck.line(of: failure)))
    }
  }
}
