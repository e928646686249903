import Foundation
import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// A mirror in memory: folder, ledger, server and feed, and passes over them.
final class World {
  let folder: MemoryFolder
  let hashing: any Hashing
  var ledger: MemoryLedger
  let lifeline = Lifeline()
  let clock = ManualClock(now: 1_800_000_000_000_000_000, monotonic: 1)
  let random: SeededRandom
  let server = Server()
  var policy = PassPolicy()
  /// Remembered by the next pass; see `choose`.
  private(set) var options = PassOptions()
  /// What the feed says.
  var items: [FeedItem] = [] {
    didSet { isInOrder = false }
  }
  /// Known to be entries alone, in the order of their paths: a feed of thousands is made in a moment.
  private var isInOrder = true
  var end = FeedEnd(format: "test list", isComplete: true)
  var location = FeedLocation.local(path: Array(#filePath.utf8))
  /// Documents by their address, for feeds that lie on the server.
  var documents: [String: [FeedItem]] = [:]
  var ends: [String: FeedEnd] = [:]
  /// Which page follows that of an address, where it is not as its end says.
  var nextPage: (@Sendable (String) -> String?)?
  /// Thrown after the items.
  var feedFailure: FeedFailure?
  var bootID = "boot-1"
  var wasRebuilt = false
  /// nil for a feed that is read whole at each pass.
  var settings: String?
  var mostHeldBack = 4096
  var isOnce = false
  var choosesOthers = false
  var keepsHold = false
  /// Each look at the monotonic clock finds it far on: pauses are over at once.
  var rushes = false
  /// Each look at the wall clock finds it a millisecond on.
  var moves = false
  var steering: PassSteering?
  var isJournalLost: (@Sendable () -> Bool)?
  /// nil when nobody watches.
  var catalog: MemoryCatalog?
  var isAsLeft: (@Sendable () -> Bool)?
  var ownWrites: OwnWrites?
  /// Who waits for something hears of each request and each event.
  private let news = LockedCondition(())
  /// Of all who work in the folder at a time.
  private(set) var engine = TransferEngine()
  let log = EventLog()
  /// Of the pass that runs.
  private(set) var stop = StopFlag()
  /// What the last plan would hold.
  private(set) var wouldHold: [RelativePath] = []

  init(seed: UInt64 = 1, hashing: any Hashing = PlainHashing()) {
    random = SeededRandom(seed: seed)
    self.hashing = hashing
    folder = MemoryFolder(hashing: hashing)
    ledger = MemoryLedger(lifeline)
    folder.hang(on: lifeline)
  }

  // MARK: The feed

  static let host = "http://mirror.example/"

  /// Files in place by a first pass, and a catalog of them for repairs; what fails is not tried again.
  static func inSync(_ names: [String]) throws -> World {
    let world = World()
    world.settings = "settings"
    world.catalog = MemoryCatalog()
    world.policy.retries = 0
    for name in names { world.want(name, "text of \(name)") }
    #expect(try world.run().isInSync)
    return world
  }

  static let twoSources = ["http://one.example/a", "http://two.example/a"]

  /// One entry with two sources, not in the feed's own host; only the second has it.
  static func ofTwoSources(_ text: String = "the text") -> World {
    let world = World()
    world.rushes = true
    world.policy.retries = 2
    world.add(world.entry("a", text, sources: twoSources))
    world.server.put(twoSources[1], text.bytes)
    return world
  }

  /// An entry with everything, served by the server.
  @discardableResult
  func want(_ path: String, _ text: String, etag: String? = nil) -> Entry {
    let entry = serve(path, text, etag: etag)
    add(entry)
    return entry
  }

  /// The entry alone; in the feed only once it is added.
  func serve(_ path: String, _ text: String, etag: String? = nil) -> Entry {
    server.put(Self.host + path, text.bytes, etag: etag)
    return entry(path, text)
  }

  func entry(_ path: String, _ text: String, sources: [String]? = nil) -> Entry {
    let urls = sources ?? [Self.host + path]
    return Entry(
      path: path.path, size: UInt64(text.utf8.count), digests: [digest(text)],
      sources: urls.enumerated().map { Source(url: $1, priority: $0 + 1) })
  }

  /// Without size, time or digest.
  func bareEntry(_ path: String, listing: String = "") -> Entry {
    Entry(path: path.path, sources: [Source(url: Self.host + path)], listing: listing.bytes)
  }

  /// Puts it in its place by path; an entry of that path goes.
  func add(_ entry: Entry) {
    let wasInOrder = isInOrder || isOrdered
    defer { isInOrder = wasInOrder }
    guard wasInOrder else {
      unlist(String(decoding: entry.path.bytes, as: UTF8.self))
      let index = items.firstIndex { $0.path.map { entry.path < $0 } ?? false }
      items.insert(.entry(entry), at: index ?? items.count)
      return
    }
    var (low, high) = (0, items.count)
    while low < high {
      let middle = (low + high) / 2
      if items[middle].path.map({ $0 < entry.path }) == true { low = middle + 1 } else { high = middle }
    }
    if low < items.count, items[low].path == entry.path {
      items[low] = .entry(entry)
    } else {
      items.insert(.entry(entry), at: low)
    }
  }

  private var isOrdered: Bool {
    let paths = items.compactMap(\.path)
    return paths.count == items.count && zip(paths, paths.dropFirst()).allSatisfy { $0 < $1 }
  }

  func unlist(_ path: String) {
    items.removeAll { item in
      if case .entry(let entry) = item { return entry.path == path.path }
      return false
    }
  }

  func digest(_ text: String, _ algorithm: DigestAlgorithm = .sha256) -> Digest {
    hashing.digest(algorithm, of: text.bytes)
  }

  // MARK: Passes

  /// Options as a user gives them: they make the policy, and the ledger remembers them.
  func choose(_ values: [PassOptions.Name: [String]]) throws {
    options = PassOptions(values: values)
    policy = try options.policy()
  }

  /// Makes a mirror of this file and 20 others, so many that the guard lets a few go; deletions are allowed after.
  func fill(_ path: String, _ text: String) throws {
    want(path, text)
    for number in 0..<20 { want("other-\(number)", "\(number)") }
    try run()
    policy.deletes = true
  }

  @discardableResult
  func run() throws -> PassReport {
    reopen()
    let downloader = try server.downloader()
    defer { downloader.shutDown() }
    return try pass(downloader).run(folder: folder)
  }

  @discardableResult
  func repair(
    _ regions: [Region], events: [Event] = [], onlyCounts: Bool = false
  ) throws -> RepairReport {
    reopen()
    let downloader = try server.downloader()
    defer { downloader.shutDown() }
    return try pass(downloader).repair(
      regions, folder: folder, events: events, onlyCounts: onlyCounts)
  }

  /// - Returns: the actions without deletions that would be held: those are in `wouldHold`.
  func plan() throws -> (report: PassReport, actions: [Action]) {
    reopen()
    let downloader = try server.downloader()
    defer { downloader.shutDown() }
    var actions: [Action] = []
    wouldHold = []
    let report = try pass(downloader).plan(folder: folder) { action, isHeld in
      if isHeld { wouldHold.append(action.path) } else { actions.append(action) }
    }
    return (report, actions)
  }

  /// As a process that begins: nobody is at work in the folder.
  func reopen() {
    log.clear()
    reopenStop()
    server.clearRequests()
    engine.close()
    engine = TransferEngine()
  }

  /// What begins from here on has a stop of its own.
  func reopenStop() { stop = StopFlag() }

  // MARK: Several at a time

  /// A pass or a repair on a thread of its own.
  final class Running<Report: Sendable>: Sendable {
    let stop: StopFlag
    private let result = LockedCondition<Result<Report, any Error>?>(nil)

    fileprivate init(_ stop: StopFlag, _ body: @escaping () throws -> Report) throws {
      self.stop = stop
      let work = Handed(body)
      _ = try WorkerThread.start(name: "pass", stackSize: 8 << 20) { [result] in
        let ended = Result { try work.value() }
        result.change { $0 = ended }
      }
    }

    /// One that would never end is stopped, and its test fails.
    func wait() throws -> Report {
      if result.wait(atMost: .seconds(300), for: { $0 }) == nil {
        Issue.record("it did not end by itself")
        stop.set()
      }
      return try result.wait { $0 }.get()
    }

    var isOver: Bool { result.withLock { $0 != nil } }
  }

  /// Of one thread at a time.
  private struct Handed<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
  }

  /// A pass begins.
  ///
  /// - Parameter onRequest: called for each request, on the network's thread.
  func begin(_ onRequest: (@Sendable (DownloadRequest) -> Void)? = nil) throws -> Running<PassReport> {
    reopen()
    return try run({ pass, folder in try pass.run(folder: folder) }, hearing: onRequest)
  }

  /// A pass begins beside what is at work.
  func beginBeside() throws -> Running<PassReport> {
    try run { pass, folder in try pass.run(folder: folder) }
  }

  private func run<Report>(
    _ body: @escaping (Pass, MemoryFolder) throws -> Report,
    hearing onRequest: (@Sendable (DownloadRequest) -> Void)? = nil
  ) throws -> Running<Report> {
    stop = StopFlag()
    hearNews(onRequest)
    let folder = folder
    let downloader = try server.downloader()
    let pass = pass(downloader)
    return try Running(pass.stop) {
      defer { downloader.shutDown() }
      return try body(pass, folder)
    }
  }

  /// A repair begins beside what is at work.
  func beginRepair(_ regions: [Region]) throws -> Running<RepairReport> {
    try run { pass, folder in try pass.repair(regions, folder: folder) }
  }

  /// An approval of what is held begins beside what is at work.
  func beginApproval() throws -> Running<ApprovalReport> {
    let stop = StopFlag()
    let approval = approval(stop: stop)
    return try Running(stop) { try approval.run(plan: nil) }
  }

  func repairBeside(_ regions: [Region]) throws -> RepairReport { try beginRepair(regions).wait() }

  /// Until something is so, for two minutes at most: looks again at each request and each event.
  func await(_ condition: () -> Bool, sourceLocation: SourceLocation = #_sourceLocation) {
    let isSo: Void? = news.wait(atMost: .seconds(120)) { _ in condition() ? () : nil }
    #expect(isSo != nil, "waited in vain", sourceLocation: sourceLocation)
  }

  /// Holds the answer for a file of `inSync` until the gate is open.
  func hold(_ name: String) -> AnswerGate {
    let gate = AnswerGate()
    var answer = FakeAnswer(body: "text of \(name)".bytes, honoursRanges: false)
    answer.gate = gate
    server.answer(World.host + name, answer)
    return gate
  }

  /// - Parameter number: how many requests for it the server has seen then; that of an earlier pass counts.
  func awaitRequest(of name: String, number: Int = 1, sourceLocation: SourceLocation = #_sourceLocation) {
    let url = World.host + name
    self.await({ self.server.urls.count { $0 == url } >= number }, sourceLocation: sourceLocation)
  }

  private func hearNews(_ onRequest: (@Sendable (DownloadRequest) -> Void)?) {
    server.onRequest { [news] request in
      onRequest?(request)
      news.change { _ in }
    }
    log.onEvent { [news] _, _ in news.change { _ in } }
  }

  func pass(_ downloader: any Downloading) -> Pass {
    var request = PassRequest(
      feed: location, folderName: "/folder", policy: policy)
    request.wasRebuilt = wasRebuilt
    request.settings = settings
    request.mostHeldBack = mostHeldBack
    request.isOnce = isOnce
    request.choosesOthers = choosesOthers
    request.keepsHold = choosesOthers || keepsHold
    request.facts = [(.feed, location.text)] + (isOnce ? [] : [(.options, options.encoded)])
    let ports = self.ports(downloader)
    request.steering = steering
    request.isJournalLost = isJournalLost
    request.isAsLeft = isAsLeft
    return Pass(
      ports: ports, request: request, observer: log, progress: PassProgress(clock: ports.clock), stop: stop)
  }

  func ports(_ downloader: any Downloading) -> PassPorts {
    var ports = PassPorts(
      ledger: ledger, stage: MemoryStage(), parser: parser, downloader: downloader, hashing: hashing,
      clock: passClock, random: random,
      bootID: bootID,
      spoolDirectory: FileManager.default.temporaryDirectory.path, engine: engine)
    ports.catalog = catalog
    ports.ownWrites = ownWrites
    return ports
  }

  private var passClock: any Clock {
    if moves { return MovingClock(clock) }
    return rushes ? RushingClock(wall: clock) : clock
  }

  private var parser: GivenFeed {
    GivenFeed(
      items: items, end: end, failure: feedFailure, documents: documents, ends: ends, nextPage: nextPage)
  }

  var approval: Approval { approval(stop: StopFlag()) }

  func approval(stop: StopFlag) -> Approval {
    Approval(
      ledger: ledger, folder: folder, clock: clock, random: random, observer: log, stop: stop, engine: engine,
      ownWrites: ownWrites)
  }

  // MARK: Looking

  func text(_ path: String) -> String? {
    folder.contents(path.path).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Path and text of every regular file.
  var files: [String: String] {
    var files: [String: String] = [:]
    for path in folder.paths() {
      if let bytes = folder.contents(path) {
        files[String(decoding: path.bytes, as: UTF8.self)] = String(decoding: bytes, as: UTF8.self)
      }
    }
    return files
  }

  /// The texts in the trash, sorted.
  var trash: [String] {
    let names = Self.insist { try folder.trashed().map(\.name) }
    let all = names.flatMap { [folder.trashContents($0)] + folder.trashContents(below: $0) }
    return all.compactMap(\.self).map { String(decoding: $0, as: UTF8.self) }.sorted()
  }

  var partialNames: [String] { Self.insist { try folder.partials().map(\.name) } }

  /// Looks again when the look itself is made to fail.
  private static func insist(_ look: () throws -> [String]) -> [String] {
    for _ in 0..<20 {
      if let names = try? look() { return names }
    }
    return []
  }

  func row(_ path: String) -> Row? { ledger.contents.rows[path.path] }

  /// Says of every file of the feed that it stands there, and nothing else does.
  var isConverged: Bool {
    var wanted: [String: UInt64] = [:]
    for case .entry(let entry) in items {
      wanted[String(decoding: entry.path.bytes, as: UTF8.self)] = entry.size ?? 0
    }
    return files.mapValues { UInt64($0.utf8.count) } == wanted
  }
}

extension TransferClient {
  /// Of a folder and a ledger, without a network.
  static func of(_ folder: MemoryFolder, _ ledger: MemoryLedger) throws -> TransferClient {
    let clock = ManualClock()
    return TransferClient(
      folder: folder, ledger: ledger, downloader: try Server().downloader(), clock: clock,
      random: SeededRandom(seed: 1), bootID: "boot", progress: PassProgress(clock: clock), stop: StopFlag())
  }
}

extension String {
  var bytes: [UInt8] { Array(utf8) }
  var path: RelativePath { RelativePath(trusted: Array(utf8)) }
}

/// A feed whose items are given.
struct GivenFeed: FeedParsing {
  var items: [FeedItem]
  var end: FeedEnd
  var failure: FeedFailure?
  var documents: [String: [FeedItem]]
  var ends: [String: FeedEnd]
  var nextPage: (@Sendable (String) -> String?)?

  func decoded(_ source: any ByteSource) -> any ByteSource { source }

  func kind(of source: any ByteSource, as document: FeedDocument) -> FeedKind {
    let format = (ends[document.url] ?? end).format
    if format == "index" { return .index }
    if format == "RSS", !items(of: document).contains(where: { if case .entry = $0 { true } else { false } })
    {
      return .window
    }
    for item in items(of: document) {
      if case .enclosure = item { return .window }
      if case .directory = item { return .index }
    }
    return .list
  }

  private func items(of document: FeedDocument) -> [FeedItem] {
    documents[document.url] ?? (document.place == nil ? items : [])
  }

  func parse(
    _ source: any ByteSource, as document: FeedDocument, sink: (FeedItem) throws -> Void
  ) throws -> FeedEnd {
    for item in items(of: document) { try sink(item) }
    if let failure, document.place == nil { throw failure }
    var end = ends[document.url] ?? end
    if let nextPage { end.next = nextPage(document.url) }
    return end
  }
}

/// Keeps what a pass tells.
final class EventLog: PassObserver {
  private struct State {
    var events: [PassEvent] = []
    var hook: (@Sendable (Int, PassEvent) -> Void)?
  }
  private let state = Locked(State())

  func pass(_ event: PassEvent) {
    let (hook, number) = state.withLock { state in
      state.events.append(event)
      return (state.hook, state.events.count)
    }
    hook?(number, event)
  }

  func clear() { state.withLock { $0.events = [] } }

  /// Called with the number of each event, from 1.
  func onEvent(_ hook: (@Sendable (Int, PassEvent) -> Void)?) {
    state.withLock { $0.hook = hook }
  }

  var events: [PassEvent] { state.withLock { $0.events } }

  var problems: [Problem] {
    events.compactMap { if case .problem(let problem) = $0 { problem } else { nil } }
  }

  var retries: [Double] {
    events.compactMap { if case .retrying(_, _, let seconds) = $0 { seconds } else { nil } }
  }

  var notices: [(code: String, message: String)] {
    events.compactMap { if case .notice(let code, let message) = $0 { (code, message) } else { nil } }
  }

  /// `code path`, in order.
  var done: [String] {
    events.compactMap { event in
      guard case .done(let code, let path, _) = event else { return nil }
      return "\(code) \(path.printable)"
    }
  }
}

/// A clock that goes on with each look at it, as real ones do.
final class MovingClock: Clock {
  private let clock: ManualClock

  init(_ clock: ManualClock) { self.clock = clock }

  var time: Timestamp {
    clock.advance(.milliseconds(1))
    return clock.time
  }

  func monotonic() -> Instant { clock.monotonic() }
}

/// Wall time as told; monotonic time leaps at each look.
final class RushingClock: Clock {
  private let wall: ManualClock
  private let monotonicTime = Locked(Instant())

  init(wall: ManualClock) { self.wall = wall }

  var time: Timestamp { wall.time }

  func monotonic() -> Instant {
    monotonicTime.withLock { time in
      time += .seconds(200)
      return time
    }
  }
}

extension FeedItem {
  /// Of an entry.
  fileprivate var path: RelativePath? {
    if case .entry(let entry) = self { return entry.path }
    return nil
  }
}
