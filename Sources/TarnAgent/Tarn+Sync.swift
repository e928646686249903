import Glibc
package import TarnCore
import TarnCrypto
package import TarnEngine
import TarnFeeds
import TarnFolder
import TarnLedger
package import TarnRuntime
import TarnTransfer

extension Tarn {
  /// Runs one pass; see `Pass.run`.
  package func sync(
    _ request: SyncRequest, observer: any PassObserver, progress: PassProgress, stop: StopFlag
  ) throws(PassFailure) -> PassReport {
    let given = try feed(givenBy: request)
    let (mirror, made): (OpenMirror, FolderHome.CreatedParts)
    do throws(PassFailure) {
      (mirror, made) = try openForSync(request)
    } catch {
      if error.code == PassFailure.lostFolder { record(loss: error, of: request) }
      throw error
    }
    func once(_ mirror: OpenMirror) throws(PassFailure) -> PassReport {
      var hasFailed = false
      // When nothing was read, nothing is followed, and the folder is left as it was.
      defer { mirrors.close(mirror) { if hasFailed { unmake(mirror, made) } } }
      if !remember(mirror.home) { observer.pass(.notice(code: "not-listed", message: Self.notListed)) }
      do {
        return try pass(
          in: mirror, made, request, given: given, observer: observer, progress: progress, stop: stop)
      } catch {
        hasFailed = true
        throw error.explained(for: mirror.home)
      }
    }
    do {
      return try once(mirror)
    } catch  where error.isDamage {
      // Damage that only reading finds is handled like damage at the opening.
      return try once(
        mirrors.open(mirror.home, now: now, damage: .known(unlessFeedIsLost: given == nil)))
    }
  }

  /// Records the loss of a folder, once, when its journal lies elsewhere; otherwise it is gone with the
  /// folder. Best effort.
  private func record(loss: PassFailure, of request: SyncRequest) {
    let path = absolute(request.folder)
    guard let state = request.state.map(absolute),
      let home = try? FolderHome.remains(folder: path, state: state)
    else { return }
    _ = write(home) { ledger in
      guard try ledger.fact(.failure) != loss.message else { return }
      try ledger.apply(Pass.refused(by: loss, at: now))
    }
  }

  /// Returns the mirror, open, and the parts that this process made for it. They are taken back when it
  /// cannot be opened.
  ///
  /// - Parameter directories: the directories that an earlier attempt made.
  private func openForSync(
    _ request: SyncRequest, retries: Int = 4, made directories: [String] = []
  ) throws(PassFailure) -> (mirror: OpenMirror, made: FolderHome.CreatedParts) {
    var (home, made): (FolderHome, FolderHome.CreatedParts)
    do throws(PassFailure) {
      (home, made) = try homeForSync(request)
    } catch {
      // Another first sync took back what both were about to make.
      guard retries > 0, error.code == FolderFailure.Code.missing.rawValue else { throw error }
      return try openForSync(request, retries: retries - 1, made: directories)
    }
    made.directories = directories + made.directories
    do throws(PassFailure) {
      return (
        try mirrors.open(home, now: now, damage: .setAside(unlessFeedIsLost: request.feed == nil)), made
      )
    } catch {
      // A first sync of another process failed, and took back the mirror that this one was about to use.
      guard retries > 0, error.kind != .locked, isGone(home) else {
        made.takeBack(isUsed: SQLiteLedger.isUsed)
        throw error
      }
      return try openForSync(request, retries: retries - 1, made: made.directories)
    }
  }

  private func pass(
    in mirror: OpenMirror, _ made: FolderHome.CreatedParts, _ request: SyncRequest, given: FeedLocation?,
    observer: any PassObserver, progress: PassProgress, stop: StopFlag
  ) throws(PassFailure) -> PassReport {
    let home = mirror.home
    // The record stayed, and the folder is a new one.
    if request.recreate, made.isLinkedAnew { try forgetRows(mirror.ledger) }
    if let name = mirror.setAside {
      observer.pass(
        .notice(
          code: "ledger-rebuilt",
          message:
            "the ledger was damaged; it is kept as \(name), and a new one was made: the pass hashes "
            + "what is in the folder, and adopts what matches the feed; it leaves all other files, and "
            + "reports them as conflicts"
        ))
    }
    let (feed, options) = try settled(request, given: given, ledger: mirror.ledger)
    var (pass, ports): (PassRequest, PassPorts)
    do throws(PassFailure) {
      pass = try passRequest(feed, options, request, in: home)
      ports = try makePorts(
        feed, options, request, ledger: mirror.ledger, engine: mirror.engine, scratch: home.stateDirectory,
        stage: home.stateDirectory + "/stage.sqlite", observer: observer)
    } catch {
      // A mistake in what was given now tells nothing of the mirror, and is not recorded. Neither is it while
      // nothing was read yet.
      let isKept = !request.givesFiles && !isUnmade(mirror, made)
      if isKept { try? mirror.ledger.apply(Pass.refused(by: error, at: now)) }
      throw error
    }
    pass.wasRebuilt = mirror.setAside != nil
    pass.isJournalLost = { isUnmade(mirror, made) }
    if request.isOnce { try compare(&pass, request, mirror.ledger) }
    defer { ports.downloader.shutDown() }
    let run = Pass(ports: ports, request: pass, observer: observer, progress: progress, stop: stop)
    var report = try PassFailure.translating { try run.run(folder: mirror.folder) }
    report.options = options.withoutPasswords
    return report
  }

