import Glibc
import LinuxShim
package import TarnCore

/// How a file gets its final name.
extension LocalFolder {
  package func install(_ items: [Installation]) -> [PublishOutcome] {
    let touched = TouchedDirectories(beneath, mover.probe)
    var outcomes: [PublishOutcome] = []
    for (index, item) in items.enumerated() {
      touched.beginItem()
      let outcome = install(item, index, touched)
      if case .installed = outcome {} else { touched.removeMade() }
      outcomes.append(outcome)
    }
    let hasLeft = zip(items, outcomes).contains { !$0.partial.name.isEmpty && $1.isInstalled }
    if hasLeft { touched.touch(partial) }
    if outcomes.contains(where: { $0.hasDisplaced }) { touched.touch(trash) }
    touched.sync(items: items.count)
    for (index, failure) in touched.failures where outcomes[index].isInstalled {
      outcomes[index] = .failed(failure)
    }
    return outcomes
  }

  private func install(_ item: Installation, _ index: Int, _ touched: TouchedDirectories) -> PublishOutcome {
    do throws(FolderFailure) {
      let place = try Beneath.Place(item.path)
      if item.expectation != .absent || !item.trashName.isEmpty { try OwnDirectory.check(item.trashName) }
      let (file, sealed) = try checked(item.partial)
      switch item.expectation {
      case .absent:
        let parent = try touched.make(place.parent, for: index)
        let result =
          file.isUnnamed
          ? mover.name(try file.opened(), in: parent, place.leaf, .rename)
          : mover.moveOut(partial.descriptor, file.name, to: parent, place.leaf, .rename)
        if result == -EEXIST { return .stale("something stands at \(item.path.printable)") }
        try kernel("move into place", item.path.bytes, result)
        touched.touch(place.parent, for: index)
        return .installed(try placed(file, sealed), displaced: nil)
      case .present(let expected):
        guard let parent = try presentParent(place, touched),
          let there = try FileStat.at(parent, place.leaf), there.identity.isSame(as: expected)
        else { return .stale("what stands at \(item.path.printable) is not what was planned for") }
        return try exchange(item, place, parent, index, touched)
      }
    } catch {
      return .failed(error.about(item.path))
    }
  }

  /// nil when there is no such directory.
  func presentParent(
    _ place: Beneath.Place, _ touched: TouchedDirectories
  ) throws(FolderFailure) -> Descriptor? {
    do throws(FolderFailure) {
      return try touched.open(place.parent)
    } catch {
      switch error.code {
      case .missing, .notDirectory, .link: return nil
      default: throw error
      }
    }
  }

  /// That the file is sealed, unchanged since, and the one that its name in `partial/` stands for.
  private func checked(_ file: any PartialFile) throws(FolderFailure) -> (StagedFile, Sealed) {
    guard let staged = file as? StagedFile, let sealed = staged.sealed else {
      throw FolderFailure(.other, "partial/\(file.name) is not sealed")
    }
    // A name that stands for the inode that was sealed stands for the file that is open.
    _ = try staged.opened()
    // To one that has no name nobody else gets.
    if staged.isUnnamed { return (staged, sealed) }
    guard let named = try partial.stat(staged.name), named.identity.isSameContents(as: sealed.identity)
    else { throw FolderFailure(.other, "partial/\(file.name) was changed by somebody else") }
    return (staged, sealed)
  }

  /// The identity under the final name. Size and time are those that were checked: what somebody wrote into the
  /// file after the rename shall look like an edit.
  private func placed(_ file: StagedFile, _ sealed: Sealed) throws(FolderFailure) -> FileIdentity {
    var identity = sealed.identity
    let now = try FileStat.of(try file.opened(), file.label)
    // Somebody changed its mode already: then it is to look touched.
    if now.permissions == Self.mode { identity.changed = now.identity.changed }
    return identity
  }

  // MARK: Replacing

  /// Swaps the new file with what is there, from the trash: what is displaced is in the trash at once, whatever it
  /// is, so that neither a race nor a kill between two calls leaves it anywhere else.
  private func exchange(
    _ item: Installation, _ place: Beneath.Place, _ parent: Descriptor, _ index: Int,
    _ touched: TouchedDirectories
  ) throws(FolderFailure) -> PublishOutcome {
    let (file, sealed) = try checked(item.partial)
    let staged = mover.moveIn(
      partial.descriptor, cString(file.name), to: trash.descriptor, item.trashName, .stage)
    try kernel("stage in the trash", item.path.bytes, staged)
    let result = mover.exchange(trash.descriptor, item.trashName, parent, place.leaf, .exchange)
    guard result >= 0 else {
      _ = mover.moveIn(
        trash.descriptor, cString(item.trashName), to: partial.descriptor, file.name, .moveBack)
      return try notExchanged(item, -result)
    }
    touched.touch(place.parent, for: index)
    guard let displaced = try trash.stat(item.trashName) else {
      throw FolderFailure(.other, "what stood at \(item.path.printable) is gone from trash/\(item.trashName)")
    }
    return .installed(try placed(file, sealed), displaced: displaced.identity)
  }

  private func notExchanged(_ item: Installation, _ errno: Int32) throws(FolderFailure) -> PublishOutcome {
    if errno == ENOENT { return .stale("what stood at \(item.path.printable) is gone") }
    if Renamer.isUnsupported(-errno) {
      throw FolderFailure(
        .other,
        "cannot replace \(item.path.printable): the file system cannot exchange two names, and nothing else is safe; move away what is there, and it is fetched",
        errno: errno)
    }
    throw FolderFailure(cannot: "move into place", item.path.bytes, errno: errno, path: item.path)
  }
}

extension PublishOutcome {
  fileprivate var isInstalled: Bool {
    if case .installed = self { true } else { false }
  }

  fileprivate var hasDisplaced: Bool {
    if case .installed(_, .some) = self { true } else { false }
  }
}
