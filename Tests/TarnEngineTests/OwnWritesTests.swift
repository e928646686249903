import TarnCore
import TarnRuntime
import Testing

@testable import TarnEngine

/// What Tarn wrote itself is known for its own, and nothing else is.
@Suite struct OwnWritesTests {
  private let own = OwnWrites()

  private func path(_ text: String) -> RelativePath { RelativePath(trusted: Array(text.utf8)) }

  private func identity(_ inode: UInt64, changed: Int64 = 1) -> FileIdentity {
    FileIdentity(
      device: 1, inode: inode, size: 3, modified: Timestamp(nanoseconds: 5),
      changed: Timestamp(nanoseconds: changed))
  }

  /// A folder in which these stand.
  private func look(
    _ files: [String: (FileIdentity, UInt32)], directories: [String: UInt32] = [:]
  ) -> (RelativePath) -> (Present, permissions: UInt32)? {
    { path in
      let name = path.printable
      if let (identity, mode) = files[name] {
        return (Present(path: path, kind: .regular, identity: identity), mode)
      }
      return directories[name].map { (Present(path: path, kind: .directory, identity: identity(9)), $0) }
    }
  }

  @Test func aFileIsOwnAsItWasLeft() {
    own.note(path("a"), identity(1))
    #expect(own.isOwn(path("a"), look: look(["a": (identity(1), 0o644)])))
    #expect(!own.isOwn(path("a"), look: look(["a": (identity(2), 0o644)])))
    #expect(!own.isOwn(path("a"), look: look(["a": (identity(1, changed: 2), 0o644)])))
    #expect(!own.isOwn(path("a"), look: look([:])))
    #expect(!own.isOwn(path("b"), look: look(["b": (identity(1), 0o644)])))
    own.note(path("a"), nil)
    #expect(own.isOwn(path("a"), look: look([:])))
    #expect(!own.isOwn(path("a"), look: look(["a": (identity(1), 0o644)])))
  }

  /// It took the place of a directory, whose files are gone as they should be.
  @Test func aFileThatWasADirectoryIsNotGoneByItself() {
    own.note(path("main/x"), nil)
    own.note(path("main"), identity(1))
    #expect(own.isOwn(path("main"), look: look(["main": (identity(1), 0o644)])))
    #expect(!own.isOwn(path("main"), look: look([:])))
    own.note(path("main"), nil)
    #expect(own.isOwn(path("main"), look: look([:])))
  }

  /// Its time of change is not known before it has its name; its mode is.
  @Test func aFileThatIsExpectedIsOwn() {
    own.expect(path("a"), identity(1))
    #expect(own.isOwn(path("a"), look: look(["a": (identity(1, changed: 7), 0o644)])))
    #expect(!own.isOwn(path("a"), look: look(["a": (identity(1, changed: 7), 0o600)])))
    #expect(!own.isOwn(path("a"), look: look([:])))
  }

  @Test func itsDirectoriesAreOwnWhileAllStandsInThem() {
    own.note(path("d/e/f"), identity(1))
    own.note(path("d/e/g"), identity(2))
    let files = ["d/e/f": (identity(1), UInt32(0o644)), "d/e/g": (identity(2), 0o644)]
    let directories: [String: UInt32] = ["d": 0o755, "d/e": 0o755]
    #expect(own.isOwn(path("d/e"), look: look(files, directories: directories)))
    #expect(own.isOwn(path("d"), look: look(files, directories: directories)))
    // Gone before anybody listed the directory: no news will name it.
    #expect(!own.isOwn(path("d/e"), look: look(["d/e/f": files["d/e/f"]!], directories: directories)))
    #expect(!own.isOwn(path("d/e"), look: look(files, directories: ["d/e": 0])))
    #expect(!own.isOwn(path("x"), look: look([:], directories: ["x": 0o755])))
  }

  /// What a mode kept from being brought is brought once that is back.
  @Test func aModeThatIsGivenBackIsNews() {
    own.note(path("d/f"), identity(1))
    let files = ["d/f": (identity(1), UInt32(0o644))]
    #expect(!own.isOwn(path("d"), look: look(files, directories: ["d": 0o555])))
    #expect(!own.isOwn(path("d"), look: look(files, directories: ["d": 0o755])))
    own.forget()
    own.note(path("d/f"), identity(1))
    #expect(own.isOwn(path("d"), look: look(files, directories: ["d": 0o755])))
  }

  /// Somebody's file stood in the place of the directory, and is gone: what was noted below is not there.
  @Test func aDirectoryThatIsGoneIsOwnWhereAllInItIs() {
    own.note(path("d/e/f"), identity(1))
    #expect(!own.isOwn(path("d/e"), look: look([:])))
    own.note(path("d/e/f"), nil)
    #expect(own.isOwn(path("d/e"), look: look([:])) && own.isOwn(path("d"), look: look([:])))
  }

  /// The directory is made, and told, before the file has its name in it.
  @Test func whatIsExpectedInADirectoryIsLookedAtAgain() {
    let doubts = Locked<[RelativePath]>([])
    own.setOnDoubt { path in doubts.withLock { $0.append(path) } }
    own.expect(path("d/f"), identity(1))
    #expect(own.isOwn(path("d"), look: look([:], directories: ["d": 0o755])))
    #expect(doubts.withLock { $0 }.isEmpty)
    own.note(path("d/f"), identity(1))
    #expect(doubts.withLock { $0 } == [path("d/f")])
    own.note(path("d/f"), identity(1))
    #expect(doubts.withLock { $0 }.count == 1)
  }

  /// Moved away as a whole: nobody tells of what lies deep in it.
  @Test func aDirectoryThatIsGoneWithAllBelowItIsNotOwn() {
    own.note(path("d/e/f/g"), identity(1))
    #expect(!own.isOwn(path("d"), look: look([:])))
    #expect(!own.isOwn(path("d"), look: look([:], directories: ["d": 0o755])))
    #expect(own.isOwn(path("d"), look: look([:], directories: ["d": 0o755, "d/e": 0o755])))
    own.note(path("d/e/f/g"), nil)
    #expect(own.isOwn(path("d"), look: look([:])))
  }

  /// It could not be put there: that its directory is gone is somebody else's doing.
  @Test func whatIsExpectedNoMoreExcusesNothing() {
    let doubts = Locked<[RelativePath]>([])
    own.setOnDoubt { path in doubts.withLock { $0.append(path) } }
    own.expect(path("d/e/f"), identity(1))
    #expect(own.isOwn(path("d"), look: look([:])))
    own.withdraw(path("d/e/f"))
    #expect(doubts.withLock { $0 } == [path("d/e/f")])
    #expect(!own.isOwn(path("d"), look: look([:])) && !own.isOwn(path("d/e"), look: look([:])))
    // What stands beside it still tells for itself.
    own.note(path("d/g"), identity(2))
    own.expect(path("d/e/f"), identity(1))
    own.withdraw(path("d/e/f"))
    let files = ["d/g": (identity(2), UInt32(0o644))]
    #expect(own.isOwn(path("d"), look: look(files, directories: ["d": 0o755])))
    #expect(!own.isOwn(path("d"), look: look([:], directories: ["d": 0o755])))
  }
}