  /// Forgets all rows, so that everything is fetched again, whatever the policy is for files deleted here.
  private func forgetRows(_ ledger: SQLiteLedger) throws(PassFailure) {
    try PassFailure.translating {
      let rows = try ledger.rows()
      var changes: [LedgerChange] = []
      while let row = try rows.next() { changes.append(.dropRow(row.path)) }
      try ledger.apply(changes)
    }
  }

  /// Repairs parts of a mirror's folder without asking the feed; see `Pass.repair`.
  func repair(
    _ regions: [Region], events: [Event], onlyCounts: Bool, _ request: SyncRequest,
    observer: any PassObserver,
    progress: PassProgress, stop: StopFlag, looked: (Duration) -> Void
  ) throws(PassFailure) -> RepairReport {
    let given = try feed(givenBy: request)
    return try withMirror(home(folder: request.folder, state: request.state)) { mirror in
      let (feed, options) = try settled(request, given: given, ledger: mirror.ledger)
      let directory = mirror.home.stateDirectory
      let ports = try makePorts(
        feed, options, request, ledger: mirror.ledger, engine: mirror.engine, scratch: directory,
        stage: "\(directory)/stage.sqlite.\(SystemRandom().name())", observer: observer)
      defer { ports.downloader.shutDown() }
      let untold = UntoldProblems(
        of: observer, known: try mirror.ledger.problems(limit: PassReport.mostProblems))
      let run = Pass(
        ports: ports, request: try passRequest(feed, options, request, in: mirror.home), observer: untold,
        progress: progress, stop: stop)
      var report = try run.repair(
        regions, folder: mirror.folder, events: events, onlyCounts: onlyCounts, looked: looked)
      report.hasNews = report.report.counts.hasChanges || report.report.problems.contains(where: untold.isNew)
      return report
    }
  }

  private func passRequest(
    _ feed: FeedLocation, _ options: PassOptions, _ request: SyncRequest, in home: FolderHome
  ) throws(PassFailure) -> PassRequest {
    var pass = PassRequest(feed: feed, folderName: home.folder, policy: try policy(options, of: request))
    if let agent = request.agent {
      pass.steering = agent.steering
      pass.keepEvents = agent.keepEvents
      pass.isAsLeft = agent.isAsLeft
    }
    pass.credentials = credentials(options)
    pass.isOnce = request.isOnce
    pass.facts = [(.feed, feed.text)]
    // A mirror of the settings goes on with these if it leaves them.
    if let own = request.ownOptions {
      pass.facts.append((.options, own.encoded))
      let isOfCommand = options.isOn(.delete) && !own.isOn(.delete)
      pass.facts.append((.deleteOrder, isOfCommand ? Self.command : nil))
    } else if !request.isOnce {
      pass.facts.append((.options, options.encoded))
    }
    let isNamed = request.name != nil || configuredName(at: home.folder) != nil
    // A pass whose options apply only once does not turn a configured mirror into one made by hand.
    if isNamed || !request.isOnce { pass.facts.append((.settings, isNamed ? settingsPlace() : nil)) }
    pass.settings = FeedSettings.digest(feed, options, request, home: homeDirectory)
    return pass
  }

  private func credentials(_ options: PassOptions) -> PassRequest.Credentials {
    if options.last(.netrcFile) != nil || options.isOn(.netrc) { return .netrc }
    return options.last(.headerFile) == nil ? .none : .headers
  }

