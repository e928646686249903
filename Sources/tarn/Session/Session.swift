import Glibc
import TarnAgent
import TarnConfig
import TarnControl
import TarnCore
import TarnEngine
import TarnRuntime

/// The environment of a command: the composition root, its output, and the styles.
struct Session: Sendable {
  let tarn: Tarn
  let sources: SettingsSources
  let names: MirrorNames
  let console = Console.shared
  let clock = SystemClock()
  let isJSON: Bool
  let isQuiet: Bool
  let isVerbose: Bool
  let mayAsk: Bool
  let saysYes: Bool
  /// The styles of standard output and of standard error.
  let style: Style
  let messageStyle: Style

  init(_ options: some CommonValues) throws(PassFailure) {
    guard let directory = getcwd(nil, 0) else {
      throw PassFailure(
        .folderUnusable, code: "no-working-directory",
        "cannot tell the working directory: \(errorText(errno))", hint: "cd to a directory that exists")
    }
    defer { free(directory) }
    guard let place = String(validatingCString: directory) else {
      throw RawArguments.refusal(
        "the working directory", UnsafeRawBufferPointer(start: directory, count: strlen(directory)))
    }
    var variables: [String: String] = [:]
    for name in ["HOME", "TMPDIR", "STATE_DIRECTORY", "XDG_STATE_HOME"] {
      variables[name] = environment(name)
    }
    let sources = SettingsSources(
      config: options.config, socket: options.socket, workingDirectory: place, clock: clock)
    self.sources = sources
    var tarn = Tarn(workingDirectory: place, environment: variables)
    let names = MirrorNames(sources)
    self.names = names
    tarn.configured = { names.place(of: $0) }
    tarn.configuredFolders = {
      sources.checked().settings?.mirrors.map { ($0.name, $0.folder, $0.feed) } ?? []
    }
    let settings = sources.paths.place.map(tarn.absolute)
    tarn.settingsPlace = { sources.checked().settings == nil ? nil : settings }
    tarn.command = { sources.paths.command($0) }
    self.tarn = tarn
    isJSON = options.json
    isQuiet = options.quiet
    isVerbose = options.verbose
    saysYes = options.yes
    mayAsk = !options.noInput && !options.json && Terminal.input.isTerminal && Terminal.messages.isTerminal
    style = options.json ? Style(isOn: false) : Terminal.output.style(options.color)
    messageStyle = Terminal.messages.style(options.color)
  }

  /// Returns a mirror of the settings by its name. Reads the settings if need be.
  func configured(_ name: String) -> MirrorSettings? { sources.checked().settings?.mirror(name) }

  /// Returns a mirror of the settings by its name or its folder.
  func configured(_ place: Tarn.Place) -> MirrorSettings? {
    configured(place.name) ?? configured(in: place.folder)
  }

  /// Returns the mirror of the settings that has this folder.
  private func configured(in folder: String) -> MirrorSettings? {
    let folder = tarn.resolved(tarn.absolute(folder))
    return sources.checked().settings?.mirrors.first {
      tarn.resolved($0.folder).utf8.elementsEqual(folder.utf8)
    }
  }

  var configuredNames: [String] { sources.checked().settings?.mirrors.map(\.name) ?? [] }

  /// Returns the name of the mirror that a word means, when it is one of the settings here or of the agent's.
  ///
  /// - Parameter place: what the word stands for here.
  func configuredName(of word: String, in place: String) -> String? {
    // Only the agent's settings have it.
    if word != place { return word }
    return tarn.place(of: word) == nil ? configured(in: word)?.name : word
  }

  /// Returns where the settings set a value: file, line and column.
  func place(of setting: String, in mirror: String) -> String? {
    sources.checked().records.first { $0.table == .mirror(mirror) && $0.name == setting }?.origin.text
  }

  /// Returns the mirror that contains a path, for questions; otherwise the word itself. A bare word is a path
  /// only if it is there, or the mirror's record has it. Otherwise it may be a mistyped name. A URL is no path.
  func mirror(around word: String) -> String {
    let isPath = word.contains("/") || word.hasPrefix(".")
    guard !word.contains("://"), isPath || tarn.place(of: word) == nil, tarn.isNoMirror(word),
      let folder = tarn.mirrorFolder(around: word),
      isPath || tarn.isThere(word) || tarn.records(word, in: folder)
    else { return word }
    return folder
  }

  /// True when the settings have a mirror in that folder whose passes only plan.
  ///
  /// - Parameter folder: a folder, or a name of the settings.
  func onlyPlans(_ folder: String) -> Bool {
    let planned = sources.checked().settings?.mirrors.filter(\.isDryRun) ?? []
    guard !planned.isEmpty else { return false }
    let path = tarn.resolved(tarn.absolute(tarn.place(of: folder)?.folder ?? folder))
    return planned.contains { tarn.resolved($0.folder).utf8.elementsEqual(path.utf8) }
  }

