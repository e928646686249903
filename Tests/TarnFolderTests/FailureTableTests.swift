import Foundation
import TarnCore
import TarnFolder
import Testing

@Suite struct FailureTableTests {
  @Test(
    arguments: [
      (ENOSPC, .noSpace), (EDQUOT, .quota), (EROFS, .readOnly), (EACCES, .permission), (EPERM, .permission),
      (EIO, .inputOutput), (ESTALE, .inputOutput), (EMFILE, .tooManyFiles), (ENFILE, .tooManyFiles),
      (ENOMEM, .outOfMemory), (ENAMETOOLONG, .nameTooLong), (ENOTDIR, .notDirectory), (ELOOP, .link),
      (EXDEV, .otherFileSystem), (ENOENT, .missing), (EEXIST, .exists), (ENOTEMPTY, .exists),
      (EISDIR, .exists),
      (EINVAL, .other), (EAGAIN, .other),
    ] as [(Int32, FolderFailure.Code)])
  func everyErrnoHasItsCode(_ errno: Int32, _ code: FolderFailure.Code) {
    #expect(FolderFailure.Code(errno: errno) == code)
  }

  @Test func aMessageSaysWhatWhereAndWhy() throws {
    let world = try DiskWorld()
    let path = RelativePath(trusted: Array(repeating: UInt8(ascii: "n"), count: 300))
    let failure = #expect(throws: FolderFailure.self) { _ = try world.port.look(path) }
    #expect(failure?.message == "cannot look at \(path.printable): File name too long")
    #expect(failure?.errno == ENAMETOOLONG)
    #expect(failure?.path == path)
  }
}
