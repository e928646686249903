import ArgumentParser
import Glibc
import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// The command `tarn schedule`.
struct ScheduleCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schedule",
    abstract: "Print a systemd timer for a mirror.",
    usage: "tarn schedule [options] [--service] MIRROR",
    discussion: """
      Examples:
        tarn schedule podcasts
        tarn schedule --service podcasts
        tarn schedule /srv/iso                  a mirror without settings: hourly

      The timer follows 'every' or 'schedule' in the settings of the mirror. The first lines of the output say \
      where the timer belongs, and where the output of --service does. For root the timer belongs to the system, \
      for other users to 'systemctl --user'. You need no timer if the agent runs: it keeps all schedules itself.
      """)

  @Flag(help: "Print the settings of the service that the timer starts.") var service = false
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("A name or a folder.", valueName: "mirror"), completion: .mirror)
  var mirror: String

  func run() throws {
    let session = try Session(common)
    try session.tarn.refuseEmptyNames(mirror, nil)
    let report = SettingsReport(session)
    if report.loaded.settings == nil, !mirror.contains("/") {
      report.tellProblems(session)
      try report.status.end()
    }
    try session.refuseFaultySettings([mirror])
    let timer = try timer(session)
    if session.isJSON {
      session.console.data(JSONText.document(ScheduleDocument(timer)))
    } else {
      for line in service ? timer.service : timer.lines { session.console.data(line) }
    }
  }

  private func timer(_ session: Session) throws(PassFailure) -> TimerText {
    let isSystem = session.sources.paths.instance == .system
    let config = session.sources.paths.file.map { ["--config", $0] } ?? []
    let place = session.tarn.place(of: mirror)
    if let settings = session.configured((mirror, place?.folder ?? mirror, nil)) {
      let writes = [settings.folder] + (settings.state.map { [$0] } ?? [])
      return TimerText(
        program: Self.program, arguments: config + [settings.name], name: settings.name, config: config,
        rhythm: settings.rhythm, writes: writes, missing: writes.filter { TextFile.status($0) == nil },
        isSystem: isSystem, credentials: Self.credentials(settings))
    }
    if let name = place != nil ? mirror : AgentLink(session.sources).name(of: mirror, session) {
      // Its schedule is unknown here, and an hourly timer would be a guess.
      let folder = place.map { " (\(Printable.escape($0.folder)))" } ?? ""
      throw PassFailure(
        .folderUnusable, code: "not-a-mirror",
        "'\(Printable.escape(mirror))'\(folder) is \(place != nil ? "a name" : "the folder of a mirror") in the settings of the "
          + "running agent, and not in those that this command reads",
        hint: "give it the same ones: tarn schedule --config FILE \(ShellWord.quote(name))")
    }
    let folder = session.tarn.absolute(mirror)
    guard session.tarn.mirrorFolder(containing: folder)?.utf8.elementsEqual(folder.utf8) == true else {
      try session.tarn.refuseTransfer(mirror)
      throw PassFailure(
        .folderUnusable, code: "not-a-mirror",
        "'\(Printable.escape(mirror))' is neither a name in the settings nor the folder of a mirror",
        hint: "make it one: tarn sync FEED \(ShellWord.quote(mirror))")
    }
    return TimerText(
      program: Self.program, arguments: [folder], name: folder, config: config, rhythm: .command,
      writes: [folder],
      isSystem: isSystem)
  }

  private static func credentials(_ settings: MirrorSettings) -> [String] {
    let names = settings.secrets.values.compactMap { place -> String? in
      if case .credential(let name) = place { name } else { nil }
    }
    return Set(names).sorted()
  }

  /// The path of this program for a unit.
  private static var program: String {
    guard let path = realpath("/proc/self/exe", nil) else { return "/usr/bin/tarn" }
    defer { free(path) }
    return String(validatingCString: path) ?? "/usr/bin/tarn"
  }
}

/// The output of `tarn schedule --json`: the files to write, with their paths.
struct ScheduleDocument: Encodable {
  struct File: Encodable {
    var path: String
    var text: String
  }

  var schema = "tarn-schedule/1"
  var unit: String
  var timer: File
  var service: File

  init(_ text: TimerText) {
    unit = text.unit + ".timer"
    timer = File(path: text.timerPath, text: text.lines.joined(separator: "\n") + "\n")
    service = File(path: text.servicePath, text: text.service.joined(separator: "\n") + "\n")
  }
}
