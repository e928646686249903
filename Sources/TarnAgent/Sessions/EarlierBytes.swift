import TarnCore
import TarnFolder
import TarnLedger

/// Bytes of a task that lie elsewhere when it begins: where its file was to go before, or in somebody else's file. Any thread.
struct EarlierBytes: Sendable {
  let ledger: SessionLedger
  let folder: SessionFolder
  /// Of this boot; empty when it cannot be read.
  let bootID: String

  static func areElsewhere(_ task: TaskRecord) -> Bool {
    task.movedFrom != nil || task.request.resuming != nil
  }

  /// Brings them to the task's destination, which is open. To another file system they are copied.
  ///
  /// - Parameter isStopped: asked for every MiB that is copied.
  /// - Throws: why they cannot be brought; then they are where they were.
  func bring(_ task: TaskRecord, unless isStopped: () -> Bool) throws {
    if let directory = task.movedFrom {
      try folder.movePartial(of: task.number, from: directory, unless: isStopped)
    }
    let path = RelativePath(task: task.number)
    if let resuming = task.request.resuming, try ledger.partial(path) == nil {
      let (name, bytes) = try folder.adopt(resuming.file, for: task.number, unless: isStopped)
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
