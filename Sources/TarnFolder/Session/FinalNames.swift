import TarnCore
import TarnRuntime

/// The names that live tasks will give to their files, no two of them equal. A task keeps its name while it is suspended or waits.
/// Any thread; shared by all sessions of a process.
package final class FinalNames: Sendable {
  struct Name: Hashable {
    let device: UInt64
    let inode: UInt64
    let leaf: String
  }

  struct Owner: Hashable {
    let session: String
    let task: Int64
  }

  private struct Claims {
    var owners: [Name: Owner] = [:]
    var names: [Owner: Name] = [:]
  }

  private let claims = Locked(Claims())

  package init() {}

  /// Gives a task a name, in place of the one that it has.
  ///
  /// - Returns: false where another task has the name.
  func claim(_ name: Name, for owner: Owner) -> Bool {
    claims.withLock { claims in
      guard claims.owners[name] ?? owner == owner else { return false }
      if let before = claims.names.updateValue(name, forKey: owner) { claims.owners[before] = nil }
      claims.owners[name] = owner
      return true
    }
  }

  /// - Returns: whether the task had a name.
  @discardableResult
  func release(_ owner: Owner) -> Bool {
    claims.withLock { claims in
      guard let name = claims.names.removeValue(forKey: owner) else { return false }
      claims.owners[name] = nil
      return true
    }
  }

  /// Releases the names of all tasks of a session.
  func release(session: String) {
    claims.withLock { claims in
      claims.owners = claims.owners.filter { $0.value.session != session }
      claims.names = claims.names.filter { $0.key.session != session }
    }
  }
}
