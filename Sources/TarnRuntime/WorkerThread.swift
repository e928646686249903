import Glibc

/// The error when a thread, or a descriptor that it needs, could not be made, with its `errno`; EAGAIN for a thread at the process
/// limit.
package struct ThreadFailure: Error, Equatable {
  package let number: Int32

  package init(number: Int32) {
    self.number = number
  }
}

/// A named thread with every asynchronous signal blocked, so that only SignalWatch's thread takes them.
///
/// A thread that is never joined is detached when its object goes.
package final class WorkerThread: @unchecked Sendable {
  // Safe because `handle` is set once before `start` returns, and `joining` is behind its own lock.
  private var handle = pthread_t()
  private let joining = Locked(false)
  private let finished = Gate()

  private init() {}

  deinit {
    if !joining.withLock({ $0 }) { pthread_detach(handle) }
  }

  /// Runs `body` on a new thread.
  ///
  /// - Parameters:
  ///   - name: the name shown by `top -H`; the kernel keeps 15 bytes.
  ///   - stackSize: the size of the stack in bytes, rounded up to a multiple of 64 KiB.
  package static func start(
    name: String, stackSize: Int = 1 << 20, body: @escaping @Sendable () -> Void
  ) throws(ThreadFailure) -> WorkerThread {
    let thread = WorkerThread()
    let start = Unmanaged.passRetained(ThreadStart(name: name, finished: thread.finished, body: body))
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setstacksize(&attributes, (max(stackSize, 1) + 0xFFFF) & ~0xFFFF)
    var blocked = SignalSet.asynchronous.set
    var before = sigset_t()
    pthread_sigmask(SIG_SETMASK, &blocked, &before)
    let number = pthread_create(&thread.handle, &attributes, threadMain, start.toOpaque())
    pthread_sigmask(SIG_SETMASK, &before, nil)
    guard number == 0 else {
      start.release()
      thread.joining.withLock { $0 = true }
      throw ThreadFailure(number: number)
    }
    return thread
  }

  /// True when the caller runs on this thread.
  package var isCurrent: Bool { pthread_equal(handle, pthread_self()) != 0 && !finished.isOpen }

  /// Blocks until the body has returned. Any number of threads may call, but not the thread itself.
  package func join() {
    let first = joining.withLock { joined in
      defer { joined = true }
      return !joined
    }
    if first { pthread_join(handle, nil) } else { finished.wait() }
  }

  /// Sends a signal to this thread alone. Does nothing after it ended.
  func send(signal: Int32) {
    joining.withLock { joined in
      if !joined { pthread_kill(handle, signal) }
    }
  }
}

private final class ThreadStart: Sendable {
  let name: String
  let finished: Gate
  let body: @Sendable () -> Void

  init(name: String, finished: Gate, body: @escaping @Sendable () -> Void) {
    self.name = name
    self.finished = finished
    self.body = body
  }
}

private func threadMain(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  guard let argument else { return nil }
  let start = Unmanaged<ThreadStart>.fromOpaque(argument).takeRetainedValue()
  nameThisThread(start.name)
  start.body()
  start.finished.open()
  return nil
}

/// Names the thread through /proc, since Glibc's Swift module lacks pthread_setname_np. Without /proc only the name is missing.
private func nameThisThread(_ name: String) {
  let descriptor = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
  guard descriptor >= 0 else { return }
  let bytes = Array(name.utf8.prefix(15))
  _ = write(descriptor, bytes, bytes.count)
  close(descriptor)
}

extension WorkerThread {
  /// Lets the calling thread sleep.
  ///
  /// - Parameter microseconds: the time, less than a second; a signal cuts it short.
  package static func sleep(microseconds: UInt32) {
    var time = timespec(tv_sec: 0, tv_nsec: Int(microseconds) * 1000)
    nanosleep(&time, nil)
  }
}
