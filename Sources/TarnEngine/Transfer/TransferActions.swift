/// What a transfer state has done, and how its jobs end.
extension TransferState {
  enum Ending: Hashable {
    /// What was fetched, or copied, has its name.
    case placed
    /// What stands there is what the server has.
    case unchanged
    /// What stands there is not what was expected.
    case stale
    case failed
    /// With nothing else of its client at work there was no space.
    case noSpace
    case cancelled
    case paused
    case abandoned
    /// Nothing more is begun: what came of it is kept.
    case stopped

    /// What becomes of those who wait for its path: a file was placed there, so that they have to look again; or a person's order
    /// ended it, which names the path, whoever would bring it, so that nobody begins it anew. (Only who cancels all that it submitted
    /// leaves alone what others wait for.) nil where the first of them goes on: nothing was brought.
    var ofThoseWhoWait: Ending? {
      switch self {
      case .placed, .unchanged: .stale
      case .cancelled, .paused: self
      case .stale, .failed, .noSpace, .abandoned, .stopped: nil
      }
    }
  }

  enum Action: Hashable {
    /// Take space for it; `reserved` or `refused` answers.
    case reserve(JobID)
    /// Look for its bytes; `looked` answers.
    case look(JobID)
    /// Ask a source; `answered` or `confirmed` answers.
    case ask(JobID)
    /// End its exchange; `answered` comes all the same.
    case cancelExchange(JobID)
    /// It gets the next connection.
    case prioritize(JobID)
    /// Check its bytes; `answered` answers.
    case seal(JobID)
    /// Give it its name; `published` or `confirmed` answers.
    case publish(JobID)
    /// Give bytes of the space back.
    case release(UInt64)
    /// It begins anew, as if nothing had been asked for.
    case putBack(JobID)
    /// No source is left: it has failed, unless another job brings its contents.
    case exhausted(JobID)
    /// Are its contents in the folder? `foundCopy` answers.
    case findCopy(JobID)
    /// There is no room to remember it: it is over here, and comes later.
    case postpone(JobID)
    /// The same, of one without a source.
    case setAside(JobID)
    /// The path is its client's; `yield` gives it back.
    case granted(JobID)
    /// It is over.
    case end(JobID, Ending)
  }
}
