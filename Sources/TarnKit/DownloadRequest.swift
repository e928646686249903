internal import TarnCore

/// A request says what to download and where to put it.
///
/// The agent checks all fields when the request is added, and refuses an invalid one with `TarnError.refused`.
public struct DownloadRequest: Sendable, Hashable {
  /// This says what happens to something that already has the file's name.
  public enum Existing: String, Sendable, Hashable, CaseIterable {
    /// The task fails when it finds out. It keeps the bytes that were fetched if there is more than 1 MiB of them.
    case fail
    /// The new file replaces it atomically.
    case replace
    /// The new file gets a name with a number, such as `a (1).txt`.
    case keepBoth = "keep-both"
  }

  /// The priority says which tasks of a session begin first. Tasks of one priority begin in the order in which they were added.
  public enum Priority: String, Sendable, Hashable, CaseIterable {
    /// The task begins before all tasks of the other priorities.
    case high
    /// The task begins after those of high priority, and before those of low priority.
    case normal
    /// The task begins when no task of another priority waits for its turn.
    case low
  }

  /// The file is downloaded from this URL. It is an `http` or `https` URL in ASCII, of at most 32,768 bytes, without a user name.
  public var url: String
  /// The file gets this absolute path. A path that ends with `/` is a folder, and the file gets the name that the server suggests
  /// (RFC 6266).
  public var destination: String
  /// This says what happens to something that already has the file's name.
  public var existing = Existing.fail
  /// This says whether missing directories of the destination are made. Otherwise the task fails when one is missing.
  public var makesDirectories = false
  /// The file must have this digest, `sha256:HEX`, or one of md5, sha1, sha224, sha384 and sha512. A file with another digest never
  /// gets its name. `nil` means that the digest is not known.
  public var digest: String?
  /// The file is expected to have this size in bytes. Progress uses it when the server sends no length. A response without a marked
  /// end is accepted only at this size. `nil` means that the size is not known.
  public var expectedBytes: UInt64?
  /// The task begins in the order of this priority.
  public var priority = Priority.normal
  /// These header fields are sent only to the origin of `url`. They take the place of those of the session, and of the default
  /// `User-Agent` and `Accept`. Put secrets in
  /// `TrustedHost.credential` instead, because the session shows these fields to its readers.
  public var headers: [String: String] = [:]
  /// The program may use this label as it likes. It is stored with the task, comes with its events, and has at most 4,096 bytes.
  public var label: String?
  /// The program may keep data of its own here. It is stored with the task, comes with its events, and has at most 4,096 bytes.
  public var userInfo: String?
  /// This says whether the task waits for `DownloadTask.resume()` before it begins.
  public var isSuspended = false
  /// The task belongs to the group with this name, of at most 4,096 bytes. `groupDelivered` comes when no task of the group can go
  /// on.
  public var group: String?
  /// The task does not begin before this time, in seconds since 1970. `needsRequest` comes at that time, because a signed URL may
  /// have expired. `DownloadTask.refresh` sets another URL. Without an answer the task begins after 30 seconds, unless the session
  /// holds old requests. `nil` means that it may begin at once.
  public var notBefore: Int64?
  /// These time limits hold for this task. They take precedence over those of the session.
  public var limits: TimeLimits?
  /// These rules decide about the response. The agent tries them in order, before the rules of the session.
  public var rules: [DownloadRule] = []
  /// This says whether caches on the way are told to ask the server.
  public var ignoresCaches = false
  /// The request has this method: GET, POST, PUT, PATCH or DELETE. A request other than GET is never sent twice by itself:
  /// `needsRequest` asks after a failure.
  public var method = "GET"
  /// The request has this text as its body, of at most 65,536 bytes and without NUL. Its content type is one of `headers`. A GET has
  /// no body.
  public var body: String?
  /// The program has these bytes of the file already. The download continues after them.
  public var resuming: PartialDownload?
  /// The program chooses this key, of at most 4,096 bytes. A second request with the same key is not added, and gives the first
  /// task.
  public var key: String?

  /// Another file holds the first bytes of the file. One of these fields, or the `digest` of the request, proves that they belong to
  /// it. When the server has another version, the download starts from the beginning.
  public struct PartialDownload: Sendable, Hashable {
    /// The bytes are in the file with this absolute path. The agent copies the file and leaves it where it is.
    public var file: String
    /// The bytes have this strong entity tag, with its quotes.
    public var etag: String?
    /// The server sent this `Last-Modified` field with the bytes.
    public var lastModified: String?

    /// Describes the bytes that are there. The file is not opened until the request is added.
    ///
    /// - Parameters:
    ///   - file: the absolute path of the file with the bytes; see `file`.
    ///   - etag: the strong entity tag of the bytes; see `etag`.
    ///   - lastModified: the `Last-Modified` field of the bytes; see `lastModified`.
    public init(_ file: String, etag: String? = nil, lastModified: String? = nil) {
      (self.file, self.etag, self.lastModified) = (file, etag, lastModified)
    }
  }

  /// Makes a request with the default for everything else.
  ///
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
