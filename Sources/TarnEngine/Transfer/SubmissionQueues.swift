import DequeModule

/// The submissions that wait for a place to begin, in the order in which they came.
struct SubmissionQueues {
  private var urgent = Deque<Transfers>()
  private var others = Deque<Transfers>()

  subscript(isUrgent isUrgent: Bool) -> Deque<Transfers> {
    get { isUrgent ? urgent : others }
    _modify { if isUrgent { yield &urgent } else { yield &others } }
  }

  var isEmpty: Bool { urgent.isEmpty && others.isEmpty }
  var all: [Transfers] { Array(urgent) + others }
}
