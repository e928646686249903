import TarnCore
import TarnRuntime

/// Supervises tarn-watch: a value that is told what happened and answers with what to do. The caller passes the time.
struct WatcherState {
  enum Action: Equatable {
    /// Start the program. Answered by `started` or `failed`.
    case start
    case send(WatchCommand)
    /// Report news of a folder. `request` distinguishes the folder from an earlier one with the same ID.
    case tell(request: UInt64, WatchNews)
  }

  private struct Folder {
    let request: UInt64
    let path: [UInt8]
    /// The number by which the running program knows the folder. It is a new one for each request, so that an earlier report is not
    /// taken for a present one.
    var wire: UInt64?
    /// True after `ready` was reported, until `blind` is.
    var isSeen = false
    /// The last reported blindness, until the next `ready`.
    var blindness: WatchBlindness?
    var attempts = 0
    var retryAt: Instant?
  }

  private enum Program: Equatable {
    case stopped(startAt: Instant)
    case starting
    case running(since: Instant)
  }

  private let random: any RandomSource
  private var folders: [WatchID: Folder] = [:]
  private var ids: [UInt64: WatchID] = [:]
  private var program = Program.stopped(startAt: Instant())
  private var failures = 0
  private var nextWire: UInt64 = 1

  init(random: any RandomSource) {
    self.random = random
  }

  /// When `tick` is to be called; `nil` while nothing is planned.
  var dueAt: Instant? {
    guard !folders.isEmpty else { return nil }
    switch program {
    case .stopped(let startAt): return startAt
    case .starting: return nil
    case .running: return folders.values.compactMap(\.retryAt).min()
    }
  }

  mutating func watch(_ id: WatchID, request: UInt64, path: [UInt8], now: Instant) -> [Action] {
    var actions = forget(id)
    folders[id] = Folder(request: request, path: path)
    guard path.first == UInt8(ascii: "/"), path.count <= PathRule.maximumLength, !path.contains(0) else {
      return actions + tell(id, .init(.error, "this is not an absolute path: \(Printable.escape(path))"))
    }
    if case .running = program { actions += ask(id) }
    return actions + tick(now)
  }

  mutating func forget(_ id: WatchID) -> [Action] {
    guard let folder = folders.removeValue(forKey: id) else { return [] }
    guard let wire = folder.wire else { return [] }
    ids[wire] = nil
    return [.send(.forget(wire: wire))]
  }

  /// Does what is due at this time.
  mutating func tick(_ now: Instant) -> [Action] {
    switch program {
    case .stopped(let startAt):
      guard !folders.isEmpty, now >= startAt else { return [] }
      program = .starting
      return [.start]
    case .starting: return []
    case .running:
      let due = folders.filter { $0.value.retryAt.map { now >= $0 } ?? false }.keys
      return due.sorted { $0.number < $1.number }.flatMap { ask($0) }
    }
  }

  mutating func started(_ now: Instant) -> [Action] {
    program = .running(since: now)
    return folders.keys.sorted { $0.number < $1.number }.flatMap { ask($0) }
  }

  /// Takes the news that the program ended or could not be started: all folders are blind.
  mutating func failed(_ why: WatchBlindness, now: Instant) -> [Action] {
    if case .running(let since) = program, now.elapsed(since: since) >= WatchPace.goodRun { failures = 0 }
    program = .stopped(startAt: now + WatchPace.restart(failures: failures, random: random))
    failures += 1
    ids = [:]
    var actions: [Action] = []
    for id in folders.keys.sorted(by: { $0.number < $1.number }) {
      folders[id]?.wire = nil
      folders[id]?.retryAt = nil
      actions += tell(id, why)
    }
    return actions
  }

  mutating func received(_ record: WatchRecord, now: Instant) -> [Action] {
    // The record is about a folder that was forgotten.
    guard let id = ids[record.wire], let folder = folders[id] else { return [] }
    switch record {
    case .ready(_, let count):
      folders[id]?.isSeen = true
      folders[id]?.blindness = nil
      folders[id]?.attempts = 0
      return [.tell(request: folder.request, WatchNews(id, .ready(directories: count)))]
    // Changes before `ready` do not matter, since `ready` covers more.
    case _ where !folder.isSeen && !record.isState: return []
    case .dirty(_, let path):
      return [.tell(request: folder.request, WatchNews(id, .init(path: path, isTree: false)))]
    case .tree(_, let path):
      return [.tell(request: folder.request, WatchNews(id, .init(path: path, isTree: true)))]
    case .alive: return []
    case .blind(_, let blindness):
      if let wait = WatchPace.again(blindness.code, attempt: folder.attempts, random: random) {
        folders[id]?.attempts += 1
        folders[id]?.retryAt = now + wait
      }
      return tell(id, blindness)
    }
  }

  /// Asks the program to watch a folder.
  private mutating func ask(_ id: WatchID) -> [Action] {
    guard var folder = folders[id] else { return [] }
    var actions: [Action] = []
    if let old = folder.wire {
      ids[old] = nil
      actions.append(.send(.forget(wire: old)))
    }
    folder.wire = nextWire
    folder.retryAt = nil
    folders[id] = folder
    ids[nextWire] = id
    actions.append(.send(.watch(wire: nextWire, path: folder.path)))
    nextWire += 1
    return actions
  }

  /// Reports that a folder is blind, unless that was reported last.
  private mutating func tell(_ id: WatchID, _ blindness: WatchBlindness) -> [Action] {
    guard let folder = folders[id] else { return [] }
    folders[id]?.isSeen = false
    if folder.blindness == blindness { return [] }
    folders[id]?.blindness = blindness
    return [.tell(request: folder.request, WatchNews(id, .blind(blindness)))]
  }
}
