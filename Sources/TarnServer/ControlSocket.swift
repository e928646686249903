internal import TarnRuntime

/// A socket to listen on.
package struct ControlSocket: Sendable, Equatable {
  package enum Rights: Sendable, Equatable {
    /// All questions and commands, for users whom `PeerPolicy` admits.
    case full
    /// The redacted status and the metrics of mirrors, for everybody who can connect.
    case redactedStatus
    /// The metrics, for clients with the token of the `MetricsListener`.
    case metrics
  }
  package enum Group: Sendable, Equatable {
    case name(String)
    case number(UInt32)
  }

  /// An absolute path of at most 107 bytes.
  package var path: String
  /// The permission bits of the file.
  package var mode: UInt32
  /// The group of the file; `nil` keeps the group that a new file gets.
  package var group: Group?
  package var rights: Rights

  package init(path: String, mode: UInt32, group: Group? = nil, rights: Rights = .full) {
    self.path = path
    self.mode = mode
    self.group = group
    self.rights = rights
  }
}

/// The limits of the server.
package struct ControlLimits: Sendable {
  /// The connections of each socket at a time, streams included. When all places are taken, the idle connection that was silent
  /// longest is closed for a newcomer. When all of them wait for answers, a few newcomers are told so (503), and others are closed
  /// at once.
  package var connections = max(64, min(320, OpenFiles.limit / 3))
  /// The same for a socket with the redacted status, so that its clients never take the places of those with full rights.
  package var everyone = 16
  /// The streams at a time. Each costs a task and a descriptor, and no thread.
  package var streams = max(16, min(256, OpenFiles.limit / 4))
  /// The most bytes of a request's head, and of its body.
  package var head = 32 << 10
  package var body = 64 << 10
  /// The time for a whole request to come, from the connection's begin or the request's first line.
  package var requesting = Duration.seconds(10)
  /// The time for the next request on the same connection.
  package var idling = Duration.seconds(60)
  /// The time for the agent to answer.
  package var answering = Duration.seconds(30)
  /// The time for a reader to take what was written to it.
  package var writing = Duration.seconds(30)
  /// The time without reading after which a connection may lose its place, although an answer was written to it.
  package var taking = Duration.seconds(2)
  /// The time between the heartbeats of a stream.
  package var heartbeat = Duration.seconds(15)
  /// The time for running answers to end at `stop()`.
  package var stopping = Duration.milliseconds(1500)
  /// The agent's calls at a time, and those that may wait for a thread. Calls of streams are not counted.
  package var calls = 4
  package var waiting = 32
  /// The events that are read at a time for a stream, before the last of them is written.
  package var page = 100

  package init() {}
}

/// The error when the server cannot be started.
package struct ControlServerFailure: Error, Equatable {
  package enum Kind: Sendable, Equatable {
    /// No socket can have this path.
    case badPath
    /// Another agent answers there. The process is `nil` when the kernel does not tell it.
    case busy(process: Int32?)
    /// Something that is no socket has the path.
    case inTheWay
    case noSuchGroup
    /// The address of the `MetricsListener` cannot be bound, with this errno.
    case address(Int32)
    /// A system call failed, with this errno.
    case system(Int32)
  }
  package let kind: Kind
  /// The fault, its place and the remedy; safe to print.
  package let message: String
}
