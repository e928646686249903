internal import NIOCore

/// Runs Swift tasks on an event loop: no thread is changed between the connection and its task, and the socket answers
/// even when something else in the process blocks the threads that tasks share.
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
