/// A session in the form that programs read.
package struct SessionDocument: Codable, Sendable, Equatable {
  package var schema = "tarn-session/1"
  package var id: String
  package var settings: SessionSettings
  /// True when the session takes no more tasks.
  package var isClosed: Bool
  /// The number of tasks in each state; states without tasks are left out.
  package var tasks: [String: Int]
  /// The number of the newest event; 0 before the first.
  package var lastEvent: Int64
  /// The number of the last acknowledged event.
  package var acknowledged: Int64
  /// The bytes of partial files, and the number of these files.
  package var partialBytes: UInt64?
  package var partialFiles: Int?
  /// How the last wake command ended; `nil` where none was run.
  package var wake: WakeDocument?
  /// Why the session cannot be opened; `nil` for all others. Then only the ID means anything.
  package var failure: String?
  /// The names of the settings that differ from the stored ones, in the answer to settings that were sent.
  package var differs: [String]?

  package init(
    id: String, settings: SessionSettings, isClosed: Bool, tasks: [String: Int], lastEvent: Int64,
    acknowledged: Int64
  ) {
    (self.id, self.settings, self.isClosed, self.tasks) = (id, settings, isClosed, tasks)
    (self.lastEvent, self.acknowledged) = (lastEvent, acknowledged)
  }

  /// Returns whether a text is a session ID: letters, digits, `-`, `_` and `.`, at most 64 bytes, beginning with a letter or digit.
  package static func isID(_ text: String) -> Bool {
    let others = Array("-_.".utf8)
    let isPlain = text.utf8.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || others.contains($0) }
    guard isPlain, (1...64).contains(text.utf8.count), let first = text.utf8.first else { return false }
    return first.isASCIILetter || first.isASCIIDigit
  }
}

/// The outcomes of a session's wake command.
package struct WakeDocument: Codable, Sendable, Equatable {
  /// Runs in a row after which nothing was acknowledged.
  package var failures: Int
  /// When the command was last started.
  package var last: Timestamp
  /// Why the command could not be run, or how it ended.
  package var message: String

  package init(failures: Int, last: Timestamp, message: String) {
    (self.failures, self.last, self.message) = (failures, last, message)
  }
}

package struct SessionList: Codable, Sendable, Equatable {
  package var schema = "tarn-sessions/1"
  package var sessions: [SessionDocument]

  package init(_ sessions: [SessionDocument]) { self.sessions = sessions }
}

/// The outcome of adding tasks, in the order of the tasks.
package struct AddedTasks: Codable, Sendable, Equatable {
  package struct Task: Codable, Sendable, Equatable {
    package var number: Int64
    package var state: TaskState
    /// True when the task existed already.
    package var wasThere: Bool

    package init(number: Int64, state: TaskState, wasThere: Bool) {
      (self.number, self.state, self.wasThere) = (number, state, wasThere)
    }
  }

  package var tasks: [Task]

  package init(_ tasks: [Task]) { self.tasks = tasks }
}

/// A page of tasks, in the order in which they were added.
package struct TaskPage: Codable, Sendable, Equatable {
  /// The number of the event up to which the tasks are described; later events are not in them.
  package var asOf: Int64
  package var tasks: [TaskDocument]
  /// True when there may be more tasks after the last one.
  package var hasMore: Bool

  package init(asOf: Int64, tasks: [TaskDocument], hasMore: Bool) {
    (self.asOf, self.tasks, self.hasMore) = (asOf, tasks, hasMore)
  }
}

/// A task and its progress.
package struct TaskDocument: Codable, Sendable, Equatable {
  package var task: TaskRecord
  /// Bytes received; `nil` for none.
  package var received: UInt64?
  /// Bytes expected; `nil` where the size is unknown.
  package var expected: UInt64?
  /// Bytes per second.
  package var rate: UInt64?

  package init(_ task: TaskRecord) {
    self.task = task
    // One that has begun again bears those of the file before.
    if task.state != .finished { (self.task.bytes, self.task.digest) = (nil, nil) }
    // Why an earlier attempt failed says nothing of one that is at work, or about to be.
    if [.queued, .running].contains(task.state) { (self.task.code, self.task.message) = (nil, nil) }
  }
}

/// A page of session events, in their order.
package struct SessionEventPage: Codable, Sendable, Equatable {
  package var events: [SessionEvent]
  /// True when there may be more events already.
  package var hasMore: Bool

  package init(events: [SessionEvent], hasMore: Bool) { (self.events, self.hasMore) = (events, hasMore) }
}

/// An order to a session or to one of its tasks.
package struct SessionOrder: Codable, Sendable, Equatable {
  package enum Verb: String, Codable, Sendable, CaseIterable {
    /// Orders to one task, or to all when no task is given.
    case suspend, resume, cancel, retry
    case prioritize
    /// Let the task begin before all others of its priority.
    case first
    /// Tell a task how to go on, by `url` and `headers`: one that waits for an answer, or any other from now on. Its partial file
    /// stays.
    case answer
    /// Take no more tasks. When the present ones have ended, the session is forgotten.
    case close
    /// Forget the session now: what runs ends, partial files go, finished files stay.
    case forget
    /// Confirm that events up to `number` were received.
    case acknowledge
  }

  package var verb: Verb
  /// The number of the task; `nil` for the whole session.
  package var task: Int64?
  /// The new priority, for `prioritize`.
  package var priority: TaskPriority?
  /// The number of the last event received, for `acknowledge`.
  package var number: Int64?
  /// The URL and headers that replace the task's, for `answer`. `nil` keeps the present ones.
  package var url: String?
  package var headers: [String]?
  /// The new destination of the file, as in `TaskRequest`, for `answer` and `retry`. A partial file is moved along.
  package var to: String?
  package var existing: TaskRequest.Existing?
  /// True when the partial file is to stay, for `cancel`.
  package var keep: Bool?

  package init(_ verb: Verb, task: Int64? = nil) { (self.verb, self.task) = (verb, task) }
}
