import TarnCore
import TarnRuntime

/// A pool of reading connections. Each is lent to one borrower at a time, so that a long cursor blocks nobody.
final class ReaderPool: Sendable {
  private struct Idle {
    var connections: [Connection] = []
    var isClosed = false
  }

  /// The idle connections that are kept: more than are ever used at once, apart from cursors.
  private static let kept = 4

  private let idle: Locked<Idle>
  private let opener: LedgerOpener
  private let kind: LedgerOpener.ReaderKind

  init(opener: LedgerOpener, kind: LedgerOpener.ReaderKind) {
    self.opener = opener
    self.kind = kind
    idle = Locked(Idle())
  }

  /// Lends a connection outside of any transaction. It belongs to the caller alone until `giveBack`.
  func borrow() throws(LedgerFailure) -> Connection {
    let known = try idle.withLock { (idle) throws(LedgerFailure) -> Connection? in
      guard !idle.isClosed else {
        throw ErrorTable.failure(.other, "it is closed", file: opener.file.path)
      }
      return idle.connections.popLast()
    }
    if let known { return known }
    return try opener.openReader(kind)
  }

  /// Takes a connection back. One that could not end its transaction is closed.
  func giveBack(_ connection: Connection) {
    idle.withLock { idle in
      guard !idle.isClosed, !connection.isInTransaction, idle.connections.count < Self.kept else { return }
      idle.connections.append(connection)
    }
  }

  /// Closes the idle connections. Those that are lent close when they are given back.
  func close() {
    idle.withLock { idle in
      idle.isClosed = true
      idle.connections.removeAll()
    }
  }
}
