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
    let size = TaskAtWork.size(head) ?? work.request.expectedBytes
    let name = SuggestedName.name(disposition: head.contentDisposition, url: head.url)
    do throws(FolderFailure) {
      switch rule?.then {
      case .cancel:
        reason = .fail(
          code: "refused-by-rule", message: "a rule refuses what the server sends\(TaskAtWork.summary(head))")
      case .hold: reason = .hold
      case .place where !work.isMoved:
        // The folder may have become a mirror since the rule was stored.
        if let to = rule?.to, let mirror = TaskPlace(to)?.mirror {
          reason = .fail(code: TaskPlace.inMirror, message: TaskPlace.isInMirror(to, mirror))
        } else if let to = rule?.to, let place = TaskPlace(to),
          let directory = try folder.place(
            task, at: place, name, makesDirectories: work.request.makeDirectories == true)
        {
          answer.to = (to, directory)
        }
      case .place, .accept, nil: break
      }
      if isFile, reason == nil { try folder.name(task, name) }
      if isFile, reason == nil {
        reason = reserve(size ?? work.size, isUnsized: size == nil, for: task)
      }
    } catch {
      verdict = .end(error)
    }
    if reason != nil { verdict = .end(FolderFailure(.stopped, "ended by a rule")) }
    let now = clock.monotonic()
    atWork.withLock { tasks in
      answer.serial = (tasks[task]?.response?.answer.serial ?? 0) + 1
      tasks[task]?.response = (answer, false)
      tasks[task]?.responded = now
      if let reason, tasks[task]?.stopReason == nil { tasks[task]?.stopReason = reason }
    }
    post(.responded(self, task))
    // Others may begin beside a file whose size is known now.
    if settings.quota?.bytes != nil { post(.wake(self)) }
    return verdict
  }

  /// Takes the beginning of an answer that is no file. Runs on the network's thread.
  func refused(_ task: Int64, body: [UInt8]) {
    atWork.withLock { $0[task]?.body = String(decoding: body, as: UTF8.self) }
  }

  /// Lets a file grow whose size the server does not tell. Runs on a lane.
  func grew(_ task: Int64, to bytes: UInt64) -> FolderFailure? {
    // It may have fewer bytes than the client expects.
    guard let work = atWork.withLock({ $0[task] }), work.size < bytes,
      let reason = reserve(bytes, isUnsized: work.isUnsized, for: task)
    else { return nil }
    atWork.withLock { if $0[task]?.stopReason == nil { $0[task]?.stopReason = reason } }
    return FolderFailure(.stopped, "ended by a rule")
  }

  /// Records the last answer, unless the ledger has it.
  func noteResponse(_ task: Int64) throws(LedgerFailure) {
    let isNew = atWork.withLock { $0[task]?.response?.isNoted == false }
    if isNew { try ledger.noteResponse(of: task) }
  }
}

// MARK: - What a client says to a running task

extension DownloadSession {
  /// Stops the transfer of a running task, which begins again with another request.
  ///
  /// - Parameter known: the task as it was when `answer` looked.
  /// - Throws: `TaskRequest.Refusal` for a request that must not be repeated silently.
  func answerRunning(_ order: SessionOrder, _ known: TaskRecord, _ request: TaskRequest) throws
    -> Bool
  {
    let number = known.number
    if order.to == nil, !request.isRepeatable { throw TaskRequest.Refusal.atWork(request) }
    var (isRunning, isCancelled) = (false, false)
    // One step with the wish: a file that gets its name in between is of the old request.
    let changed = try ledger.update(number) { task in
      isRunning = task.state == .running
      if case .cancel = task.wish { isCancelled = order.verb != .retry }
      guard isRunning, !isCancelled else { return nil }
      var task = task
      (task.request.url, task.request.headers) = (request.url, request.headers)
      let wish = order.to.map { TaskWish.move(to: $0, order.existing) } ?? .again
      task.wish = wish.after(task.wish)
      return (task, [])
    }
    guard isRunning else { return try answer(order, number) }
    guard let wish = changed?.wish else { return false }
    _ = try give(.wish(wish), number)
    return true
  }
}

extension SessionOrder {
  /// True when it says only that the task goes on.
  var isBareAnswer: Bool { self == SessionOrder(.answer, task: task) }
}

extension TaskRequest.Refusal {
  /// The refusal to stop a transfer whose request must not be sent twice.
  static func atWork(_ request: TaskRequest) -> Self {
    Self(
      code: "request-at-work",
      message:
        "its \(request.method ?? "request") is on its way, and is not sent twice: suspend the task first")
  }
}
