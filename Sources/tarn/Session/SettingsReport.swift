import Glibc
import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime
import TarnSchedule

/// Where settings are looked for, by the environment and the flags; read as often as wanted.
struct SettingsSources: Sendable {
  let paths: SettingsPaths
  /// What of the process's environment counts for an agent and its settings.
  let variables: [String: String]
  private let clock: any Clock
  private let known = Locked<LoadedSettings?>(nil)

  private static let names = [
    "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "CONFIGURATION_DIRECTORY",
    "STATE_DIRECTORY", "RUNTIME_DIRECTORY", "CREDENTIALS_DIRECTORY", "TARN_SOCKET", "TZ", "TZDIR",
    "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "JOURNAL_STREAM",
  ]

  /// Why the settings that were looked at last are not taken, with file, line and column, and the command that tells
  /// all; nil when they are.
  static let fault = Locked<(text: String, command: String)?>(nil)

  /// - Parameters:
  ///   - workingDirectory: the base of relative names.
  ///   - clock: what schedules are judged by.
  init(config: String?, socket: String?, workingDirectory: String, clock: any Clock) {
    self.clock = clock
    var found: [String: String] = [:]
    for name in Self.names { found[name] = environment(name) }
    variables = found
    paths = SettingsPaths(
      environment: found, isRoot: geteuid() == 0, config: config, socket: socket,
      workingDirectory: workingDirectory)
  }

  /// To look at, read once per process: commands ask several times.
  func checked() -> LoadedSettings {
    if let known = known.withLock({ $0 }) { return known }
    let loaded = load(.check)
    known.withLock { $0 = loaded }
    let error = loaded.problems.first { $0.severity == .error }
    let command = paths.command("config check")
    Self.fault.withLock { $0 = error.map { ("\($0.origin.text): \($0.message)", command) } }
    return loaded
  }

  /// Blocks for as long as the files do; never fails.
  ///
  /// - Parameter reading: another view of the disk, of settings that are only proposed.
  func load(
    _ purpose: SettingsLoader.Purpose, _ reading: any SettingsReading = DiskSettings()
  ) -> LoadedSettings {
    let zones = ZoneFiles(environment: variables)
    let now = clock.time
    return SettingsLoader(paths: paths, purpose: purpose, reading: reading, now: now) { zone in
      switch zone {
      case .utc: .utc
      case .local: Self.local(zones)
      case .named(let name): (try? zones.bytes(of: name)).flatMap { try? TZif.parse($0) }
      }
    }.load()
  }

  private static func local(_ zones: ZoneFiles) -> TimeZoneRules? {
    switch try? zones.local() {
    case .file(let bytes): try? TZif.parse(bytes)
    case .text(let text): TimeZoneRules(posix: text)
    case .utc, nil: .utc
    }
  }
}

extension PassFailure {
  private static let codesOfUnknown = ["no-agent", "no-folder", "not-a-mirror", "no-feed", "no-mirror"]

  /// An agent or a mirror that is not found may stand in settings that could not be taken.
  var blamingSettings: PassFailure {
    guard Self.codesOfUnknown.contains(code), let fault = SettingsSources.fault.withLock({ $0 }) else {
      return self
    }
    var failure = self
    failure.message += "; the settings, where it may stand, have an error: \(Message.safe(fault.text))"
    failure.hint = fault.command
    return failure
  }
}

/// The settings as they are on the disk now, read once to be looked at.
struct SettingsReport {
  let paths: SettingsPaths
  let loaded: LoadedSettings

  /// Blocks for as long as the files do; never fails.
  init(_ session: Session) {
    paths = session.sources.paths
    loaded = session.sources.checked()
  }

  /// What keeps the settings from being taken, in one line; nil when they are.
  var failure: PassFailure? {
    let errors = loaded.problems.filter { $0.severity == .error }
    guard loaded.settings == nil, let first = errors.first else { return nil }
    let more =
      errors.count > 1
      ? "; and \(Self.atLeast(errors.count))\(Numbers.count(errors.count - 1, "more error"))" : ""
    return PassFailure(
      .configuration, code: "settings-not-taken",
      "the settings are not taken: \(first.origin.text): \(first.message)\(more)",
      hint: paths.command("config check"))
  }

  /// A file that `--config` names is not there or cannot be read: which agent and which mirrors are meant is not known.
  var lacksFile: Bool {
    paths.file != nil && loaded.files.contains { $0.state != .read }
      && loaded.problems.contains { [.fileMissing, .fileNotReadable, .fileTooLong].contains($0.code) }
  }

  /// A mirror of that name is in settings that are not taken.
  func names(_ word: String) -> Bool {
    loaded.settings == nil
      && loaded.records.contains { record in
        guard case .mirror(let name) = record.table else { return false }
        return name.utf8.elementsEqual(word.utf8)
      }
  }

  /// A mirror of settings that are not taken may have that folder: they name it, or not all that they name could be read.
  func mayHave(_ folder: String, _ tarn: Tarn) -> Bool {
    guard loaded.settings == nil else { return false }
    guard let places = loaded.allPlaces else { return true }
    return places.contains { tarn.isSamePlace($0.folder, folder) }
  }

  /// In front of a number of errors: a file with so many was not looked at to its end.
  static func atLeast(_ errors: Int) -> String { errors >= LoadedSettings.mostProblems ? "at least " : "" }

  var status: ExitStatus { loaded.settings == nil ? .configuration : .inSync }

  /// How to give an agent a mirror.
  var placeForMirrors: String {
    let file = paths.file ?? paths.directories.last.map { "\($0)/tarn.toml" }
    return file.map {
      "write [mirror.NAME] with a feed and a folder into \(Printable.escape($0)), then: tarn reload"
    }
      ?? "set $HOME for a place of settings"
  }

  /// The files that were read.
  var files: [String] { loaded.files.filter { $0.state == .read }.map(\.path) }

  /// Prints every problem on standard error; under `--quiet` the errors alone.
  func tellProblems(_ session: Session) {
    let problems = loaded.problems.filter { $0.severity == .error || !session.isQuiet }
    for problem in problems { session.console.message(String(problem.text.dropLast())) }
    let errors = problems.count { $0.severity == .error }
    if errors > 0 {
      let count = Self.atLeast(errors) + Numbers.count(errors, "error")
      session.console.message(
        session.messageStyle.paint("tarn:", .bad) + " \(count): these settings are not taken")
    }
  }
}

extension Session {
  /// Refuses settings that `--config` names and that are not taken, and else a word that such settings have for a mirror: read without
  /// them it would be a folder, and another one; and a folder that may be a mirror of theirs, which would go by what it remembers of
  /// older ones. What an agent knows, which goes on with older ones, is taken.
  ///
  /// - Parameters:
  ///   - words: of mirrors; none for all that there are.
  ///   - acts: something is done to them, or planned; else only a record is asked.
  func refuseFaultySettings(_ words: [String], acts: Bool = true) throws(PassFailure) {
    let report = SettingsReport(self)
    guard let failure = report.failure else { return }
    let isGiven = report.paths.file != nil
    guard !report.lacksFile, !((isGiven || acts) && words.isEmpty) else { throw failure }
    for word in words where tarn.place(of: word) == nil {
      if isGiven || report.names(word) { throw failure }
      if acts, report.mayHave(word, tarn), AgentLink(sources).name(of: word, self) == nil { throw failure }
    }
  }

  /// Of commands for an agent, which may go on with older settings: only what is not there is refused.
  func refuseMissingSettings() throws(PassFailure) {
    let report = SettingsReport(self)
    if report.lacksFile, let failure = report.failure { throw failure }
  }
}
