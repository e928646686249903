/// The ID of a watched folder, chosen by the caller.
package struct WatchID: Hashable, Sendable {
  package let number: UInt64

  package init(_ number: UInt64) {
    self.number = number
  }
}

/// Watches folders with everything below them.
///
/// Its events are hints that something may have changed; only a look at the folder against the ledger is certain. Whoever makes a
/// watcher gives it the receiver of the events, which is called on one thread, in order, and must not block. After `watch` come
/// `blind` or `ready` any number of times, and after `ready` also `dirty` and `tree`, up to the next `blind`. The watcher itself
/// tries again to watch a folder that it could not.
///
/// Tarn's own `.tarn` is neither watched nor reported, at any depth.
package protocol Watching: Sendable {
  /// Starts to watch the folder at an absolute path, bytes without NUL. An ID in use is forgotten first. Any thread; never blocks.
  func watch(_ id: WatchID, path: [UInt8])

  /// Ends the watching of a folder. After the return no event of it comes, except one that is being received. Any thread; never
  /// blocks.
  func forget(_ id: WatchID)

  /// Ends all watching and joins the threads; no event comes after the return. Must not be called by the receiver. Closing twice is
  /// harmless.
  func close()
}

/// An event of one watched folder.
package struct WatchNews: Equatable, Sendable {
  package enum Event: Equatable, Sendable {
    /// The whole folder is watched from now on. `directories` is their number, including the folder itself. Earlier changes are not
    /// known: look at everything.
    case ready(directories: Int)
    /// This entry was created, changed or removed.
    case dirty(RelativePath)
    /// Anything at or below this path may have changed; `nil` is the whole folder.
    case tree(RelativePath?)
    /// The folder is not watched from now until the next `ready`.
    case blind(WatchBlindness)
  }

  package let id: WatchID
  package let event: Event

  package init(_ id: WatchID, _ event: Event) {
    self.id = id
    self.event = event
  }
}

/// Why a folder is not watched.
package struct WatchBlindness: Equatable, Sendable {
  /// The raw value is the stable code that users see.
  package enum Code: String, Sendable, CaseIterable {
    case overflow
    case watchLimit = "watch-limit"
    case instanceLimit = "instance-limit"
    case unmounted
    case replaced
    case gone
    case unreadable
    case unsupported
    case watcherDied = "watcher-died"
    case watcherMissing = "watcher-missing"
    case error
  }

  package let code: Code
  /// The reason in one printable line, for people.
  package let text: String

  package init(_ code: Code, _ text: String) {
    self.code = code
    self.text = text
  }
}

extension WatchNews.Event {
  /// Makes the event for a path as the kernel gives it, relative to the folder. It is `dirty` for a path that Tarn could have
  /// (`PathRule.linux`), otherwise `tree` of the nearest parent that is such a path.
  ///
  /// - Parameters:
  ///   - bytes: the path; empty for the folder itself.
  ///   - isTree: true when what lies below may have changed, too.
  package init(path bytes: some Sequence<UInt8>, isTree: Bool) {
    var bytes = Array(bytes)
    if let path = try? RelativePath(bytes) {
      self = isTree ? .tree(path) : .dirty(path)
      return
    }
    while let slash = bytes.lastIndex(of: UInt8(ascii: "/")) {
      bytes.removeSubrange(slash...)
      if let path = try? RelativePath(bytes) {
        self = .tree(path)
        return
      }
    }
    self = .tree(nil)
  }
}
