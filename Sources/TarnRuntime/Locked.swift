import Glibc
import TarnCore

/// A value behind a lock. Short critical sections only: no I/O, no other lock, no `await` inside. Copies share the value.
///
/// A `pthread_mutex_t` on the heap, because ThreadSanitizer sees it; `Synchronization.Mutex` gives false reports.
package struct Locked<Value>: @unchecked Sendable {
  // Safe because the value is touched only with the mutex held, and both live at a fixed address as long as any copy.
  private let storage: LockedStorage<Value>

  package init(_ value: consuming sending Value) {
    storage = LockedStorage.make(value)
  }

  /// Calls `body` with the lock held. Not recursive: a second `withLock` from inside `body` deadlocks.
  package func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try storage.withLock(body)
  }
}

/// The mutex and the value in one object, since most of them live only for one file.
private final class LockedStorage<Value>: ManagedBuffer<pthread_mutex_t, Value> {
  static func make(_ value: consuming Value) -> LockedStorage {
    let made = unsafeDowncast(
      LockedStorage.create(minimumCapacity: 1) { _ in pthread_mutex_t() }, to: LockedStorage.self)
    made.withUnsafeMutablePointerToHeader { _ = pthread_mutex_init($0, nil) }
    // The object lives until it is returned, and its memory does not move.
    let place = made.withUnsafeMutablePointerToElements { $0 }
    place.initialize(to: value)
    return made
  }

  deinit {
    withUnsafeMutablePointers { mutex, value in
      pthread_mutex_destroy(mutex)
      value.deinitialize(count: 1)
    }
  }

  func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withUnsafeMutablePointers { mutex, value throws(Failure) in
      pthread_mutex_lock(mutex)
      defer { pthread_mutex_unlock(mutex) }
      return try body(&value.pointee)
    }
  }
}

/// A value behind a lock that threads can wait on.
///
/// Waiting is for a predicate, not for a signal: `wait(for:)` looks again after each `change` and each spurious wake-up.
package final class LockedCondition<Value>: @unchecked Sendable {
  // Safe because `value` is touched only with `mutex` held, and all three live at a fixed address until deinit.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>
  private let value: UnsafeMutablePointer<Value>

  package init(_ value: consuming sending Value) {
    mutex = makeMutex()
    condition = .allocate(capacity: 1)
    condition.initialize(to: pthread_cond_t())
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
    self.value = .allocate(capacity: 1)
    self.value.initialize(to: value)
  }

  deinit {
    pthread_cond_destroy(condition)
    condition.deallocate()
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
    value.deinitialize(count: 1)
    value.deallocate()
  }

  /// Reads or writes without waking any thread. Not recursive.
  package func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&value.pointee)
  }

  /// Writes, then wakes every waiting thread to look again. Not recursive.
  package func change<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(mutex)
    defer {
      // In this order, a thread that wakes up finds the lock free. The caller holds this object until both are done.
      pthread_mutex_unlock(mutex)
      pthread_cond_broadcast(condition)
    }
    return try body(&value.pointee)
  }

  /// Blocks until `body`, called with the lock held, returns something. Then wakes every other waiting thread to look again.
  package func changeOnce<Result>(_ body: (inout Value) -> Result?) -> Result {
    pthread_mutex_lock(mutex)
    defer {
      pthread_mutex_unlock(mutex)
      pthread_cond_broadcast(condition)
    }
    while true {
      if let result = body(&value.pointee) { return result }
      pthread_cond_wait(condition, mutex)
    }
  }

  /// Blocks until `body`, called with the lock held, returns something.
  package func wait<Result>(for body: (inout Value) -> Result?) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while true {
      if let result = body(&value.pointee) { return result }
      pthread_cond_wait(condition, mutex)
    }
  }

  /// Like `wait(for:)`, but at most for the given time.
  ///
  /// - Returns: `nil` when the time has passed; `body` has been called at least once.
  package func wait<Result>(atMost duration: Duration, for body: (inout Value) -> Result?) -> Result? {
    let deadline = timespec(Instant.now + duration)
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while true {
      if let result = body(&value.pointee) { return result }
      var moment = deadline
      if pthread_cond_timedwait(condition, mutex, &moment) == ETIMEDOUT { return body(&value.pointee) }
    }
  }
}

/// A lock for slow work, such as writing to a terminal or a file. `Locked` is for short sections.
package final class SlowLock: Sendable {
  private let isTaken = LockedCondition(false)

  package init() {}

  /// Blocks until no other thread holds the lock, then calls `body`. Not recursive.
  package func withLock<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure)
    -> Result
  {
    isTaken.wait { isTaken -> Void? in
      guard !isTaken else { return nil }
      isTaken = true
      return ()
    }
    defer { isTaken.change { $0 = false } }
    return try body()
  }
}

/// A gate that opens once and stays open.
package final class Gate: Sendable {
  private let state = LockedCondition(false)

  package init() {}

  package var isOpen: Bool { state.withLock { $0 } }

  package func open() {
    state.change { $0 = true }
  }

  /// Blocks until the gate is open.
  package func wait() {
    state.wait { $0 ? () : nil }
  }

  /// - Returns: false when the time passed first.
  package func wait(atMost duration: Duration) -> Bool {
    state.wait(atMost: duration) { $0 ? true : nil } ?? false
  }
}

extension timespec {
  fileprivate init(_ instant: Instant) {
    let total = min(instant.nanoseconds, UInt64(Int64.max))
    self.init(tv_sec: Int(total / 1_000_000_000), tv_nsec: Int(total % 1_000_000_000))
  }
}

private func makeMutex() -> UnsafeMutablePointer<pthread_mutex_t> {
  let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  mutex.initialize(to: pthread_mutex_t())
  pthread_mutex_init(mutex, nil)
  return mutex
}