  /// Plans a sync without making changes; see `Pass.plan`.
  ///
  /// - Parameter each: called with every action, in order, and whether it is a deletion that would be held.
  package func plan(
    _ request: SyncRequest, observer: any PassObserver, progress: PassProgress, stop: StopFlag,
    each: (_ action: Action, _ isHeld: Bool) -> Void
  ) throws(PassFailure) -> PassReport {
    let given = try feed(givenBy: request)
    let (folder, ledger) = try openForPlan(request)
    defer { ledger.close() }
    let (feed, options) = try settled(request, given: given, ledger: ledger)
    var pass = PassRequest(
      feed: feed, folderName: absolute(request.folder), policy: try policy(options, of: request))
    pass.credentials = credentials(options)
    if request.isOnce { try compare(&pass, request, ledger) }
    let ports = try makePorts(
      feed, options, request, ledger: ledger, scratch: temporaryDirectory, stage: nil, observer: observer)
    defer { ports.downloader.shutDown() }
    let run = Pass(ports: ports, request: pass, observer: observer, progress: progress, stop: stop)
    var report = try PassFailure.translating { try run.plan(folder: folder, each: each) }
    report.options = options.withoutPasswords
    return report
  }

  // MARK: Feed and options

  private func settled(
    _ request: SyncRequest, given: FeedLocation?, ledger: any LedgerPort
  ) throws(PassFailure) -> (FeedLocation, PassOptions) {
    let (remembered, options) = try PassFailure.translating {
      let earlier = request.forgetsOptions ? "" : try ledger.fact(.options) ?? ""
      return (try ledger.fact(.feed), request.options.over(PassOptions(encoded: earlier)))
    }
    guard let given else {
      guard let remembered else {
        try refuseTransfer(request.folder)
        let path = absolute(request.folder)
        if let lost = lost(path) { throw lost }
        let there = look(path)
        guard there?.home != nil else {
          let adopt = [.missing, .empty].contains(there) ? "" : " --adopt"
          throw notMirror(
            path, "tarn sync\(adopt) FEED \(ShellWord.quote(request.folder))", request.folder)
        }
        throw PassFailure(
          .usage, code: "no-feed", "\(Printable.escape(path)) does not know its feed",
          hint: "give it once: tarn sync FEED \(ShellWord.quote(request.folder))")
      }
      return (try location(of: remembered), options)
    }
    // An earlier version of Tarn remembered paths as they were given.
    if let remembered, remembered != given.text, try feedText(remembered) != given.text, !request.changeFeed {
      throw PassFailure(
        .usage, code: "other-feed",
        "\(Printable.escape(absolute(request.folder))) follows \(Printable.escape(remembered)) already",
        hint: "to follow the new feed from now on: tarn sync --change-feed "
          + "\(ShellWord.quote(given.text)) \(ShellWord.quote(request.folder))")
    }
    return (given, options)
  }

  /// - Returns: the given feed; `nil` for the feed that the mirror remembers.
  /// - Throws: `usage` for an invalid feed, and for given options that make no sense.
  private func feed(givenBy request: SyncRequest) throws(PassFailure) -> FeedLocation? {
    let given = try request.feed.map { feed throws(PassFailure) in try location(of: feed) }
    _ = try policy(request.options)
    do {
      _ = try request.options.network()
    } catch {
      throw PassFailure(error)
    }
    return given
  }

  /// - Parameter request: the request, which tells given options from remembered ones.
  private func policy(
    _ options: PassOptions, of request: SyncRequest? = nil
  ) throws(PassFailure) -> PassPolicy {
    do {
      return try options.policy()
    } catch {
      let failure = PassFailure(error)
      throw request.map { advised(failure, of: $0) } ?? failure
    }
  }

  /// Adds to a failure how to take back the option, when the mirror remembers it and it was not given now.
  private func advised(_ failure: PassFailure, of request: SyncRequest) -> PassFailure {
    guard let name = failure.option, !request.forgetsOptions, request.options.values[name] == nil else {
      return failure
    }
    var failure = failure
    let folder = ShellWord.quote(absolute(request.folder))
    failure.hint =
      "the mirror remembers this option; to take it back: tarn config unset \(folder) \(name.rawValue)"
    return failure
  }

  // MARK: The graph

