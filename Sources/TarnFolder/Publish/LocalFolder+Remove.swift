import Glibc
import LinuxShim
package import TarnCore

/// How a recorded file leaves the folder: into the trash, never unlinked.
extension LocalFolder {
  package func remove(_ items: [Removal]) -> [PublishOutcome] {
    let touched = TouchedDirectories(beneath, mover.probe)
    var outcomes: [PublishOutcome] = []
    for (index, item) in items.enumerated() {
      touched.beginItem()
      do throws(FolderFailure) {
        outcomes.append(try remove(item, index, touched))
      } catch {
        outcomes.append(.failed(error.about(item.path)))
      }
    }
    removeEmptied(items, &outcomes, touched)
    if outcomes.contains(where: { $0.isRemoved }) { touched.touch(trash) }
    touched.sync(items: items.count)
    for (index, failure) in touched.failures where outcomes[index].isRemoved {
      outcomes[index] = .failed(failure)
    }
    return outcomes
  }

  package func removeEmptied(_ directory: RelativePath) throws(FolderFailure) {
    let touched = TouchedDirectories(beneath, mover.probe)
    var next: RelativePath? = directory
    while let path = next {
      do throws(FolderFailure) {
        guard try touched.removeIfEmpty(path, for: 0) else { break }
      } catch {
        throw error.about(path)
      }
      next = path.parent
    }
    touched.sync(items: 1)
    if let failure = touched.failures[0] { throw failure }
  }

  private func remove(
    _ item: Removal, _ index: Int, _ touched: TouchedDirectories
  ) throws(FolderFailure) -> PublishOutcome {
    let place = try Beneath.Place(item.path)
    try OwnDirectory.check(item.trashName)
    guard let parent = try presentParent(place, touched),
      let there = try FileStat.at(parent, place.leaf), there.kind == .regular,
      there.identity.isSame(as: item.expected)
    else { return .stale("what stands at \(item.path.printable) is not what was planned for") }
    let moved = mover.moveIn(parent, place.leaf, to: trash.descriptor, item.trashName, .moveToTrash)
    if moved == -ENOENT { return .stale("\(item.path.printable) is gone") }
    try kernel("move to the trash", item.path.bytes, moved)
    touched.touch(place.parent, for: index)
    guard let found = try trash.stat(item.trashName) else {
      throw FolderFailure(.other, "\(item.path.printable) is gone from the trash")
    }
    if found.kind == .regular, found.identity.isSameContents(as: item.expected) {
      return .removed(found.identity, leftover: nil)
    }
    // Replaced in the moment before: back it goes. Where its place is taken by now it stays in the trash, and
    // its identity says that it is another object than expected.
    touched.touch(trash)
    let back = mover.moveOut(trash.descriptor, item.trashName, to: parent, place.leaf, .moveBack)
    return back == 0
      ? .stale("\(item.path.printable) was replaced") : .removed(found.identity, leftover: nil)
  }

  /// The directories that held nothing else, innermost first; never the folder itself. The outcome of an item says
  /// why one of its own stays.
  private func removeEmptied(
    _ items: [Removal], _ outcomes: inout [PublishOutcome], _ touched: TouchedDirectories
  ) {
    var left: [RelativePath: (index: Int, failure: FolderFailure)] = [:]
    for (index, item) in items.enumerated() where outcomes[index].isRemoved {
      touched.beginItem()
      var parent = item.path.parent
      while let directory = parent {
        do throws(FolderFailure) {
          guard try touched.removeIfEmpty(directory, for: index) else { break }
          left[directory] = nil
        } catch {
          left[directory] = (index, error.about(directory))
          break
        }
        parent = directory.parent
      }
    }
    for (index, failure) in left.values {
      if case .removed(let identity, _) = outcomes[index] {
        outcomes[index] = .removed(identity, leftover: failure)
      }
    }
  }
}

extension PublishOutcome {
  fileprivate var isRemoved: Bool {
    if case .removed = self { true } else { false }
  }
}
