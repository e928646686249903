import Glibc
import Logging
import TarnConfig
import TarnCore
import TarnRuntime

/// Notifies hooks of what happens to mirrors. Callable on any thread; no caller waits for a hook.
///
/// One thread does the work, `tarn-hooks`; it begins with the first hook of the settings.
final class Hooks: Sendable {
  struct State {
    var settings: [String: HookSettings] = [:]
    var queue: HookQueue
    /// The results of requests, added by the network's thread.
    var ended: [(hook: String, item: String, result: HookQueue.Result)] = []
    var isEnding = false
    /// The socket that wakes the thread; -1 while there is none.
    var bell: Int32 = -1
    var thread: WorkerThread?
  }

  let state: Locked<State>
  let log: Logger
  let clock: any Clock
  let random: any RandomSource
  /// The directory `$CREDENTIALS_DIRECTORY`.
  let credentials: String?
  /// The file that a later agent continues with; `nil` when nothing is recorded.
  let file: String?
  let host: String

  /// - Parameter directory: the agent's state directory.
  init(
    directory: String?, credentials: String?, log: Logger, clock: any Clock, random: any RandomSource
  ) {
    (self.log, self.clock, self.random, self.credentials) = (log, clock, random, credentials)
    let file = directory.map { "\($0)/hooks.json" }
    self.file = file
    host = Self.hostName
    let kept = file.flatMap { TextFile.read($0, limit: 64 << 20) }
      .flatMap { JSONText.value([HookQueue.Item].self, from: $0) }
    state = Locked(State(queue: HookQueue(kept ?? [])))
  }

  /// Sets the hooks of the settings, from now on.
  func set(_ hooks: [HookSettings]) {
    let (dropped, starts) = state.withLock { state -> ([HookQueue.Item], Bool) in
      let before = state.settings
      state.settings = Dictionary(hooks.map { ($0.name, $0) }) { first, _ in first }
      for (name, hook) in state.settings where before[name].map({ $0 != hook }) == true {
        state.queue.renew(name)
      }
      let dropped = state.queue.keep(Set(state.settings.keys))
      return (dropped, state.bell < 0 && !(hooks.isEmpty && dropped.isEmpty))
    }
    if !dropped.isEmpty {
      log.tell(
        .notice, "\(Units.count(dropped.count, "event")) of hooks that no longer exist: nobody is told",
        .of(code: "hook-dropped"))
    }
    if starts { start() } else { ring() }
  }

  /// - Parameter make: returns the document without its number; called only when some hook receives the
  ///   event.
  func tell(_ event: HookEvent, of mirror: String, _ make: () -> HookDocument) {
    let names = state.withLock { state in
      state.settings.values.filter { $0.hears(event, of: mirror) }.map(\.name).sorted()
    }
    guard !names.isEmpty else { return }
    let document = make()
    let dropped = state.withLock { state in names.compactMap { state.queue.add(document, to: $0) } }
    ring()
    for item in dropped {
      log.tell(
        .warning,
        "hook \(item.hook): \(item.document.event.rawValue) of \(item.document.mirror) is dropped: "
          + "\(HookQueue.most) events wait already",
        .of(mirror: item.document.mirror, code: "hook-dropped"))
    }
  }

  /// The status of each hook, by its name; `nil` when there are none.
  var statuses: [HookStatus]? {
    state.withLock { state in
      let names = state.settings.keys.sorted()
      return names.isEmpty ? nil : names.map { HookStatus($0, state.queue.health(of: $0)) }
    }
  }

  /// Ends the thread. Work in progress gets a moment; the next agent tells the rest.
  func end() {
    let thread = state.withLock { state in
      state.isEnding = true
      return state.thread
    }
    ring()
    thread?.join()
  }

  private func start() {
    var ends: [Int32] = [-1, -1]
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { return tellNoThread() }
    let ears = ends[1]
    state.withLock { $0.bell = ends[0] }
    do {
      let thread = try WorkerThread.start(name: "tarn-hooks") { [self] in HookLoop(self, ears: ears).run() }
      state.withLock { $0.thread = thread }
    } catch {
      state.withLock { $0.bell = -1 }
      for end in ends { close(end) }
      tellNoThread()
    }
  }

  private func tellNoThread() {
    log.tell(.error, "there is no thread for hooks: nobody is told", .of(code: "hook-failed"))
  }

  /// Wakes the thread, which looks at its clock then.
  func ring() {
    // Under the lock, so that nobody closes it meanwhile. The write does not block; a full socket wakes the
    // thread already.
    state.withLock { state in
      var byte: UInt8 = 1
      if state.bell >= 0 { _ = write(state.bell, &byte, 1) }
    }
  }

  /// Takes the result of a request. Runs on the network's thread.
  ///
  /// - Parameter item: the id of the document that the hook was told.
  func requestEnded(_ hook: String, _ item: String, _ result: HookQueue.Result) {
    state.withLock { $0.ended.append((hook, item, result)) }
    ring()
  }

  /// Closes the socket when the thread ends.
  func closeBell() {
    state.withLock { state in
      close(state.bell)
      state.bell = -1
    }
  }

  private static var hostName: String {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "localhost" }
    return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}

extension HookStatus {
  init(_ name: String, _ health: HookQueue.Health) {
    self.init(name: name, state: health.failures > 0 ? "failing" : "good")
    failures = health.failures
    since = health.since?.rfc3339
    message = health.message
    waiting = health.waiting
    dropped = health.dropped
  }
}
