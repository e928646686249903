import Glibc
import TarnRuntime
import TestSupport
import Testing

@testable import TarnAgent

/// The list of this user's mirrors.
@Suite struct RegistryTests {
  private func mirror(_ thread: Int, _ number: Int) -> Registry.Mirror {
    Registry.Mirror(folder: "/srv/\(thread)/\(number)", id: "id-\(thread)-\(number)", fileSystem: "1f")
  }

  /// Passes that begin and end at once: each call opens the lock of its own, so that threads meet as processes do.
  @Test func noLineIsLostAndNoneComesBack() throws {
    let directory = ScratchDirectory()
    let registry = try #require(Registry(environment: ["STATE_DIRECTORY": directory.path]))
    let (threads, each) = (8, 10)
    let workers = try (0..<threads).map { thread in
      try WorkerThread.start(name: "registry") {
        for number in 0..<each { registry.add(mirror(thread, number)) { _ in false } }
        // As first passes that failed do.
        for number in 0..<each where number % 2 == 1 {
          registry.remove(folder: mirror(thread, number).folder)
        }
      }
    }
    for worker in workers { worker.join() }
    let wanted = (0..<threads).flatMap { thread in
      (0..<each).filter { $0 % 2 == 0 }.map { mirror(thread, $0).folder }
    }
    #expect(registry.mirrors().map(\.folder).sorted() == wanted.sorted())
    #expect(directory.names.sorted() == ["mirrors", "mirrors.lock"], "nothing else is left")
  }

  /// Where no lock can be had the list is no worse off than without one, and nobody waits for ever.
  @Test func whatCannotBeLockedIsWrittenAllTheSame() throws {
    let directory = ScratchDirectory()
    let registry = try #require(Registry(environment: ["STATE_DIRECTORY": directory.path]))
    try #require(symlink("/nonexistent", directory.file("mirrors.lock")) == 0)
    registry.add(mirror(0, 0)) { _ in false }
    #expect(registry.mirrors() == [mirror(0, 0)])
  }

  /// A link that led to a mirror leads nowhere any more.
  @Test func anotherPathOfAMirrorGoesOnceItIsDead() throws {
    let directory = ScratchDirectory()
    let registry = try #require(Registry(environment: ["STATE_DIRECTORY": directory.path]))
    var other = mirror(0, 0)
    other.folder = "/srv/link"
    for mirror in [other, mirror(0, 0)] { registry.add(mirror) { _ in true } }
    #expect(registry.mirrors() == [other, mirror(0, 0)])
    registry.add(mirror(0, 0)) { _ in false }
    #expect(registry.mirrors() == [mirror(0, 0)])
  }
}
