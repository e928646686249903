import Glibc
import TarnRuntime
import Testing

@Suite struct SpoolTests {
  /// A fault is told with the file that it befell (I10).
  @Test func failedWriteNamesTheFile() throws {
    let spool = try SpoolFile(reading: #filePath)
    let failure = #expect(throws: SpoolFailure.self) { try spool.append([1, 2, 3]) }
    #expect(failure?.operation == "write \(#filePath)")
    #expect(failure?.number == EBADF)
  }

  /// The first few MiB are not looked at: nearly all feeds are smaller.
  @Test func theReserveIsLeftFree() throws {
    let block = [UInt8](repeating: 1, count: 1 << 20)
    let spool = try SpoolFile(directory: "/tmp", reserve: { $0 })
    for _ in 0..<3 { try spool.append(block) }
    let failure = #expect(throws: SpoolFailure.self) { try spool.append(block) }
    #expect(failure?.number == ENOSPC)
    #expect(failure?.operation.hasSuffix("and leave the reserve free (--reserve)") == true)
    #expect(spool.size == 3 << 20)
    let other = try SpoolFile(directory: "/tmp", reserve: { _ in 0 })
    for _ in 0..<9 { try other.append(block) }
    #expect(other.size == 9 << 20)
  }

  @Test func temporaryFileIsNamedByItsDirectory() {
    let failure = #expect(throws: SpoolFailure.self) { try SpoolFile(directory: "/does/not/exist") }
    #expect(failure?.operation == "create a temporary file in /does/not/exist")
    #expect(failure?.number == ENOENT)
  }
}

@Suite struct UnusedMemoryTests {
  @Test func theLibraryHasIt() {
    #expect(UnusedMemory.giveBack())
    #expect(UnusedMemory.shareArenas(4))
  }
}
