/// Names a watched folder; whoever asks chooses it.
package struct WatchID: Hashable, Sendable {
  package let number: UInt64

  package init(_ number: UInt64) {
    self.number = number
  }
}

/// Watches folders with everything below them.
///
/// Its news are hints: something may have changed there. Truth is a look at the folder against the ledger. Whoever
/// makes a watcher gives it the receiver of its news, which is called on one thread, in order, and must not block.
/// After `watch` come, in this order and any number of times: `blind` or `ready`; after `ready` also `dirty` and
/// `tree`, up to the next `blind`. A folder that cannot be watched is tried again by the watcher itself.
///
/// Tarn's own `.tarn`, at any depth, is neither watched nor told.
package protocol Watching: Sendable {
  /// Starts to watch the folder at an absolute path, bytes without NUL. An id that is taken is forgotten first. Any
  /// thread; never blocks.
  func watch(_ id: WatchID, path: [UInt8])

  /// No news of it are told once this has returned, but for one that is being received. Any thread; never blocks.
  func forget(_ id: WatchID)

  /// Ends all watching and joins its threads; no news after it has returned. Not from the receiver. Closing twice is
  /// harmless.
  func close()
}

/// What a watcher tells of one folder.
package struct WatchNews: Equatable, Sendable {
  package enum Event: Equatable, Sendable {
    /// All of the folder is seen from now on: so many directories, itself included. What happened before is not known:
    /// look at everything.
    case ready(directories: Int)
    /// This entry was made, changed or removed.
    case dirty(RelativePath)
    /// Anything at and below this path may have changed; nil is the whole folder.
    case tree(RelativePath?)
    /// The folder is not seen, from now up to the next `ready`.
    case blind(WatchBlindness)
  }

  package let id: WatchID
  package let event: Event

  package init(_ id: WatchID, _ event: Event) {
    self.id = id
    self.event = event
  }
}

/// Why a folder is not seen.
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
  /// For a person, one line; printable.
  package let text: String

  package init(_ code: Code, _ text: String) {
    self.code = code
    self.text = text
  }
}

extension WatchNews.Event {
  /// What to look at for a path as the kernel gives it, relative to the folder: `dirty` for a path that Tarn could have
  /// (`PathRule.linux`), for any other one the tree of its nearest parent that is one.
  ///
  /// - Parameters:
  ///   - bytes: empty stands for the folder itself.
  ///   - isTree: whether what lies below may have changed, too.
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
