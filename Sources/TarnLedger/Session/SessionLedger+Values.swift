package import TarnCore
import TarnRuntime

extension SessionLedger {
  /// The sources of facts about tasks at work: the file's path, and the response and times that were not asked for before. Of any
  /// task: the bytes of its partial file.
  package struct Sources: Sendable {
    package var path: @Sendable (Int64) -> String?
    package var response: @Sendable (Int64) -> Response?
    package var kept: @Sendable (TaskRecord) -> UInt64?
    package var times: @Sendable (Int64) -> TaskTimes?
    /// Called when the response of a task, with its serial number, is durable, before the next write.
    package var noted: @Sendable (Int64, Int) -> Void

    package init(
      path: @escaping @Sendable (Int64) -> String?, response: @escaping @Sendable (Int64) -> Response?,
      kept: @escaping @Sendable (TaskRecord) -> UInt64? = { _ in nil },
      times: @escaping @Sendable (Int64) -> TaskTimes? = { _ in nil },
      noted: @escaping @Sendable (Int64, Int) -> Void = { _, _ in }
    ) {
      (self.path, self.response, self.kept, self.times, self.noted) = (path, response, kept, times, noted)
    }
  }

  /// The response of a server, and what followed from it.
  package struct Response: Sendable {
    package var head: TaskResponse
    /// The destination that a rule chose, and the inode of its directory; `nil` when no rule changed it.
    package var to: (place: String, directory: UInt64)?
    /// The serial number of the response within its task.
    package var serial = 0

    package init(_ head: TaskResponse) { self.head = head }
  }

  /// The result of adding a request.
  package struct Added: Sendable, Equatable {
    package var task: TaskRecord
    /// True when a task with this URL and destination, or with this key, existed already.
    package var wasThere: Bool
    /// True when it is the same request once more, by its key.
    package var isRepeated = false
  }

  /// An intent that is left after a crash.
  package struct Unfinished: Sendable, Equatable {
    package var task: TaskRecord
    package var inode: UInt64
    package var size: UInt64
    package var digest: String
  }

  /// A named value of the session, or of one of its groups or keys.
  package enum Fact {
    case settings
    /// A random word in the names of the session's partial files.
    case token
    /// The number of the last event that was acknowledged.
    case acknowledged
    /// Set once the session takes no more tasks.
    case closed
    /// The session's age (`SessionAge`), and its age at the last contact.
    case age
    case contact
    /// Since when partial files have been left alone, as JSON of their keeper.
    case leftAlone
    /// The `all-delivered` events that `takeDelivered` has not returned yet, as JSON: the newest 100.
    case untold
    /// The number of the last event that told the end of a group; of the whole session for `nil`.
    case delivered(group: String?)
    /// The number of the known task that a request with this key was for.
    case laterKey(String)

    /// The name in the database.
    var name: String {
      switch self {
      case .settings: "settings"
      case .token: "token"
      case .acknowledged: "acknowledged"
      case .closed: "closed"
      case .age: "age"
      case .contact: "contact"
      case .leftAlone: "leftAlone"
      case .untold: "untold"
      case .delivered(let group): group.map { "delivered:\($0)" } ?? "delivered"
      case .laterKey(let key): "key:\(key)"
      }
    }
  }

  /// Returns the stored settings, or the standard ones.
  package func settings() throws(LedgerFailure) -> SessionSettings {
    try fact(.settings).flatMap { JSONText.value(SessionSettings.self, from: $0) } ?? SessionSettings()
  }
}
