import TarnCore
import TestSupport
import Testing

@Suite struct DirtySetTests {
  private func path(_ text: String) -> RelativePath { RelativePath(trusted: Array(text.utf8)) }

  @Test func nothingToldIsNothingToLookAt() {
    var set = DirtySet()
    #expect(set.isEmpty && set.dueAt == nil)
    #expect(set.take(at: .distantFuture) == nil && set.takeAll() == nil)
  }

  @Test func itIsDueWhenItIsQuiet() {
    var set = DirtySet()
    set.add(path: path("a"), at: 1_000)
    #expect(set.dueAt == 1_000 + DirtySet.quiet)
    set.add(path: path("a"), at: 2_000)
    #expect(set.dueAt == 2_000 + DirtySet.quiet)
    #expect(set.take(at: 1_999 + DirtySet.quiet) == nil)
    #expect(
      set.take(at: 2_000 + DirtySet.quiet) == .parts(paths: [path("a")], directories: [], trees: []))
    #expect(set.isEmpty)
  }

  @Test func itIsDueAfterASecondWhateverComes() {
    var set = DirtySet()
    for step in 0...100 { set.add(path: path("a"), at: Instant() + .milliseconds(step * 50)) }
    #expect(set.dueAt == Instant() + DirtySet.longest)
    set.add(path: path("b"), at: .distantFuture)
    #expect(set.dueAt == Instant() + DirtySet.longest)
  }

  @Test func timesAtTheEndOfTheClockDoNotTrap() {
    var set = DirtySet()
    set.add(tree: nil, at: .distantFuture)
    #expect(set.dueAt == .distantFuture && set.take(at: .distantFuture) == .everything)
  }

  @Test func manyEntriesBecomeTheirDirectory() {
    var set = DirtySet()
    for number in 0..<DirtySet.entryLimit { set.add(path: path("d/\(number)"), at: 0) }
    set.add(path: path("d/0"), at: 0)
    guard case .parts(let paths, let directories, _) = set.takeAll() else {
      Issue.record("not parts")
      return
    }
    #expect(paths.count == DirtySet.entryLimit && directories == [])
    for number in 0...DirtySet.entryLimit { set.add(path: path("\(number)"), at: 0) }
    #expect(set.takeAll() == .parts(paths: [], directories: [nil], trees: []))
  }

  @Test func manyDirectoriesBecomeTheFolder() {
    var set = DirtySet()
    for number in 1..<DirtySet.directoryLimit { set.add(path: path("\(number)/x"), at: 0) }
    set.add(tree: path("t"), at: 0)
    #expect(set.takeAll() != .everything)
    for number in 0..<DirtySet.directoryLimit { set.add(path: path("\(number)/x"), at: 0) }
    set.add(tree: path("t"), at: 0)
    #expect(set.takeAll() == .everything)
  }

  @Test func aTreeTakesInWhatLiesBelow() {
    var set = DirtySet()
    for text in ["a", "a/b", "a/b/c", "a-b", "ab/c"] { set.add(path: path(text), at: 0) }
    set.add(tree: path("a/b"), at: 0)
    set.add(tree: path("a"), at: 0)
    set.add(tree: path("a/x"), at: 0)
    set.add(path: path("a/y"), at: 0)
    #expect(
      set.takeAll()
        == .parts(paths: [path("a-b"), path("ab/c")], directories: [], trees: [path("a")]))
  }

  /// Against a list of everything that was told: each is covered, and what comes out is bounded.
  @Test(arguments: 0..<(Sanitizer.takesShare ? 12 : 200)) func everythingToldIsCovered(seed: Int) {
    var random = Sequence(state: UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 | 1)
    var set = DirtySet()
    var paths: [RelativePath] = []
    var trees: [RelativePath] = []
    // Wide and deep folders, some beyond the limits.
    let width = [2, 6, 40, 700][seed % 4]
    for _ in 0..<random.next(3_000) {
      let depth = 1 + random.next(4)
      let told = path((0..<depth).map { _ in "\(random.next(width))" }.joined(separator: "/"))
      if random.next(20) == 0 {
        trees.append(told)
        set.add(tree: told, at: 0)
      } else {
        paths.append(told)
        set.add(path: told, at: 0)
      }
    }
    guard let scope = set.takeAll() else {
      #expect(paths.isEmpty && trees.isEmpty)
      return
    }
    guard case .parts(let some, let whole, let below) = scope else {
      #expect(Set(paths.map(\.parent)).count + Set(trees).count > DirtySet.directoryLimit)
      return
    }
    #expect(Set(some.map(\.parent)).count + whole.count + below.count <= DirtySet.directoryLimit)
    #expect(Set(some).count == some.count && some.sorted() == some && below.sorted() == below)
    #expect(paths.allSatisfy { told in covers(told, some, whole, below) && scope.covers(told) })
    #expect(
      trees.allSatisfy { told in below.contains { $0 == told || $0.isAncestor(of: told) } })
    #expect(!below.contains { tree in below.contains { $0.isAncestor(of: tree) } })
    // Nothing is looked at that nobody told of, but for what the limit on a directory adds.
    let told = Set(paths)
    #expect(some.allSatisfy { told.contains($0) } && below.allSatisfy { Set(trees).contains($0) })
  }

  private func covers(
    _ told: RelativePath, _ paths: [RelativePath], _ directories: [RelativePath?], _ trees: [RelativePath]
  ) -> Bool {
    if paths.contains(told) { return true }
    if directories.contains(told.parent) { return true }
    return trees.contains { $0 == told || $0.isAncestor(of: told) }
  }

  private struct Sequence {
    var state: UInt64
    mutating func next(_ bound: Int) -> Int {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return Int(state % UInt64(bound))
    }
  }
}

@Suite struct WatchNewsTests {
  private func event(_ text: String, isTree: Bool = false) -> WatchNews.Event {
    WatchNews.Event(path: Array(text.utf8), isTree: isTree)
  }
  private func path(_ text: String) -> RelativePath { RelativePath(trusted: Array(text.utf8)) }

  @Test func pathsThatTarnCouldHaveAreToldAsTheyAre() {
    #expect(event("a/b") == .dirty(path("a/b")))
    #expect(event("a/b", isTree: true) == .tree(path("a/b")))
    #expect(
      WatchNews.Event(path: [0x61, 0xFF], isTree: false) == .dirty(RelativePath(trusted: [0x61, 0xFF])))
  }

  @Test func anyOtherPathIsTheTreeOfItsNearestParent() {
    #expect(event("a/b\nc") == .tree(path("a")))
    #expect(event("a/b\nc/d/e") == .tree(path("a")))
    #expect(event("b\nc") == .tree(nil))
    #expect(event("", isTree: true) == .tree(nil))
    #expect(event("a/.tarn/x") == .tree(path("a")))
    let deep = Array(repeating: "d", count: 600).joined(separator: "/")
    #expect(event(deep) == .tree(path(String(deep.prefix(512 * 2 - 1)))))
  }
}
