internal import TarnCore

/// What is to be downloaded, and where to.
public struct DownloadRequest: Sendable, Hashable {
  /// What is done where something has the file's name already.
  public enum Existing: String, Sendable, Hashable, CaseIterable {
    /// The task fails when it learns of that, and keeps its bytes.
    case fail
    /// The new file takes its place, atomically.
    case replace
    /// The new file gets a name with a number: `a (1).txt`.
    case keepBoth = "keep-both"
  }

  public enum Priority: String, Sendable, Hashable, CaseIterable { case high, normal, low }

  /// `http` or `https`, in ASCII.
  public var url: String
  /// An absolute path. Where it ends with `/` it is a folder, and the file gets the name that the server suggests (RFC 6266).
  public var destination: String
  public var existing = Existing.fail
  /// Makes the directories of the destination that are missing.
  public var makesDirectories = false
  /// As `sha256:HEX`; also md5, sha1, sha224, sha384, sha512. A file with another digest never gets its name. nil where nobody knows it.
  public var digest: String?
  /// For progress, where the server tells no length.
  public var expectedBytes: UInt64?
  public var priority = Priority.normal
  /// Header lines, sent to the origin of `url` only.
  public var headers: [String: String] = [:]
  /// What the file is, for the program; stored with the task and told with its events. 4,096 bytes at most, as is `userInfo`.
  public var label: String?
  public var userInfo: String?
  /// It waits for `DownloadTask.resume()`.
  public var isSuspended = false
  /// The program's own key: what was added under it is not added again.
  public var key: String?

  /// - Parameters:
  ///   - url: see `url`.
  ///   - destination: see `destination`.
  public init(_ url: String, to destination: String) { (self.url, self.destination) = (url, destination) }

  var stored: TaskRequest {
    var request = TaskRequest(url: url, to: destination)
    request.existing = existing == .fail ? nil : TaskRequest.Existing(rawValue: existing.rawValue)
    request.makeDirectories = makesDirectories ? true : nil
    (request.digest, request.expectedBytes) = (digest, expectedBytes)
    request.priority = priority == .normal ? nil : TaskPriority(rawValue: priority.rawValue)
    request.headers = headers.isEmpty ? nil : headers.map { "\($0): \($1)" }.sorted()
    (request.label, request.userInfo, request.key) = (label, userInfo, key)
    request.suspended = isSuspended ? true : nil
    return request
  }
}
