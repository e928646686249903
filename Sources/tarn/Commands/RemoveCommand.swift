import ArgumentParser
import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// The command `tarn remove`.
struct RemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Remove a mirror that 'tarn add' wrote; its files stay.",
    usage: "tarn remove [options] NAME",
    discussion: """
      Examples:
        tarn remove iso
        tarn remove --forget iso

      The command removes the file that 'tarn add' wrote, and a running agent drops the mirror. It never changes \
      what a person wrote in tarn.toml or beside it. It names the file and the line instead.

      The mirror's files, its record and its trash stay. --forget removes the record and the trash, as \
      'tarn forget' does.
      """)

  @Flag(help: "Also forget the mirror: remove its record and its trash. Its files stay.") var forget = false
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(
    help: ArgumentHelp("The name of the mirror, or its folder.", valueName: "name"),
    completion: .configuredMirror)
  var name: String

  func run() throws {
    let session = try Session(common)
    try session.tarn.refuseEmptyNames(name, nil)
    let change = SettingsChange(session: session)
    let directory = try change.directory()
    let loaded = session.sources.checked()
    let mirror = try known(session, loaded)
    let place = loaded.places.first { $0.name == mirror }
    let file = MirrorDropIn(name: mirror, directory: directory)
    try require(file, in: loaded)
    if let problem = change.firstNewError(in: change.proposed(file.path, nil)) {
      throw refusal(mirror, problem, loaded)
    }
    if forget, let place { try session.tarn.refuseForeignTrash(folder: place.folder, state: place.state) }
    session.console.outliveReader()
    do throws(SettingsFile.Failure) {
      try SettingsFile.remove(file.path)
    } catch {
      throw change.failure(error, "remove")
    }
    var report = RemoveReport(
      name: mirror, folder: place.map { Printable.escape($0.folder) }, file: Printable.escape(file.path))
    report.hasRecord =
      place.map { (try? session.tarn.recordDirectory(folder: $0.folder, state: $0.state)) != nil } ?? false
    let outcome = change.tellAgent()
    report.agent = outcome.word
    var failure: PassFailure?
    if case .rejected(let problems) = outcome { failure = rejected(problems, session) }
    if forget, let place { failure = forgotten(place, &report, session) ?? failure }
    show(report, session)
    if let failure { throw failure }
  }

  /// Returns the name of the mirror that the word means.
  private func known(_ session: Session, _ loaded: LoadedSettings) throws(PassFailure) -> String {
    if !loaded.files(naming: name).isEmpty { return name }
    if let place = loaded.places.first(where: { session.tarn.isSamePlace($0.folder, name) }) {
      return place.name
    }
    if let failure = SettingsReport(session).failure { throw failure }
    try session.tarn.refuseFeed(name)
    try refuseClosed(session)
    let word = ShellWord.quote(name)
    let link = AgentLink(session.sources)
    try link.refuseOnlyTheAgents(name, session)
    guard link.name(of: name, session) == nil else {
      throw PassFailure(
        .usage, code: "no-such-mirror",
        "an agent keeps the mirror \(word), and the settings here do not name it",
        hint: link.isOfTheseSettings(session)
          ? "it has not read them again yet: tarn reload"
          : "it has settings of its own: put 'sudo' before the command, or become the agent's user")
    }
    let isPath = name.contains("/") || session.tarn.isThere(name)
    let near = Spelling.nearest(name, loaded.places.map(\.name))
    throw PassFailure(
      .usage, code: "no-such-mirror", "the settings name no mirror \(word)",
      hint: near.map { "did you mean '\(Printable.escape($0))'?" }
        ?? (isPath
          ? "to give up a mirror made by 'tarn sync': tarn forget \(word)"
          : "\(session.tarn.command("status")) lists the mirrors"))
  }

  /// Refuses the folder of a mirror that this user may not look into. It could not be forgotten either.
  private func refuseClosed(_ session: Session) throws(PassFailure) {
    guard name.contains("/") || name.hasPrefix(".") else { return }
    do throws(PassFailure) {
      _ = try session.tarn.recordDirectory(folder: name, state: nil)
    } catch {
      if error.kind == .permission { throw error }
    }
  }

  /// - Throws: `usage`, with the file and the line, when a person wrote any part of it.
  private func require(_ file: MirrorDropIn, in loaded: LoadedSettings) throws(PassFailure) {
    let places = loaded.files(naming: file.name)
    if let other = places.first(where: { !$0.path.utf8.elementsEqual(file.path.utf8) }) {
      throw refusal(file, other.path, other.line, "'tarn add' did not write that file")
    }
    do {
      let bytes = try DiskSettings().read(file.path, limit: SettingsLoader.longestFile)
      try file.requireOwn(bytes)
    } catch let objection as MirrorDropIn.Objection {
      let isWhole = objection.line == 1
      throw refusal(
        file, file.path, isWhole ? places.first?.line ?? 1 : objection.line, objection.reason)
    } catch let failure as SettingsReadFailure {
      throw PassFailure(
        .inputOutput, code: "settings-not-readable",
        "\(Printable.escape(file.path)) cannot be read: \(failure.text)")
    } catch {
      throw PassFailure(translating: error)
    }
  }

  /// Returns the failure of settings that have an error without the mirror, such as a hook that names it.
  private func refusal(_ mirror: String, _ problem: SettingsProblem, _ loaded: LoadedSettings) -> PassFailure
  {
    let origin = problem.origin.text
    let setting = loaded.records.first { $0.name == "mirrors" && $0.origin.text == origin }
    guard case .hook? = setting?.table else {
      return PassFailure(
        .configuration, code: problem.code.rawValue, "\(origin): \(problem.message)", hint: problem.hint)
    }
    let name = Printable.escape(mirror)
    let hook = setting?.table.header ?? ""
    return PassFailure(
      .configuration, code: problem.code.rawValue, "\(origin): 'mirrors' of \(hook) names '\(name)'",
      hint:
        "take '\(name)' out of it first, or the whole hook if it is for no other mirror; then: tarn remove "
        + ShellWord.quote(mirror))
  }

  private func refusal(_ file: MirrorDropIn, _ path: String, _ line: Int, _ reason: String) -> PassFailure {
    PassFailure(
      .usage, code: "written-by-people",
      "\(Printable.escape(path)):\(line) names '\(Printable.escape(file.name))', and \(reason)",
      hint:
        "take \(TOMLText.mirror(file.name)) out of it yourself; if an agent runs, then: tarn reload"
    )
  }

  private func rejected(_ problems: [String], _ session: Session) -> PassFailure {
    let first = problems.first.map { $0.split(whereSeparator: \.isNewline).first.map(String.init) ?? "" }
    return PassFailure(
      .configuration, code: "settings-not-taken",
      "the agent did not take the settings, and keeps the mirror: \(Message.safe(first ?? ""))",
      hint: "mend that, then: tarn reload")
  }

  private func forgotten(
    _ place: LoadedSettings.Place, _ report: inout RemoveReport, _ session: Session
  ) -> PassFailure? {
    guard report.agent == "reloaded" || report.agent == "none" else {
      return PassFailure(
        .noAgent, code: "agent-keeps", "it was not forgotten, because the agent may still be working on it",
        hint: "when it does not: tarn forget \(ShellWord.quote(place.folder))")
    }
    do throws(PassFailure) {
      _ = try session.tarn.forget(folder: place.folder, state: place.state)
      report.forgotten = true
      return nil
    } catch {
      // The mirror was never synced: there is nothing to forget.
      guard error.code != "not-a-mirror" else {
        report.forgotten = true
        return nil
      }
      var failure = error
      if failure.kind == .locked {
        failure.hint = "a pass of it is just ending; after that: tarn forget \(ShellWord.quote(place.folder))"
      }
      return failure
    }
  }

  private func show(_ report: RemoveReport, _ session: Session) {
    if session.isJSON {
      session.console.data(JSONText.line(report))
    } else if !session.isQuiet {
      for line in report.lines { session.console.data(line) }
    }
  }
}

/// The document of `remove --json`.
struct RemoveReport: Encodable {
  var schema = "tarn-remove/1"
  var name: String
  var folder: String?
  /// The file that was removed.
  var file: String
  /// `reloaded`, `rejected`, `none` or `silent`.
  var agent = "none"
  /// True when it was synced, so it can be forgotten.
  var hasRecord = false
  /// True when its record and its trash are removed as well.
  var forgotten = false

  /// The lines for people.
  var lines: [String] {
    var lines = ["removed \(ShellWord.quote(name)) from the settings: \(file) is gone"]
    if let folder, hasRecord {
      let word = ShellWord.quote(folder)
      lines.append("  its files stay in \(word)")
      if !forgotten {
        lines.append("  so do its record and its trash; to give them up: tarn forget \(word)")
      }
    }
    if agent == "silent" { lines.append("  the agent does not answer; when it does: tarn reload") }
    return lines
  }
}
