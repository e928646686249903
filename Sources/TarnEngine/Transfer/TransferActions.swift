/// The actions that a transfer state requests, and the ends of its jobs.
extension TransferState {
  enum Ending: Hashable {
    /// The file was fetched or copied, and has its name.
    case placed
    /// The file in place is the server's version.
    case unchanged
    /// The file in place is not the expected one.
    case stale
    case failed
    /// There was no space although nothing else of its client was running.
    case noSpace
    case cancelled
    case paused
    case abandoned
    /// Nothing more is begun; results so far are kept.
    case stopped

    /// The end of the jobs that wait for its path. After a file was placed there, they have to look again. After a person's order,
    /// which applies to the path, none of them may begin anew. `nil` when the first of them continues, because nothing was brought.
    /// (A client that cancels all its submissions does not affect others' jobs.)
    var ofThoseWhoWait: Ending? {
      switch self {
      case .placed, .unchanged: .stale
      case .cancelled, .paused: self
      case .stale, .failed, .noSpace, .abandoned, .stopped: nil
      }
    }
  }

  enum Action: Hashable {
    /// Reserve space for it; answered by `reserved` or `refused`.
    case reserve(JobID)
    /// Search for its bytes; answered by `looked`.
    case look(JobID)
    /// Ask a source; answered by `answered` or `confirmed`.
    case ask(JobID)
    /// End its exchange; `answered` still comes.
    case cancelExchange(JobID)
    /// Give it the next connection.
    case prioritize(JobID)
    /// Check its bytes; answered by `answered`.
    case seal(JobID)
    /// Give it its name; answered by `published` or `confirmed`.
    case publish(JobID)
    /// Give these bytes of the space back.
    case release(JobID, UInt64)
    /// Reset it, as if nothing had been requested.
    case putBack(JobID)
    /// Note that no source is left: it has failed, unless another job brings its contents.
    case exhausted(JobID)
    /// Check whether its contents are in the folder; answered by `foundCopy`.
    case findCopy(JobID)
    /// Defer it, because there is no room to remember it: it ends here, and begins later.
    case postpone(JobID)
    /// Defer it likewise, when it has no source left.
    case setAside(JobID)
    /// Tell its client that the path is granted; `yield` gives it back.
    case granted(JobID)
    /// End it.
    case end(JobID, Ending)
  }
}
