import TarnCore
import TarnEngine
import TarnFolder
import TarnLedger
import TarnRuntime

/// What the server says to a task at work.
extension DownloadSession {
  /// Takes the head of an answer. Runs on the network's thread.
  func responded(_ task: Int64, _ head: ResponseHead) -> ResponseVerdict {
    guard let work = atWork.withLock({ $0[task] }) else { return .usual }
    let rule = ((work.request.rules ?? []) + (settings.rules ?? [])).first { $0.fits(head) }
    // 416: the partial file has all of it already.
    let isFile = (200..<300).contains(head.status) || head.status == 416 || rule?.then == .accept
    var answer = SessionLedger.Response(TaskResponse(head))
    if head.status == 304, let known = work.known {
      (answer.head.etag, answer.head.lastModified) = (
        head.etag ?? known.etag, head.lastModified ?? known.lastModified
      )
    }
    var verdict = rule?.then == .accept ? ResponseVerdict.take : .usual
    var reason: StopReason?
    let size = head.contentRange?.total ?? head.contentLength ?? work.request.expectedBytes ?? 0
    let name = SuggestedName.name(disposition: head.contentDisposition, url: head.url)
    do throws(FolderFailure) {
      switch rule?.then {
      case .cancel:
        reason = .fail(
          code: "refused-by-rule", message: "a rule refuses what the server sends\(TaskAtWork.summary(head))")
      case .hold: reason = .hold
      case .place:
        if let to = rule?.to, let place = TaskPlace(to),
          let directory = try folder.place(task, at: place, name)
        {
          answer.to = (to, directory)
        }
      case .accept, nil: break
      }
      if isFile, reason == nil { try folder.name(task, name) }
      if isFile, reason == nil { reason = overQuota(task, size) }
    } catch {
      verdict = .end(error)
    }
    if reason != nil { verdict = .end(FolderFailure(.stopped, "ended by a rule")) }
    let now = clock.monotonic()
    atWork.withLock { tasks in
      answer.serial = (tasks[task]?.response?.answer.serial ?? 0) + 1
      tasks[task]?.response = (answer, false)
      tasks[task]?.responded = now
      tasks[task]?.size = reason == nil ? size : 0
      if let reason, tasks[task]?.stopReason == nil { tasks[task]?.stopReason = reason }
    }
    post(.responded(self, task))
    return verdict
  }

  func refused(_ task: Int64, body: [UInt8]) {
    atWork.withLock { $0[task]?.body = String(decoding: body, as: UTF8.self) }
  }

  func grew(_ task: Int64, to bytes: UInt64) -> FolderFailure? {
    // It may be fewer than the client expects.
    let size = max(bytes, atWork.withLock { $0[task]?.size } ?? 0)
    let reason = overQuota(task, size)
    atWork.withLock { tasks in
      tasks[task]?.size = reason == nil ? size : 0
      if let reason, tasks[task]?.stopReason == nil { tasks[task]?.stopReason = reason }
    }
    return reason.map { _ in FolderFailure(.stopped, "ended by a rule") }
  }

  private func overQuota(_ task: Int64, _ size: UInt64) -> StopReason? {
    guard let most = settings.quota?.bytes else { return nil }
    let others = atWork.withLock { tasks in
      tasks.filter { $0.key != task }.values.reduce(UInt64(0)) { $0.addingSaturated($1.size) }
    }
    return .overQuota(
      size, besides: others.addingSaturated(partialFiles.idleBytes.withLock { $0 }), most: most)
  }

  /// Records the last answer, unless the ledger has it.
  func noteResponse(_ task: Int64) throws(LedgerFailure) {
    let isNew = atWork.withLock { $0[task]?.response?.isNoted == false }
    if isNew { try ledger.noteResponse(of: task) }
  }
}
