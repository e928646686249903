/// The transitions of a task, each with its events; `nil` where nothing changes.
extension TaskRecord {
  package typealias Transition = (TaskRecord, [SessionEvent])

  /// Seconds to wait for an answer when the request of a task may no longer be valid.
  package static let answerTime: Int64 = 30

  /// Queues the task after it has waited long enough.
  ///
  /// - Parameter isFresh: true when its request counts as valid.
  package func queued(_ terms: TaskTerms, isFresh: Bool = false) -> Transition {
    var task = self
    task.enter(.queued, terms)
    // A failure may happen again, and is not reported twice then. By its code a session knows a task that has waited for room.
    if ![Self.stale, Self.delayed, Self.held].contains(code) { (task.code, task.message) = (code, message) }
    if isFresh { task.fresh = terms.now }
    return (task, [])
  }

  /// Lets the task wait for a while, in case a better request for it arrives.
  ///
  /// - Parameter isHeld: true to wait until it is answered, however long that takes.
  package func asked(_ terms: TaskTerms, isHeld: Bool) -> Transition {
    var task = self
    task.enter(.waiting, terms)
    task.code = Self.stale
    task.message =
      isHeld
      ? "it begins when it is answered" : "it begins in \(Self.answerTime) s unless it is answered before"
    task.nextAttempt = isHeld ? nil : terms.now.adding(seconds: Self.answerTime)
    return (task, [SessionEvent(.needsRequest, time: terms.now, of: task)])
  }

  /// Lets a rule hold the task at the head of an answer.
  package func held(_ terms: TaskTerms, _ response: TaskResponse?) -> Transition? {
    guard state == .running else { return nil }
    var task = self
    task.enter(.waiting, terms)
    (task.code, task.message) = (Self.held, "a rule holds it until it is answered")
    var event = SessionEvent(.needsRequest, time: terms.now, of: task)
    event.response = response
    return (task, [event])
  }

  /// Returns the rules for a held task that goes on.
  package func rulesOnceReleased(_ response: TaskResponse?) -> [ResponseRule] {
    var rule = ResponseRule(.accept)
    if let status = response?.status { rule.status = [status, 200, 206] }
    return [rule] + (request.rules ?? [])
  }

  /// Changes the destination of the file and queues the task.
  package func moved(to: String, _ existing: TaskRequest.Existing?, _ terms: TaskTerms) -> Transition? {
    guard !state.isEnd else { return nil }
    var task = self
    task.move(to: to, existing)
    guard !needsOrder else { return task.unanswered(terms) }
    task.enterQueue(terms)
    return (task, [])
  }

  /// Changes the destination of the file and suspends the task.
  func movedAndSuspended(to: String, _ existing: TaskRequest.Existing?, _ terms: TaskTerms) -> Transition? {
    guard !state.isEnd else { return nil }
    var task = self
    task.move(to: to, existing)
    return task.suspended(terms)
  }

  package func suspended(_ terms: TaskTerms) -> Transition? {
    guard state.isOpen else { return nil }
    var task = self
    let isUnanswered = needsOrder
    task.enter(.suspended, terms)
    if isUnanswered { (task.code, task.message) = (Self.interruptedCode, Self.interruptedMessage) }
    return (task, [])
  }

  /// Queues a suspended task, or one whose transfer was stopped.
  package func resumed(_ terms: TaskTerms) -> Transition? {
    guard !state.isEnd else { return nil }
    var task = self
    guard !needsOrder else { return task.unanswered(terms) }
    task.attempts = 0
    task.fresh = terms.now
    task.enterQueue(terms)
    return (task, [])
  }

  /// The code of a task whose request may have reached the server, and must not be sent again without an order.
  package static let interruptedCode = "interrupted"
  package static let interruptedMessage =
    "its request may have reached the server, and to send it again may do something twice"

