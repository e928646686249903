internal import TarnCore

/// A request for a download: what to fetch, and where to put it.
public struct DownloadRequest: Sendable, Hashable {
  /// The treatment of something that already has the file's name.
  public enum Existing: String, Sendable, Hashable, CaseIterable {
    /// The task fails when it finds out, and keeps the bytes that were fetched.
    case fail
    /// The new file replaces it atomically.
    case replace
    /// The new file gets a name with a number, such as `a (1).txt`.
    case keepBoth = "keep-both"
  }

  public enum Priority: String, Sendable, Hashable, CaseIterable { case high, normal, low }

  /// The URL: `http` or `https`, in ASCII.
  public var url: String
  /// An absolute path. A path that ends with `/` is a folder, and the file gets the name that the server suggests (RFC 6266).
  public var destination: String
  public var existing = Existing.fail
  /// Whether missing directories of the destination are made.
  public var makesDirectories = false
  /// The expected digest as `sha256:HEX`; also md5, sha1, sha224, sha384 and sha512. A file with another digest never gets its
  /// name. `nil` when it is not known.
  public var digest: String?
  /// The expected size in bytes, for progress when the server sends no length. An answer without a marked end is accepted only at
  /// this size.
  public var expectedBytes: UInt64?
  public var priority = Priority.normal
  /// The header fields, which are sent only to the origin of `url`. They take the place of those of the session, and of the default
  /// `User-Agent` and `Accept`.
  public var headers: [String: String] = [:]
  /// A label for the program's own use. It is stored with the task and comes with its events. At most 4,096 bytes, as is
  /// `userInfo`.
  public var label: String?
  public var userInfo: String?
  /// Whether the task waits for `DownloadTask.resume()` before it begins.
  public var isSuspended = false
  /// The task's group. `groupDelivered` comes when all tasks of the group have ended.
  public var group: String?
  /// The earliest time to begin, in seconds since 1970. `needsRequest` comes at that time, because a signed URL may have expired.
  /// `DownloadTask.refresh` sets another URL. Without an answer the task begins after 30 seconds, unless the session holds old
  /// requests.
  public var notBefore: Int64?
  /// The time limits of this task. They take precedence over those of the session.
  public var limits: TimeLimits?
  public var rules: [DownloadRule] = []
  /// Whether caches on the way are told to ask the server.
  public var ignoresCaches = false
  /// The method: GET, POST, PUT, PATCH or DELETE. A request other than GET is never sent twice by itself: `needsRequest` asks after
  /// a failure.
  public var method = "GET"
  /// The request's body as text, at most 65,536 bytes. Its content type is one of `headers`.
  public var body: String?
  /// Bytes that were fetched by other means.
  public var resuming: PartialDownload?
  /// The program's own key. A second request with the same key is not added.
  public var key: String?

  /// The first bytes of a file, held in another file. One of these fields, or the `digest` of the request, proves that they belong
  /// to it.
  public struct PartialDownload: Sendable, Hashable {
    /// An absolute path. The file is copied and stays.
    public var file: String
    /// The strong entity tag, with its quotes.
    public var etag: String?
    /// The `Last-Modified` field as the server sent it.
    public var lastModified: String?

    public init(_ file: String, etag: String? = nil, lastModified: String? = nil) {
      (self.file, self.etag, self.lastModified) = (file, etag, lastModified)
    }
  }

  /// - Parameters:
  ///   - url: the URL; see `url`.
  ///   - destination: the path or folder; see `destination`.
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

/// Converts header fields to and from the lines that the socket transports.
enum HeaderFields {
  static func lines(of fields: [String: String]) -> [String]? {
    fields.isEmpty ? nil : fields.map { "\($0): \($1)" }.sorted()
  }

  /// Lines of one name become one field, in their order: RFC 9110 section 5.2, and RFC 6265 section 5.4 for cookies.
  static func fields(of lines: [String]) -> [String: String] {
    var fields: [String: String] = [:]
    for line in lines {
      let name = String(line.prefix { $0 != ":" })
      let value = String(line.dropFirst(name.count + 1).drop { $0 == " " })
      guard let earlier = fields.first(where: { $0.key.lowercased() == name.lowercased() }) else {
        fields[name] = value
        continue
      }
      fields[earlier.key] = earlier.value + (name.lowercased() == "cookie" ? "; " : ", ") + value
    }
    return fields
  }
}
