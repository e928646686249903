internal import NIOCore

/// Runs Swift tasks on an event loop. A connection and its task share a thread, and the socket answers even when the threads that
/// tasks share are blocked.
final class LoopTasks: TaskExecutor {
  private let loop: any EventLoop

  init(_ loop: any EventLoop) {
    self.loop = loop
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