  func makePorts(
    _ feed: FeedLocation, _ options: PassOptions, _ request: SyncRequest, ledger: any LedgerPort,
    engine: TransferEngine = TransferEngine(), scratch: String, stage: String?, observer: any PassObserver
  ) throws(PassFailure) -> PassPorts {
    var settings: NetworkSettings
    do throws(PassFailure) {
      settings = try Secrets.settings(options, feed: feed, home: homeDirectory)
    } catch {
      throw advised(error, of: request)
    }
    if let name = request.missingSecrets.first(where: { options.last($0) == nil }) {
      throw PassFailure(
        .configuration, code: "secret-missing",
        "'\(name.rawValue)' is a credential, and there is no $CREDENTIALS_DIRECTORY: no request goes out without it",
        hint: "systemd sets it for a service with LoadCredential=; or use { file = \"/path\" }")
    }
    try Secrets.refuseExposed(request.secretFiles)
    if let file = request.proxyFile { settings.proxy = try Secrets.proxy(file) }
    let warnings = request.secretFiles.isEmpty ? Secrets.warnings(options, settings) : []
    for warning in warnings {
      observer.pass(.notice(code: "secret-exposed", message: warning))
    }
    settings.userAgent = settings.userAgent ?? "tarn/\(Self.version)"
    CurlDownloader.prepareProcess()
    do {
      settings.allowsPrivateAddresses = true
      if case .remote(let url) = feed {
        settings.allowsPrivateAddresses = try FeedHost(url: url, proxy: settings.proxy).isPrivate
      }
      let hashing = OpenSSLHashing()
      let downloader = try downloader(settings, feed, request)
      var ports = PassPorts(
        ledger: ledger, stage: try SQLiteStage(path: stage), parser: FeedParser(hashing: hashing),
        downloader: downloader, hashing: hashing, clock: SystemClock(),
        random: SystemRandom(), bootID: BootID.read(), spoolDirectory: scratch, engine: engine)
      if request.keepsCatalog, stage != nil { ports.catalog = SQLiteCatalog(directory: scratch) }
      ports.ownWrites = request.agent?.ownWrites
      return ports
    } catch let failure as DownloadFailure {
      let kind: PassFailure.Kind = failure.code == .urlRefused ? .usage : .inputOutput
      throw PassFailure(kind, code: failure.code.rawValue, failure.message)
    } catch {
      throw PassFailure(translating: error)
    }
  }

  private func downloader(
    _ settings: NetworkSettings, _ feed: FeedLocation, _ request: SyncRequest
  ) throws(DownloadFailure) -> CurlDownloader {
    var settings = settings
    if let agent = request.agent { settings.rate = agent.rates.rate }
    let isLocal = if case .remote = feed { false } else { true }
    let downloader =
      if let pool {
        try pool.downloader(
          mirror: request.name ?? absolute(request.folder), settings: settings, readsFiles: isLocal)
      } else {
        try CurlDownloader(settings: settings)
      }
    request.agent?.rates.attach(downloader)
    return downloader
  }

  /// Checks whether a pass chooses other files, or deletes less, than the mirror does by its own options.
  private func compare(
    _ pass: inout PassRequest, _ request: SyncRequest, _ ledger: any LedgerPort
  ) throws(PassFailure) {
    let (remembered, known) = try PassFailure.translating {
      (try ledger.fact(.options) ?? "", try ledger.fact(.keptList))
    }
    let options = request.ownOptions ?? PassOptions(encoded: remembered)
    guard let own = try? options.policy() else { return }
    pass.choosesOthers = pass.policy.choosesOthers(than: own)
    pass.keepsHold = pass.choosesOthers || own.deletes && !pass.policy.deletes
    guard pass.choosesOthers else { return }
    // A new list would appear before the files that it names; the existing one stays.
    pass.policy.keepsList = false
    guard let known, let path = Base64.decode(Array(known.utf8)) else { return }
    pass.policy.filter.exclude = pass.policy.filter.exclude.adding(RelativePath(trusted: path))
  }

  /// Opens the folder and the ledger as they are, without a lock; nothing is made.
  private func openForPlan(_ request: SyncRequest) throws(PassFailure) -> (any FolderReading, any LedgerPort)
  {
    try refuseEmptyNames(request.folder, request.state)
    let path = try admissible(request.folder)
    let state = request.state.map(absolute)
    if let state { try refuseInsideRecord(state, isState: true) }
    let found = try inspect(path, state: state, name: request.nameOfState)
    if [.missing, .empty, .foreign].contains(found) { try refuseOverlap(path, state: state) }
    switch found {
    case .mirror(let home):
      return (try PassFailure.translating { try home.open() }, try readLedger(home))
    case .foreign:
      guard request.adopt else { throw notEmpty(path, request) }
      try refuseUnmounted(path)
      return (try PassFailure.translating { try ForeignFolder(folder: path) }, AbsentLedger())
    case .markerMissing(let reason):
      throw markerMissing(path, reason, state: state, name: request.name)
    case .notDirectory:
      throw notFolder(path)
    case .missing, .empty:
      try refuseUnmounted(path)
      try refuseLost(path, request)
      return (AbsentFolder(), AbsentLedger())
    }
  }

  var temporaryDirectory: String {
    let directory = environment["TMPDIR"] ?? ""
    return directory.hasPrefix("/") ? directory : "/var/tmp"
  }

  var now: Timestamp { SystemClock().time }
}