  /// True when its request may have reached the server, and must not be repeated silently.
  private var needsOrder: Bool {
    guard !request.isRepeatable else { return false }
    switch state {
    case .running: return true
    case .waiting: return ![Self.delayed, Self.stale].contains(code)
    case .suspended: return code == Self.interruptedCode
    case .queued, .finished, .failed, .cancelled: return false
    }
  }

  /// Lets a finished task begin again when somebody orders that its request, which is no GET, is sent again.
  package func reopened(_ terms: TaskTerms) -> Transition? {
    guard state == .finished else { return nil }
    var task = self
    task.attempts = 0
    task.begin(.queued, terms)
    return task.unanswered(terms)
  }

  /// Lets the task wait for somebody who orders that its request is sent again.
  private func unanswered(_ terms: TaskTerms) -> Transition {
    var task = self
    task.enter(.waiting, terms)
    (task.code, task.message, task.nextAttempt) = (Self.interruptedCode, Self.interruptedMessage, nil)
    return (task, [SessionEvent(.needsRequest, time: terms.now, of: task)])
  }

  package func cancelled(_ terms: TaskTerms) -> Transition? {
    guard !state.isEnd else { return nil }
    var task = self
    task.enter(.cancelled, terms)
    (task.code, task.message) = (nil, nil)
    return (task, [SessionEvent(.cancelled, time: terms.now, of: task)])
  }

  /// Ends the run of a task because the process ends or has ended.
  package func interrupted(_ terms: TaskTerms) -> Transition? {
    guard state == .running else { return nil }
    if let wish { return obeying(wish, terms) }
    var task = self
    if request.isRepeatable {
      task.enter(.queued, terms)
      return (task, [])
    }
    return task.unanswered(terms)
  }

  package static let timeOver = (
    code: "time-over", message: "it was not finished within its time limit"
  )

  package static let noProgress = (
    code: "no-progress", message: "no byte of it has arrived within its time limit"
  )

  /// Fails a task whose time is over.
  package func overdue(_ terms: TaskTerms) -> Transition? {
    guard state.isOpen, let life, min(life.whole, life.stall) <= terms.age else { return nil }
    var task = self
    task.enter(.failed, terms)
    (task.code, task.message) =
      life.whole <= terms.age ? Self.timeOver : Self.noProgress
    return (task, [SessionEvent(.failed, time: terms.now, of: task)])
  }

  /// Handles a request that is handed over again, with the URL and the destination that the task was added with. A task that has
  /// ended is queued once more.
  ///
  /// - Parameter takesAll: true to give a task that is not running the whole request, and to leave a finished one finished. Otherwise
  ///   one that has not ended only gets another digest.
  /// - Returns: whether the task has changed.
  package mutating func renew(with request: TaskRequest, _ terms: TaskTerms, takesAll: Bool) -> Bool {
    let key = self.request.key ?? request.key
    defer { self.request.key = key }
    let isOther = request.digest != nil && request.digest != self.request.digest
    switch state {
    case .failed, .cancelled:
      // Its bytes may be at another place, where it was sent since.
      move(to: request.to, request.existing)
      (self.request, attempts, fresh, isMoved) = (request, 0, terms.now, false)
      begin(request.first, terms)
      return true
    case .finished where !takesAll:
      // The file stays where it is, and is compared there.
      let place = self.request.to
      (self.request, attempts, fresh) = (request, 0, terms.now)
      self.request.to = place
      begin(request.first, terms)
      return true
    case .running:
      let isCancelled = isBound(for: [.cancelled])
      if isCancelled { wish = .goOn }
      // The present transfer does not know it: see `DownloadSession.ended`.
      if isOther { self.request.digest = request.digest }
      return isCancelled || isOther || key != self.request.key
    case .suspended, .queued, .waiting, .finished:
      let place = self.request.to
      if takesAll { self.request = request }
      if takesAll || isOther { (self.request.digest, self.request.to) = (request.digest, place) }
      return takesAll || isOther || key != self.request.key
    }
  }
}

extension TaskRequest {
  /// The state that the task begins with.
  package var first: TaskState { suspended == true ? .suspended : .queued }
}
