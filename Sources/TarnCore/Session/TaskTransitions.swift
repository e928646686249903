/// What happens to a task, with the events of it; nil where nothing does.
extension TaskRecord {
  package typealias Transition = (TaskRecord, [SessionEvent])

  /// Seconds that somebody has to say how a task goes on whose request may be good no more.
  package static let answerTime: Int64 = 30

  /// Its turn comes when it has waited long enough.
  ///
  /// - Parameter isFresh: its request is taken for good.
  package func queued(_ terms: TaskTerms, isFresh: Bool = false) -> Transition {
    var task = self
    task.enter(.queued, terms)
    // What failed before may fail again, and is not told twice then.
    if ![Self.stale, Self.delayed, Self.held].contains(code) { (task.code, task.message) = (code, message) }
    if isFresh { task.fresh = terms.now }
    return (task, [])
  }

  /// It waits for a while whether somebody has a better request for it.
  ///
  /// - Parameter isHeld: until it is answered, however long that takes.
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

  /// A rule holds it at the head of an answer.
  package func held(_ terms: TaskTerms, _ response: TaskResponse?) -> Transition? {
    guard state == .running else { return nil }
    var task = self
    task.enter(.waiting, terms)
    (task.code, task.message) = (Self.held, "a rule holds it until it is answered")
    var event = SessionEvent(.needsRequest, time: terms.now, of: task)
    event.response = response
    return (task, [event])
  }

  /// The rules by which it goes on when it was held.
  package func rulesOnceReleased(_ response: TaskResponse?) -> [ResponseRule] {
    var rule = ResponseRule(.accept)
    if let status = response?.status { rule.status = [status, 200, 206] }
    return [rule] + (request.rules ?? [])
  }

  /// Its file goes to another place, and it begins there.
  package func moved(to: String, _ existing: TaskRequest.Existing?, _ terms: TaskTerms) -> Transition? {
    guard !state.isEnd else { return nil }
    var task = self
    task.move(to: to, existing)
    task.enter(.queued, terms)
    return (task, [])
  }

  package func suspended(_ terms: TaskTerms) -> Transition? {
    guard state.isOpen else { return nil }
    var task = self
    task.enter(.suspended, terms)
    return (task, [])
  }

  package func cancelled(_ terms: TaskTerms) -> Transition? {
    guard !state.isEnd else { return nil }
    var task = self
    task.enter(.cancelled, terms)
    (task.code, task.message) = (nil, nil)
    return (task, [SessionEvent(.cancelled, time: terms.now, of: task)])
  }

  /// It was at work, and the process ends or has ended.
  package func interrupted(_ terms: TaskTerms) -> Transition? {
    guard state == .running else { return nil }
    var task = self
    if request.isRepeatable {
      task.enter(.queued, terms)
      return (task, [])
    }
    task.enter(.waiting, terms)
    (task.code, task.message) = (
      "interrupted", "the agent ended while it ran, and to send it again may do something twice"
    )
    return (task, [SessionEvent(.needsRequest, time: terms.now, of: task)])
  }

  package static let timeOver = (
    code: "time-over", message: "it was not done within the time that it may take"
  )

  /// Its time is over.
  package func overdue(_ terms: TaskTerms) -> Transition? {
    guard state.isOpen, let life, min(life.whole, life.stall) <= terms.age else { return nil }
    var task = self
    task.enter(.failed, terms)
    (task.code, task.message) =
      life.whole <= terms.age
      ? Self.timeOver : ("no-progress", "not a byte of it has come for as long as it may take")
    return (task, [SessionEvent(.failed, time: terms.now, of: task)])
  }
}
