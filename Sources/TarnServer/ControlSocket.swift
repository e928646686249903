internal import TarnRuntime

/// A socket to listen at.
package struct ControlSocket: Sendable, Equatable {
  package enum Rights: Sendable, Equatable {
    /// Every question and command, for those whom `PeerPolicy` admits.
    case full
    /// The redacted status and the metrics of mirrors, for whoever can connect.
    case redactedStatus
    /// The metrics, for who has the token of the `MetricsListener`.
    case metrics
  }
  package enum Group: Sendable, Equatable {
    case name(String)
    case number(UInt32)
  }

  /// Absolute, at most 107 bytes.
  package var path: String
  /// Permission bits of the file.
  package var mode: UInt32
  /// nil leaves the group that a new file gets.
  package var group: Group?
  package var rights: Rights

  package init(path: String, mode: UInt32, group: Group? = nil, rights: Rights = .full) {
    self.path = path
    self.mode = mode
    self.group = group
    self.rights = rights
  }
}

/// What bounds the server.
package struct ControlLimits: Sendable {
  /// Connections at once to each socket, streams among them. Where all places are taken, one that asks nothing gives its own away: it
  /// is closed, the one first that is silent longest. Where all of them wait for answers a few more are told so (503), others
  /// closed at once.
  package var connections = max(64, min(320, OpenFiles.limit / 3))
  /// The same for a socket with the redacted status, so that it never takes the places of those who steer.
  package var everyone = 16
  /// They cost a task and a descriptor each, and no thread.
  package var streams = max(16, min(256, OpenFiles.limit / 4))
  /// Bytes of a request's head, and of its body.
  package var head = 32 << 10
  package var body = 64 << 10
  /// For a whole request to come, from the connection's begin or the request's first line.
  package var requesting = Duration.seconds(10)
  /// For the next request on the same connection.
  package var idling = Duration.seconds(60)
  /// For the agent to answer.
  package var answering = Duration.seconds(30)
  /// For a reader to take what was written to it.
  package var writing = Duration.seconds(30)
  /// Without reading anything of what was written a connection waits for no answer: its place is another one's to have.
  package var taking = Duration.seconds(2)
  /// Between signs of life of a stream.
  package var heartbeat = Duration.seconds(15)
  /// For answers at work to end at `stop()`.
  package var stopping = Duration.milliseconds(1500)
  /// Calls of the agent at once, and those that wait for a thread beside the streams' own.
  package var calls = 4
  package var waiting = 32
  /// Events read for a stream before the last of them is written.
  package var page = 100

  package init() {}
}

/// The server could not be started.
package struct ControlServerFailure: Error, Equatable {
  package enum Kind: Sendable, Equatable {
    /// A path that no socket can have.
    case badPath
    /// Another agent answers there; its process, where the kernel tells it.
    case busy(process: Int32?)
    /// Something that is no socket stands there.
    case inTheWay
    case noSuchGroup
    /// The address of the `MetricsListener` cannot be listened at, with this errno.
    case address(Int32)
    /// A system call failed, with this errno.
    case system(Int32)
  }
  package let kind: Kind
  /// What, where and what to do; safe to print.
  package let message: String
}
