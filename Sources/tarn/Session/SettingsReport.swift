import Glibc
import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime
import TarnSchedule

/// The places of the settings, by the environment and the flags. The settings can be read any number of
/// times.
struct SettingsSources: Sendable {
  let paths: SettingsPaths
  /// The environment variables that matter for an agent and its settings.
  let variables: [String: String]
  private let clock: any Clock
  private let known = Locked<LoadedSettings?>(nil)

  private static let names = [
    "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "CONFIGURATION_DIRECTORY",
    "STATE_DIRECTORY", "RUNTIME_DIRECTORY", "CREDENTIALS_DIRECTORY", "TARN_SOCKET", "TZ", "TZDIR",
    "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "JOURNAL_STREAM",
  ]

  /// The reason why the last settings that were read are refused, with file, line and column, and the command
  /// that tells all errors. `nil` when they are accepted.
  static let fault = Locked<(text: String, command: String)?>(nil)
  /// The places of the settings of this command; `nil` before its options are known.
  static let given = Locked<SettingsPaths?>(nil)

  /// - Parameters:
  ///   - workingDirectory: the base of relative names.
  ///   - clock: the clock that schedules are judged by.
  init(config: String?, socket: String?, workingDirectory: String, clock: any Clock) {
    self.clock = clock
    var found: [String: String] = [:]
    for name in Self.names { found[name] = environment(name) }
    variables = found
    paths = SettingsPaths(
      environment: found, isRoot: geteuid() == 0, config: config, socket: socket,
      workingDirectory: workingDirectory)
    Self.given.withLock { [paths] in $0 = paths }
  }

  /// Returns the settings for checks, read once per process: commands ask several times.
  func checked() -> LoadedSettings {
    if let known = known.withLock({ $0 }) { return known }
    let loaded = load(.check)
    known.withLock { $0 = loaded }
    let error = loaded.problems.first { $0.severity == .error }
    let command = paths.command("config check")
    Self.fault.withLock { $0 = error.map { ("\($0.origin.text): \($0.message)", command) } }
    return loaded
  }

  /// Loads the settings. Blocks for as long as the disk does; never fails.
  ///
  /// - Parameter reading: another view of the disk, for settings that are only proposed.
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

  /// The failure with what the settings add to it: their error, for an agent or a mirror that is not found may be named there, and
  /// `--config FILE` in the commands of the hint.
  var withSettings: PassFailure {
    var failure = self
    guard Self.codesOfUnknown.contains(code), let fault = SettingsSources.fault.withLock({ $0 }) else {
      if let paths = SettingsSources.given.withLock({ $0 }) { failure.hint = hint.map(paths.completing) }
      return failure
    }
    failure.message += "; the settings, where it may stand, have an error: \(Message.safe(fault.text))"
    failure.hint = fault.command
    return failure
  }
}

/// The settings as they are on the disk now, read once for checks.
struct SettingsReport {
  let paths: SettingsPaths
  let loaded: LoadedSettings

  /// Reads the settings. Blocks for as long as the disk does; never fails.
  init(_ session: Session) {
    paths = session.sources.paths
    loaded = session.sources.checked()
  }

  /// The reason why the settings are refused, in one line; `nil` when they are accepted.
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

  /// True when a file of `--config` is missing or cannot be read: the agent and the mirrors are unknown.
  var lacksFile: Bool {
    paths.file != nil && loaded.files.contains { $0.state != .read }
      && loaded.problems.contains { [.fileMissing, .fileNotReadable, .fileTooLong].contains($0.code) }
  }

  /// True when refused settings have a mirror of that name.
  func names(_ word: String) -> Bool {
    loaded.settings == nil
      && loaded.records.contains { record in
        guard case .mirror(let name) = record.table else { return false }
        return name.utf8.elementsEqual(word.utf8)
      }
  }

  /// True when a mirror of refused settings may have that folder: they name it, or could not be read
  /// completely.
  func mayHave(_ folder: String, _ tarn: Tarn) -> Bool {
    guard loaded.settings == nil else { return false }
    guard let places = loaded.allPlaces else { return true }
    return places.contains { tarn.isSamePlace($0.folder, folder) }
  }

  /// Returns the words before a number of errors: a file with this many was not read to its end.
  static func atLeast(_ errors: Int) -> String { errors >= LoadedSettings.mostProblems ? "at least " : "" }

  var status: ExitStatus { loaded.settings == nil ? .failed(.configuration) : .inSync }

  /// The advice how to give an agent a mirror. 'tarn add' cannot write into a file of `--config`.
  var placeForMirrors: String {
    if let file = paths.file {
      return "write [mirror.NAME] with a feed and a folder into \(Printable.escape(file)), then: tarn reload"
    }
    return paths.directories.isEmpty
      ? "set $HOME for a place of settings" : "to add one: tarn add FEED FOLDER"
  }

  /// The files that were read.
  var files: [String] { loaded.files.filter { $0.state == .read }.map(\.path) }

  /// Prints every problem on standard error; under `--quiet` only the errors.
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
  /// Refuses refused settings that `--config` names. Also refuses a word that refused settings have for a
  /// mirror: without them it would be another folder. The same holds for a folder that may be their mirror,
  /// which would follow older options that it remembers. Mirrors of an agent are accepted, for it runs with
  /// older settings.
  ///
  /// - Parameters:
  ///   - words: the words for mirrors; none for all.
  ///   - acts: true when something is done to them or planned; false when only a record is read.
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

  /// Refuses only missing settings, for commands to an agent, which may run with older ones.
  func refuseMissingSettings() throws(PassFailure) {
    let report = SettingsReport(self)
    if report.lacksFile, let failure = report.failure { throw failure }
  }
}
