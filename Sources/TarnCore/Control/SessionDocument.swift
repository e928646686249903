/// A session, as programs see it.
package struct SessionDocument: Codable, Sendable, Equatable {
  package var schema = "tarn-session/1"
  package var id: String
  package var settings: SessionSettings
  /// Takes no more tasks.
  package var isClosed: Bool
  /// Tasks by their states; without those that are none.
  package var tasks: [String: Int]
  /// The number of its newest event; 0 where nothing has happened.
  package var lastEvent: Int64
  /// Events up to this one were acknowledged.
  package var acknowledged: Int64
  /// Bytes of partial files, and how many there are.
  package var partialBytes: UInt64?
  package var partialFiles: Int?
  /// How the last wake command ended; nil where none was run.
  package var wake: WakeDocument?
  /// In an answer to settings that were handed over: names of those that differ from what is stored.
  package var differs: [String]?

  package init(
    id: String, settings: SessionSettings, isClosed: Bool, tasks: [String: Int], lastEvent: Int64,
    acknowledged: Int64
  ) {
    (self.id, self.settings, self.isClosed, self.tasks) = (id, settings, isClosed, tasks)
    (self.lastEvent, self.acknowledged) = (lastEvent, acknowledged)
  }

  /// Of letters, digits, `-`, `_` and `.`, 64 bytes at most, beginning with a letter or digit.
  package static func isID(_ text: String) -> Bool {
    let others = Array("-_.".utf8)
    let isPlain = text.utf8.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || others.contains($0) }
    guard isPlain, (1...64).contains(text.utf8.count), let first = text.utf8.first else { return false }
    return first.isASCIILetter || first.isASCIIDigit
  }
}

/// What came of a session's wake command.
package struct WakeDocument: Codable, Sendable, Equatable {
  /// Times that it ended, and nothing was acknowledged, in a row.
  package var failures: Int
  /// When it was begun last.
  package var last: Timestamp
  /// Why it could not be run, or how it ended.
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

/// What became of tasks that were added, in their order.
package struct AddedTasks: Codable, Sendable, Equatable {
  package struct Task: Codable, Sendable, Equatable {
    package var number: Int64
    package var state: TaskState
    /// It was there already.
    package var wasThere: Bool

    package init(number: Int64, state: TaskState, wasThere: Bool) {
      (self.number, self.state, self.wasThere) = (number, state, wasThere)
    }
  }

  package var tasks: [Task]

  package init(_ tasks: [Task]) { self.tasks = tasks }
}

/// Some tasks, in the order in which they were added.
package struct TaskPage: Codable, Sendable, Equatable {
  /// As of this event: what comes behind it is not in them.
  package var asOf: Int64
  package var tasks: [TaskDocument]
  /// There may be more, behind the number of the last one.
  package var hasMore: Bool

  package init(asOf: Int64, tasks: [TaskDocument], hasMore: Bool) {
    (self.asOf, self.tasks, self.hasMore) = (asOf, tasks, hasMore)
  }
}

/// A task, and how far it is.
package struct TaskDocument: Codable, Sendable, Equatable {
  package var task: TaskRecord
  /// Bytes that have come; nil for none.
  package var received: UInt64?
  /// Bytes that are expected; nil where nobody told.
  package var expected: UInt64?
  /// Bytes per second.
  package var rate: UInt64?

  package init(_ task: TaskRecord) { self.task = task }
}

/// Some events, in their order.
package struct SessionEventPage: Codable, Sendable, Equatable {
  package var events: [SessionEvent]
  /// There may be more already.
  package var hasMore: Bool

  package init(events: [SessionEvent], hasMore: Bool) { (self.events, self.hasMore) = (events, hasMore) }
}

/// What somebody wants of a session or of a task.
package struct SessionOrder: Codable, Sendable, Equatable {
  package enum Verb: String, Codable, Sendable, CaseIterable {
    /// Of a task or, without one, of all.
    case suspend, resume, cancel, retry
    case prioritize
    /// The task begins before all others of its priority.
    case first
    /// How a task goes on that waits for an answer, or any other one from now on: by `url` and `headers`. Its partial file stays.
    case answer
    /// No more tasks are taken; when those that are there have ended, it is forgotten.
    case close
    /// It is forgotten now: what runs ends, partial files go, finished files stay.
    case forget
    /// Events up to `number` were received.
    case acknowledge
  }

  package var verb: Verb
  /// nil for the whole session.
  package var task: Int64?
  /// Of `prioritize`.
  package var priority: TaskPriority?
  /// Of `acknowledge`.
  package var number: Int64?
  /// Of `answer`: what takes the place of the task's; nil for what it has.
  package var url: String?
  package var headers: [String]?
  /// Of `answer` and `retry`: where the file goes now, as in `TaskRequest`. What was fetched goes along.
  package var to: String?
  package var existing: TaskRequest.Existing?
  /// Of `cancel`: the partial file stays.
  package var keep: Bool?

  package init(_ verb: Verb, task: Int64? = nil) { (self.verb, self.task) = (verb, task) }
}
