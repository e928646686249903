import Glibc
import TarnCore

/// An exchange with a `file:` URL. It does not use libcurl. libcurl's file protocol reads a whole file in one go, cannot pause,
/// blocks on a FIFO and takes a directory for an empty file. Network thread only.
///
/// The answer looks like a server's: 200, 206 from an offset, 304 or 416, with a strong ETag made of inode, size and modification
/// time.
final class FileExchange {
  private let descriptor: Int32
  private let request: DownloadRequest
  private let head: ResponseHead
  private var count: UInt64 = 0
  private var isAccepted = false
  private(set) var isFull = false

  /// Opens a regular file.
  init(_ url: SourceURL, _ request: DownloadRequest) throws(DownloadFailure) {
    // Non-blocking, so that a FIFO cannot block the thread before its type is known.
    let descriptor = open(url.filePath ?? [0], O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw Self.unreadable(url, errno) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      throw DownloadFailure(
        .fileNotReadable, "\(url.shownPath) is not a regular file", isTransient: false)
    }
    self.descriptor = descriptor
    self.request = request
    head = Self.answer(to: request, url: url, status)
  }

  deinit {
    close(descriptor)
  }

  /// Reads one buffer and passes it on.
  ///
  /// - Parameter buffer: one buffer for all exchanges of the thread, of which there may be hundreds.
  /// - Returns: the outcome when the exchange is over.
  func step(_ receiver: any DownloadReceiver, _ buffer: inout [UInt8]) -> DownloadOutcome? {
    if !isAccepted {
      guard receiver.begin(head) == .accept, head.status < 300 else { return .complete(head) }
      guard head.contentLength ?? 0 <= request.limit else { return .failed(tooLarge) }
      lseek(descriptor, off_t(head.contentRange?.first ?? 0), SEEK_SET)
      isAccepted = true
    }
    let length = read(descriptor, &buffer, buffer.count)
    guard length >= 0 else {
      return .failed(DownloadFailure(.fileNotReadable, "the file could not be read", isTransient: true))
    }
    guard length > 0 else { return count == head.contentLength ? .complete(head) : .failed(changed) }
    guard count + UInt64(length) <= request.limit else { return .failed(tooLarge) }
    switch buffer[..<length].withUnsafeBytes(receiver.receive) {
    case .taken:
      count += UInt64(length)
    case .full:
      // The bytes are read again when there is room.
      lseek(descriptor, off_t(-length), SEEK_CUR)
      isFull = true
    case .abort:
      return .failed(DownloadFailure(.refusedByReceiver, "the receiver gave up", isTransient: false))
    }
    return nil
  }

  /// Tells that the receiver has room again.
  func clearFull() {
    isFull = false
  }

  private var tooLarge: DownloadFailure {
    DownloadFailure(
      .tooLarge, "the file has more than the \(Units.count(request.limit, "byte")) expected",
      isTransient: false)
  }

  private var changed: DownloadFailure {
    DownloadFailure(.truncated, "the file changed while it was read", isTransient: true)
  }

  private static func answer(to request: DownloadRequest, url: SourceURL, _ status: stat) -> ResponseHead {
    let size = UInt64(max(0, status.st_size))
    let etag = "\"\(status.st_ino)-\(size)-\(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec)\""
    var head = ResponseHead(status: 200, url: url.text)
    head.etag = etag
    head.modified = Timestamp(
      seconds: Int64(status.st_mtim.tv_sec), nanoseconds: Int64(status.st_mtim.tv_nsec))
    head.contentLength = size
    if request.ifNoneMatch == etag {
      head.status = 304
    } else if request.offset > 0, request.ifRange == nil || request.ifRange == etag {
      head.status = request.offset < size ? 206 : 416
      let isWithin = head.status == 206
      head.contentRange = ContentRange(
        first: isWithin ? request.offset : nil, last: isWithin ? size - 1 : nil, total: size)
      head.contentLength = isWithin ? size - request.offset : 0
    }
    return head
  }

  private static func unreadable(_ url: SourceURL, _ number: Int32) -> DownloadFailure {
    let words = strerror(number).map { String(cString: $0) } ?? "error \(number)"
    return DownloadFailure(
      .fileNotReadable, "\(url.shownPath): \(words.lowercased())",
      isTransient: number == EMFILE || number == ENFILE || number == EINTR)
  }
}

extension SourceURL {
  fileprivate var shownPath: String {
    Printable.escape((filePath ?? []).dropLast().map(UInt8.init(bitPattern:)))
  }
}
