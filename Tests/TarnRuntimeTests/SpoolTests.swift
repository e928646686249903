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

  @Test func temporaryFileIsNamedByItsDirectory() {
    let failure = #expect(throws: SpoolFailure.self) { try SpoolFile(directory: "/does/not/exist") }
    #expect(failure?.operation == "create a temporary file in /does/not/exist")
    #expect(failure?.number == ENOENT)
  }
}
