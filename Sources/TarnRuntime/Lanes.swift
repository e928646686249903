/// Threads for blocking work, each with its own queue: the work of one lane runs in order, one at a time, and the lanes run in
/// parallel.
///
/// The queues have no limit of their own: the caller limits what it submits.
package final class Lanes: Sendable {
  private struct Queue {
    var waiting: [@Sendable () -> Void] = []
    var isClosed = false
  }

  private let queues: [LockedCondition<Queue>]
  private let threads: [WorkerThread]

  /// - Parameters:
  ///   - name: the name of the threads, followed by the number of the lane.
  ///   - count: the number of lanes, at least 1.
  package init(name: String, count: Int, stackSize: Int = 1 << 20) throws(ThreadFailure) {
    var queues: [LockedCondition<Queue>] = []
    var threads: [WorkerThread] = []
    for number in 0..<max(1, count) {
      let queue = LockedCondition(Queue())
      do throws(ThreadFailure) {
        threads.append(
          try WorkerThread.start(name: "\(name)-\(number)", stackSize: stackSize) { Self.run(queue) })
      } catch {
        for queue in queues { queue.change { $0.isClosed = true } }
        throw error
      }
      queues.append(queue)
    }
    self.queues = queues
    self.threads = threads
  }

  deinit {
    for queue in queues { queue.change { $0.isClosed = true } }
  }

  package var count: Int { queues.count }

  /// Adds work to a lane. Never blocks for long. `lane` may be any number; it is taken modulo `count`.
  ///
  /// - Returns: false after `close()`; the work is dropped then.
  @discardableResult
  package func submit(lane: Int, _ work: @escaping @Sendable () -> Void) -> Bool {
    let index = ((lane % queues.count) + queues.count) % queues.count
    return queues[index].change { queue in
      guard !queue.isClosed else { return false }
      queue.waiting.append(work)
      return true
    }
  }

  /// Runs what was submitted and joins the threads. Must not be called from a lane. Closing twice is harmless.
  package func close() {
    for queue in queues { queue.change { $0.isClosed = true } }
    for thread in threads { thread.join() }
  }

  private static func run(_ queue: LockedCondition<Queue>) {
    while true {
      let batch = queue.wait { queue -> [@Sendable () -> Void]? in
        guard !queue.waiting.isEmpty else { return queue.isClosed ? [] : nil }
        defer { queue.waiting.removeAll(keepingCapacity: queue.waiting.capacity <= 1024) }
        return queue.waiting
      }
      if batch.isEmpty { return }
      for work in batch { work() }
    }
  }
}
