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
  /// For progress, where the server tells no length. An answer whose end nothing marks is the file only if it has so many bytes.
  public var expectedBytes: UInt64?
  public var priority = Priority.normal
  /// Header lines, sent to the origin of `url` only.
  public var headers: [String: String] = [:]
  /// What the file is, for the program; stored with the task and told with its events. 4,096 bytes at most, as is `userInfo`.
  public var label: String?
  public var userInfo: String?
  /// It waits for `DownloadTask.resume()`.
  public var isSuspended = false
  /// What it belongs to: `groupDelivered` tells when all of a group have ended.
  public var group: String?
  /// It does not begin before, in seconds since 1970. `needsRequest` is told then, for a signed URL may be over: `DownloadTask.refresh` gives
  /// another one, and without an answer it begins after 30 seconds, unless the session holds old requests.
  public var notBefore: Int64?
  /// They go before those of the session.
  public var limits: TimeLimits?
  public var rules: [DownloadRule] = []
  /// Caches on the way are told to ask the server.
  public var ignoresCaches = false
  /// GET, POST, PUT, PATCH or DELETE. What is no GET is never sent twice unless somebody says so: after a failure `needsRequest` asks.
  public var method = "GET"
  /// Text that is sent with it, 65,536 bytes at most; its type is among `headers`.
  public var body: String?
  /// Bytes that somebody else has fetched.
  public var resuming: PartialDownload?
  /// The program's own key: what was added under it is not added again.
  public var key: String?

  /// The first bytes of a file, in another one, and what proves that they are the file's: one of these, or the `digest` of the request.
  public struct PartialDownload: Sendable, Hashable {
    /// An absolute path. The file is copied, and stays.
    public var file: String
    /// Strong, with its quotes.
    public var etag: String?
    /// As the server sent it.
    public var lastModified: String?

    public init(_ file: String, etag: String? = nil, lastModified: String? = nil) {
      (self.file, self.etag, self.lastModified) = (file, etag, lastModified)
    }
  }

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
    request.headers = HeaderFields.lines(of: headers)
    (request.label, request.userInfo, request.key) = (label, userInfo, key)
    request.suspended = isSuspended ? true : nil
    request.group = group
    request.notBefore = notBefore.flatMap { Timestamp(seconds: $0) ?? ($0 > 0 ? .distantFuture : nil) }
    request.limits = limits?.stored
    request.rules = rules.isEmpty ? nil : rules.map(\.stored)
    request.ignoreCache = ignoresCaches ? true : nil
    (request.method, request.body) = (method == "GET" ? nil : method, body)
    request.resuming = resuming.map { partial in
      var stored = TaskRequest.Resuming(file: partial.file)
      (stored.etag, stored.lastModified) = (partial.etag, partial.lastModified)
      return stored
    }
    return request
  }
}

/// Header lines, as the socket has them.
enum HeaderFields {
  static func lines(of fields: [String: String]) -> [String]? {
    fields.isEmpty ? nil : fields.map { "\($0): \($1)" }.sorted()
  }

  static func fields(of lines: [String]) -> [String: String] {
    Dictionary(
      lines.map { line in
        let name = line.prefix { $0 != ":" }
        return (String(name), String(line.dropFirst(name.count + 1).drop { $0 == " " }))
      }
    ) { $1 }
  }
}
