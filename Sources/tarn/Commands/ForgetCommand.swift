import ArgumentParser
import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// The command `tarn forget`.
struct ForgetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "forget",
    abstract: "Stop following a feed; the files stay.",
    usage: """
      tarn forget [options] MIRROR
      tarn forget [options] --gone
      """,
    discussion: """
      Examples:
        tarn forget /srv/iso
        tarn forget --gone      all mirrors whose folder no longer exists

      The command removes the mirror's record and its trash. To keep a file of the trash, restore it first with \
      'tarn trash restore'. The command refuses while the trash holds files that Tarn did not fetch.

      A mirror that an agent keeps has to leave the settings first: 'tarn remove --forget NAME' does both. If no \
      agent keeps it, the command forgets it, and warns that the settings still name it. --gone leaves out \
      folders whose disk may merely not be mounted.
      """)

  @Flag(help: "Forget all mirrors whose folder is gone.") var gone = false
  @OptionGroup var record: StateOption
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("A name or a folder.", valueName: "mirror"), completion: .mirror)
  var mirror: String?

  func validate() throws {
    guard (mirror == nil) == gone else {
      throw ValidationError(gone ? "--gone and a mirror cannot be combined" : "say which mirror, or --gone")
    }
  }

  func run() throws {
    let session = try Session(common)
    guard let mirror else { return try forgetGone(session) }
    try session.tarn.refuseEmptyNames(mirror, record.state)
    try session.refuseFaultySettings([mirror])
    session.console.outliveReader()
    let place = session.tarn.place(of: mirror)
    let folder = place?.folder ?? mirror
    let configured = session.configured((mirror, folder, nil))
    let settings = configured.map { (name: $0.name, place: session.place(of: "feed", in: $0.name) ?? "") }
    try refuseAgents(mirror, folder: folder, settings?.place, session)
    let forgotten: Tarn.Forgotten
    do throws(PassFailure) {
      forgotten = try session.tarn.forget(
        folder: folder, state: record.state ?? configured?.state ?? place?.state,
        name: record.state == nil ? configured?.name : nil)
    } catch {
      guard error.code == "not-a-mirror" else { throw error }
      guard let settings else {
        try AgentLink(session.sources).refuseOnlyTheAgents(mirror, session)
        throw error
      }
      throw PassFailure(
        .usage, code: "of-the-settings",
        "'\(Printable.escape(settings.name))' was never synced: only the settings name it",
        hint: Self.removal(settings.name, at: settings.place))
    }
    if session.isJSON {
      let report = ForgetReport(folder: Printable.escape(mirror), trashFiles: forgotten.trashed)
      session.console.data(JSONText.document(report))
    } else if !session.isQuiet {
      session.console.data(
        session.sources.paths.completing("forgot \(ShellWord.quote(mirror)): \(said(forgotten, mirror))"))
    }
    if let settings {
      var text = " the settings still name it: \(Self.removal(settings.name, at: settings.place))"
      // A folder that is gone has no files; the next pass makes it anew.
      if case .mirror(_, hasFiles: true) = forgotten, configured?.adopts != true {
        text +=
          "; with its files there a pass begins only by 'tarn sync --adopt \(ShellWord.quote(settings.name))'"
      }
      session.say(session.messageStyle.paint("warning:", .warning) + session.sources.paths.completing(text))
    }
  }

  private func said(_ forgotten: Tarn.Forgotten, _ mirror: String) -> String {
    switch forgotten {
    case .mirror(let trashed, let hasFiles):
      "it no longer follows a feed" + (hasFiles ? "; its files stay" : "")
        + (trashed > 0 ? "; \(Numbers.count(trashed, "file")) of its trash went with it" : "")
    case .line:
      "it was no longer a mirror; if its state is elsewhere: tarn forget --state DIR \(ShellWord.quote(mirror))"
    }
  }

  /// Refuses a mirror of the agent, which would take its files again. A folder without files is allowed: then
  /// `forget` is an order to fetch them anew.
  ///
  /// - Parameter place: the place of its settings.
  private func refuseAgents(
    _ mirror: String, folder: String, _ place: String?, _ session: Session
  ) throws(PassFailure) {
    guard !session.tarn.isLostOrEmptied(folder),
      let name = AgentLink(session.sources).name(of: mirror, session)
    else { return }
    let shown = place.map { " (\($0))" } ?? ""
    let steps =
      "take \(TOMLText.mirror(name)) out of them, then 'tarn reload', then: "
      + "tarn forget \(ShellWord.quote(session.tarn.absolute(folder)))"
    throw PassFailure(
      .usage, code: "of-the-settings",
      "the agent keeps '\(Printable.escape(name))' because of its settings\(shown), and would make it anew",
      hint: place.map { Self.isAdded(name, at: $0) } == true
        ? "tarn remove --forget \(ShellWord.quote(name))" : steps)
  }

  /// True when 'tarn add' wrote the mirror.
  ///
  /// - Parameter place: file, line and column.
  private static func isAdded(_ name: String, at place: String) -> Bool {
    place.split(separator: ":").first?.hasSuffix("/conf.d/\(name).toml") == true
  }

  /// Returns how a mirror leaves the settings.
  private static func removal(_ name: String, at place: String) -> String {
    isAdded(name, at: place) ? "tarn remove \(ShellWord.quote(name))" : "take it out of \(place)"
  }

  private func forgetGone(_ session: Session) throws {
    let kept = session.sources.checked().settings?.mirrors.map(\.folder) ?? []
    let folders = session.tarn.forgetGone(but: kept)
    if session.isJSON {
      session.console.data(JSONText.document(ForgottenReport(folders: folders.map { Printable.escape($0) })))
    } else if !session.isQuiet {
      for folder in folders { session.console.data("forgot \(ShellWord.quote(folder))", now: false) }
      let left = session.tarn.knownFolders().filter { folder in
        session.tarn.isLostOrEmptied(folder) && !kept.contains { session.tarn.isSamePlace($0, folder) }
      }
      for folder in left.map(ShellWord.quote) {
        let line =
          "kept \(folder): it is empty or not there, and may only be unmounted; if it is gone for good: tarn forget \(folder)"
        session.console.data(session.sources.paths.completing(line), now: false)
      }
      if folders.isEmpty, left.isEmpty {
        session.console.data(
          "nothing to forget: every mirror that the settings do not name has its folder")
      }
    }
  }
}

extension Tarn.Forgotten {
  /// The number of files in its trash, which were removed as well.
  fileprivate var trashed: Int {
    switch self {
    case .mirror(let trashed, _): trashed
    case .line: 0
    }
  }
}

/// The document of `forget --gone --json`.
struct ForgottenReport: Encodable {
  var schema = "tarn-forget/1"
  var folders: [String]
}
