import TarnCore
import TarnRuntime

/// The names that live tasks will give to their files, no two of them equal. Any thread; shared by all sessions of a process.
package final class FinalNames: Sendable {
  struct Name: Hashable {
    let device: UInt64
    let inode: UInt64
    let leaf: String
  }

  private let names = Locked<Set<Name>>([])

  package init() {}

  /// - Returns: false where another task has the name.
  func claim(_ name: Name) -> Bool { names.withLock { $0.insert(name).inserted } }

  func giveBack(_ name: Name) { names.withLock { _ = $0.remove(name) } }
}
