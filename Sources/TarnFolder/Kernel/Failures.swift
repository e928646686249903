import Glibc
import LinuxShim
import TarnCore

extension FolderFailure.Code {
  /// The one table from errno to Tarn's codes.
  package init(errno: Int32) {
    self =
      switch errno {
      case ENOSPC: .noSpace
      case EDQUOT: .quota
      case EROFS: .readOnly
      case EACCES, EPERM: .permission
      case EIO, ESTALE, ENXIO, EUCLEAN, ENODEV, EREMOTEIO, ESHUTDOWN: .inputOutput
      case EMFILE, ENFILE: .tooManyFiles
      case ENOMEM: .outOfMemory
      case ENAMETOOLONG: .nameTooLong
      case ENOTDIR: .notDirectory
      case ELOOP: .link
      case EXDEV: .otherFileSystem
      case ENOENT: .missing
      case EEXIST, ENOTEMPTY, EISDIR: .exists
      default: .other
      }
  }
}

extension FolderFailure {
  /// Makes the failure of a system call.
  ///
  /// - Parameters:
  ///   - operation: what was tried, as in "cannot <operation> <object>".
  ///   - object: the raw bytes, which are escaped here.
  init(cannot operation: String, _ object: some Sequence<UInt8>, errno: Int32, path: RelativePath? = nil) {
    // "Invalid cross-device link" alone does not tell anybody what to do.
    let cause =
      errno == EXDEV
      ? "something is mounted there, or it is another subvolume (\(errorText(errno)))" : errorText(errno)
    self.init(
      Code(errno: errno), "cannot \(operation) \(Printable.escape(object)): \(cause)", errno: errno,
      path: path)
  }

  /// Returns the same failure about a path of the folder.
  func about(_ path: RelativePath?) -> FolderFailure {
    var failure = self
    failure.path = path
    return failure
  }
}

/// Returns a result of the shim, or throws the meaning of its negative errno. The words are made only then: for 20,000 small files
/// they would take 300,000 allocations.
@discardableResult
func kernel<Object: Sequence<UInt8>, Value: SignedInteger & FixedWidthInteger>(
  _ operation: @autoclosure () -> String, _ object: @autoclosure () -> Object, _ result: Value
) throws(FolderFailure) -> Value {
  guard result < 0 else { return result }
  throw FolderFailure(cannot: operation(), object(), errno: Int32(truncatingIfNeeded: 0 - result))
}

/// Returns the C library's text for an errno value.
func errorText(_ errno: Int32) -> String {
  var buffer = [CChar](repeating: 0, count: 256)
  tarn_error_text(errno, &buffer, buffer.count)
  return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
