import TarnCore
import TarnEngine
import TarnFolder
import TarnLedger
import TarnRuntime

/// Moves the bytes of a task that lie elsewhere when it begins: at its earlier destination, or in a file of
/// somebody else. Callable on any thread.
final class EarlierBytes: Sendable {
  private let ledger: SessionLedger
  private let folder: SessionFolder
  private let bootID: String
  /// The number of threads that bring bytes.
  private let workers = LockedCondition(0)

  /// - Parameter bootID: the id of this boot; empty when it cannot be read.
  init(ledger: SessionLedger, folder: SessionFolder, bootID: String) {
    (self.ledger, self.folder, self.bootID) = (ledger, folder, bootID)
  }

  /// Returns whether the bytes that a task begins with lie at another place than its destination, and have to be brought.
  static func areElsewhere(_ task: TaskRecord) -> Bool {
    task.movedFrom != nil || task.request.resuming != nil
  }

  /// Brings the bytes to the task's open destination, on a thread of its own. They are copied when that is on
  /// another file system.
  ///
  /// - Parameters:
  ///   - isStopped: called for every MiB that is copied.
  ///   - ended: called with the reason when the bytes stay where they were; with `nil` on success.
  func bring(
    _ task: TaskRecord, unless isStopped: @escaping @Sendable () -> Bool,
    ended: @escaping @Sendable (PassFailure?) -> Void
  ) {
    workers.change { $0 += 1 }
    do throws(ThreadFailure) {
      _ = try WorkerThread.start(name: "tarn-bring") { [self] in
        defer { workers.change { $0 -= 1 } }
        do {
          try bring(task, unless: isStopped)
          ended(nil)
        } catch {
          ended(PassFailure(translating: error))
        }
      }
    } catch {
      workers.change { $0 -= 1 }
      ended(PassFailure(translating: error))
    }
  }

  /// Waits until no bytes are being brought.
  func wait() { workers.wait { $0 == 0 ? () : nil } }

  /// - Throws: a failure of the request. One of a folder would be taken for the destination's.
  private static func open(_ file: String) throws(PassFailure) -> SessionFolder.EarlierFile {
    do throws(FolderFailure) {
      return try SessionFolder.EarlierFile(file)
    } catch {
      throw PassFailure(
        .configuration, code: DownloadFailure.Code.fileNotReadable.rawValue,
        "\(Printable.escape(file)) cannot be read: \(error.message)")
    }
  }

  private func bring(_ task: TaskRecord, unless isStopped: () -> Bool) throws {
    if let directory = task.movedFrom {
      try folder.movePartial(of: task.number, from: directory, unless: isStopped)
    }
    let path = RelativePath(task: task.number)
    if let resuming = task.request.resuming, try ledger.partial(path) == nil {
      let file = try Self.open(resuming.file)
      let (name, bytes) = try folder.adopt(file, for: task.number, unless: isStopped)
      let row = PartialRow(
        path: path, name: name, url: task.request.url, etag: resuming.etag,
        lastModified: resuming.lastModified, total: nil,
        digest: task.request.digest.flatMap { Digest(labelled: $0) }, fingerprint: [], durable: bytes,
        bootID: bootID)
      try ledger.apply([.partial(row)])
    }
    try ledger.update(task.number) { task in
      var task = task
      (task.movedFrom, task.request.resuming) = (nil, nil)
      return (task, [])
    }
  }
}
