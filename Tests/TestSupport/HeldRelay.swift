import Glibc
import TarnRuntime

/// A socket that passes connections on to another one. It may hold back all answers, as a program that stands still takes none.
package final class HeldRelay: Sendable {
  private struct State {
    var isHeld = false
    /// The connections that have ended.
    var ended = 0
    /// True once a stream of events has begun.
    var hasStream = false
  }

  package let path: String
  private let listener: Int32
  private let state: LockedCondition<State>

  /// - Parameters:
  ///   - target: the path of the socket to pass on to.
  ///   - path: the path of the new socket.
  /// - Returns: `nil` when the socket cannot be made.
  package init?(to target: String, at path: String) {
    let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    let state = LockedCondition(State())
    (self.path, self.listener, self.state) = (path, listener, state)
    guard withAddress(path, { bind(listener, $0, $1) }) == 0, listen(listener, 16) == 0 else { return nil }
    let thread = try? WorkerThread.start(name: "relay") {
      while true {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { return }
        Self.pass(client, to: target, state)
      }
    }
    if thread == nil { return nil }
  }

  deinit {
    shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
    unlink(path)
  }

  package func hold(_ isHeld: Bool) { state.change { $0.isHeld = isHeld } }

  package var ended: Int { state.withLock { $0.ended } }
  package var hasStream: Bool { state.withLock { $0.hasStream } }

  private static func pass(_ client: Int32, to target: String, _ state: LockedCondition<State>) {
    let server = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    _ = withAddress(target) { connect(server, $0, $1) }
    _ = try? WorkerThread.start(name: "relay-ask") { copy(client, to: server) { _ in } }
    _ = try? WorkerThread.start(name: "relay-answer") {
      copy(server, to: client) { bytes in
        let isStream = String(decoding: bytes, as: UTF8.self).contains("text/event-stream")
        state.change { $0.hasStream = $0.hasStream || isStream }
        state.wait { $0.isHeld ? nil : () }
      }
      state.change { $0.ended += 1 }
    }
  }

  /// Copies until one end is closed. The descriptors stay open until the process ends, so that neither thread uses a new one.
  private static func copy(_ from: Int32, to other: Int32, _ each: ([UInt8]) -> Void) {
    var piece = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = read(from, &piece, piece.count)
      guard count > 0 else { break }
      var rest = Array(piece[..<count])
      each(rest)
      while !rest.isEmpty {
        let sent = send(other, rest, rest.count, Int32(MSG_NOSIGNAL))
        guard sent > 0 else { return end(from, other) }
        rest.removeFirst(sent)
      }
    }
    end(from, other)
  }

  private static func end(_ from: Int32, _ other: Int32) {
    shutdown(from, Int32(SHUT_RDWR))
    shutdown(other, Int32(SHUT_RDWR))
  }
}
