import TarnCore
import TarnRuntime

/// Reading connections. Each is lent to one borrower at a time, so that a long cursor is in nobody's way.
final class ReaderPool: Sendable {
  private struct Idle {
    var connections: [Connection] = []
    var isClosed = false
  }

  /// More than are ever used at once, apart from cursors.
  private static let kept = 4

  private let idle: Locked<Idle>
  private let opener: LedgerOpener
  private let kind: LedgerOpener.ReaderKind

  init(opener: LedgerOpener, kind: LedgerOpener.ReaderKind) {
    self.opener = opener
    self.kind = kind
    idle = Locked(Idle())
  }

  /// A connection outside any transaction, the caller's alone until `give`.
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

  /// One that could not end its transaction is closed.
  func giveBack(_ connection: Connection) {
    idle.withLock { idle in
      guard !idle.isClosed, !connection.isInTransaction, idle.connections.count < Self.kept else { return }
      idle.connections.append(connection)
    }
  }

  /// Closes the idle ones; those that are lent close when they are given back.
  func close() {
    idle.withLock { idle in
      idle.isClosed = true
      idle.connections.removeAll()
    }
  }
}