  var now: Timestamp { clock.time }

  /// Prints a message for a person; nothing under `--quiet`.
  func say(_ line: String) {
    if !isQuiet { console.message(line) }
  }

  /// Prints the failure on standard error, and returns its exit status.
  ///
  /// - Parameter mirror: the mirror, when there are several.
  func tell(_ failure: PassFailure, of mirror: String? = nil) -> ExitStatus {
    let failure = failure.withSettings
    let status = ExitStatus(failure.kind, signal: Interruption.shared.received)
    let lines = FailureText.lines(
      failure, of: mirror, status: status, json: isJSON, style: messageStyle, width: Terminal.messages.width)
    for line in lines {
      console.message(line)
    }
    return status
  }

  /// Asks a question that is answered with yes or no; no by default, and at the end of the input.
  func confirm(_ question: String) -> Bool {
    console.prompt("\(question) [y/N] ")
    let answer = readLine()?.lowercased() ?? ""
    return answer == "y" || answer == "yes"
  }

  /// Runs long work: with the block at the bottom or dated lines, and with signals that stop it.
  ///
  /// - Parameters:
  ///   - schema: the schema of the JSON lines.
  ///   - mirror: the name in front of each message when there are several mirrors; otherwise `nil`.
  func attend<Result>(
    schema: String, mirror: String?,
    _ body: (any PassObserver, PassProgress, StopFlag) throws(PassFailure) -> Result
  ) throws(PassFailure) -> Result {
    let progress = PassProgress(clock: clock)
    let narrator = Narrator(
      console: console, style: messageStyle, mode: narration, isVerbose: isVerbose, schema: schema,
      mirror: mirror,
      clock: clock)
    return try attend(narrator, { progress.snapshot() }) { stop throws(PassFailure) in
      try body(narrator, progress, stop)
    }
  }

  /// Runs downloads; each is shown by its name.
  func attend<Result>(
    schema: String, names: @escaping @Sendable (RelativePath) -> RelativePath,
    _ body: (Narrator, PassProgress, StopFlag) throws(PassFailure) -> Result
  ) throws(PassFailure) -> Result {
    let progress = PassProgress(clock: clock)
    let narrator = Narrator(
      console: console, style: messageStyle, mode: narration, isVerbose: isVerbose, schema: schema,
      mirror: nil, clock: clock)
    let snapshot = { @Sendable in
      var snapshot = progress.snapshot()
      for index in snapshot.transfers.indices {
        snapshot.transfers[index].path = names(snapshot.transfers[index].path)
      }
      return snapshot
    }
    return try attend(narrator, snapshot) { stop throws(PassFailure) in
      try body(narrator, progress, stop)
    }
  }

  private func attend<Result>(
    _ narrator: Narrator, _ snapshot: @escaping @Sendable () -> PassProgress.Snapshot,
    _ body: (StopFlag) throws(PassFailure) -> Result
  ) throws(PassFailure) -> Result {
    let stop = StopFlag()
    let live = LiveProgress(narrator: narrator, clock: clock, snapshot: snapshot)
    Interruption.shared.arm(stop) {
      narrator.message("stopping: what is fetched is kept" + Self.waysToEndAtOnce)
    } report: {
      live.report()
    }
    live.start()
    defer {
      live.end()
      Interruption.shared.disarm()
    }
    return try body(stop)
  }

  private static var waysToEndAtOnce: String {
    wayToEndAtOnce(after: Interruption.shared.received, isTerminal: Terminal.messages.isTerminal)
  }

  /// The hint for a user who has pressed Ctrl-C once; a service manager knows no keys.
  static func wayToEndAtOnce(after signal: Int32?, isTerminal: Bool) -> String {
    signal == SIGINT && isTerminal ? "; press Ctrl-C again to end at once" : ""
  }

  /// Runs something that a signal stops between two of its groups; it has nothing to display.
  func stoppable<Result>(_ body: (StopFlag) throws(PassFailure) -> Result) throws(PassFailure) -> Result {
    let stop = StopFlag()
    let console = console
    Interruption.shared.arm(stop) {
      console.message("stopping after this group" + Self.waysToEndAtOnce)
    } report: {
    }
    defer { Interruption.shared.disarm() }
    return try body(stop)
  }

  private var narration: Narrator.Mode {
    if isJSON { return isQuiet ? .silent : .json }
    if isQuiet { return .silent }
    return Terminal.messages.canRedraw ? .terminal : .dated
  }
}
