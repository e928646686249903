package import Glibc
package import TarnCore
package import TarnRuntime

/// Watches folders through the program tarn-watch, which it starts, supervises and ends.
///
/// One thread, `tarn-watcher`, talks to the program and calls the receiver. The program is started with the first folder. When it
/// dies, all folders are reported blind (`watcher-died`), and it is started again: at once, then after 1 s, doubling up to 5 min;
/// after a minute of running the count begins anew. Then all folders are requested again.
package final class WatcherProcess: Watching {
  private enum Order {
    case watch(WatchID, request: UInt64, path: [UInt8])
    case forget(WatchID)
  }

  private struct Inbox {
    var orders: [Order] = []
    /// The latest request of each folder that is watched.
    var wanted: [WatchID: UInt64] = [:]
    var nextRequest: UInt64 = 1
    var isClosed = false
    /// A descriptor; a byte written to it wakes the thread. -1 when the thread has ended.
    var bell: Int32
    var pid: pid_t?
  }

  private let inbox: Locked<Inbox>
  private let thread: WorkerThread

  /// - Parameters:
  ///   - places: paths of tarn-watch, of which the first executable one is started. `nil` for the one beside this program, then in
  ///     ../libexec/tarn from there.
  ///   - longestSilence: a program that is silent for so long is ended and started again.
  ///   - receiver: called on the watcher's thread; must not block, and must not close the watcher.
  /// - Throws: when the system provides no thread or descriptor.
  package init(
    places: [String]? = nil, clock: any Clock = SystemClock(), random: any RandomSource = SystemRandom(),
    longestSilence: Duration = WatchPace.longestSilence,
    receiver: @escaping @Sendable (WatchNews) -> Void
  ) throws(ThreadFailure) {
    guard let (bell, wake) = WatcherChild.pair() else { throw ThreadFailure(number: errno) }
    let inbox = Locked(Inbox(bell: bell))
    self.inbox = inbox
    let places = places ?? WatcherChild.usualPlaces
    do throws(ThreadFailure) {
      thread = try WorkerThread.start(name: "tarn-watcher", stackSize: 512 << 10) {
        Loop(
          inbox, wake: wake, places: places, clock: clock, random: random, longestSilence: longestSilence,
          receiver: receiver
        ).run()
        Glibc.close(wake)
      }
    } catch {
      Glibc.close(bell)
      Glibc.close(wake)
      throw error
    }
  }

  deinit { close() }

  /// The process ID of the running program; `nil` while there is none.
  package var processID: pid_t? { inbox.withLock { $0.pid } }

  package func watch(_ id: WatchID, path: [UInt8]) {
    inbox.withLock { inbox in
      guard !inbox.isClosed else { return }
      let request = inbox.nextRequest
      inbox.nextRequest += 1
      inbox.wanted[id] = request
      inbox.orders.append(.watch(id, request: request, path: path))
      Self.ring(inbox.bell)
    }
  }

  package func forget(_ id: WatchID) {
    inbox.withLock { inbox in
      guard !inbox.isClosed, inbox.wanted.removeValue(forKey: id) != nil else { return }
      inbox.orders.append(.forget(id))
      Self.ring(inbox.bell)
    }
  }

  package func close() {
    inbox.withLock { inbox in
      guard !inbox.isClosed else { return }
      inbox.isClosed = true
      inbox.wanted = [:]
      Self.ring(inbox.bell)
    }
    thread.join()
    inbox.withLock { inbox in
      if inbox.bell >= 0 { Glibc.close(inbox.bell) }
      inbox.bell = -1
    }
  }

  /// Wakes the thread. A byte that does not fit need not be written, since the thread wakes in any case.
  private static func ring(_ bell: Int32) {
    var byte: UInt8 = 0
    _ = write(bell, &byte, 1)
  }

  /// The state that the thread owns.
  private final class Loop {
    private let inbox: Locked<Inbox>
    private let wake: Int32
    private let places: [String]
    private let clock: any Clock
    private let receiver: @Sendable (WatchNews) -> Void
    private var state: WatcherState
    private var child: WatcherChild?
    /// When the program last sent something, by the machine's clock, which is the only one the program knows.
    private var heard = Instant()
    private let longestSilence: Duration

    init(
      _ inbox: Locked<Inbox>, wake: Int32, places: [String], clock: any Clock, random: any RandomSource,
      longestSilence: Duration, receiver: @escaping @Sendable (WatchNews) -> Void
    ) {
      self.inbox = inbox
      self.wake = wake
      self.places = places
      self.clock = clock
      self.longestSilence = longestSilence
      self.receiver = receiver
      state = WatcherState(random: random)
    }

    func run() {
      while takeOrders() {
        perform(state.tick(clock.monotonic()))
        waitForWork()
        if child != nil, silence >= longestSilence { end("said nothing any more") }
      }
      _ = child?.end(isKill: true)
      inbox.withLock { $0.pid = nil }
    }

    /// - Returns: false when the watcher is closed.
    private func takeOrders() -> Bool {
      let orders = inbox.withLock { inbox -> [Order]? in
        guard !inbox.isClosed else { return nil }
        defer { inbox.orders = [] }
        return inbox.orders
      }
      guard let orders else { return false }
      for order in orders {
        switch order {
        case .watch(let id, let request, let path):
          perform(state.watch(id, request: request, path: path, now: clock.monotonic()))
        case .forget(let id): perform(state.forget(id))
        }
      }
      return true
    }

    /// Sleeps until there is something to do, and takes what the program sends.
    private func waitForWork() {
      let output = child?.output ?? -1
      var polled = [
        pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
        pollfd(fd: output, events: Int16(POLLIN), revents: 0),
        pollfd(fd: child?.wantsToSend ?? -1, events: Int16(POLLOUT), revents: 0),
      ]
      guard poll(&polled, 3, timeout) > 0 else { return }
      if polled[0].revents != 0 {
        var rings = [UInt8](repeating: 0, count: 256)
        _ = read(wake, &rings, rings.count)
      }
      if polled[2].revents != 0 { child?.flush() }
      if polled[1].revents != 0 { receive() }
    }

    /// The time since the program last sent something.
    private var silence: Duration { Instant.now.elapsed(since: heard) }

    /// The timeout of poll in milliseconds, rounded up; -1 for none.
    private var timeout: Int32 {
      var waits: [Duration] = []
      if let due = state.dueAt { waits.append(due.remaining(at: clock.monotonic())) }
      if child != nil { waits.append(longestSilence - silence) }
      return waits.min()?.milliseconds ?? -1
    }

    private func receive() {
      heard = Instant.now
      switch child?.receive() {
      case .records(let records):
        for record in records { perform(state.received(record, now: clock.monotonic())) }
      case .nonsense: end("said something that is not a record")
      case .end: end(nil)
      case nil: break
      }
    }

    private func end(_ why: String?) {
      guard let child else { return }
      self.child = nil
      inbox.withLock { $0.pid = nil }
      let ending = child.end(isKill: why != nil)
      let text = "tarn-watch (process \(child.pid)) \(why ?? ending)"
      perform(state.failed(.init(.watcherDied, text), now: clock.monotonic()))
    }

    private func perform(_ actions: [WatcherState.Action]) {
      for action in actions {
        switch action {
        case .start: start()
        case .send(let command): child?.send(command)
        case .tell(let request, let news):
          if inbox.withLock({ $0.wanted[news.id] == request }) { receiver(news) }
        }
      }
    }

    private func start() {
      do throws(WatcherStartFailure) {
        let child = try WatcherChild(places: places)
        self.child = child
        heard = Instant.now
        inbox.withLock { $0.pid = child.pid }
        perform(state.started(clock.monotonic()))
      } catch {
        perform(state.failed(error.blindness, now: clock.monotonic()))
      }
    }
  }
}
