/// A download that a program hands over, in the form of the control socket and of the session's store.
package struct TaskRequest: Codable, Sendable, Equatable {
  /// What to do when the name of the file is taken.
  package enum Existing: String, Codable, Sendable, CaseIterable {
    /// The task fails and keeps its bytes.
    case fail
    /// The new file replaces the old one at once.
    case replace
    /// The new file gets a name with a number: `a (1).txt`.
    case keepBoth = "keep-both"
  }

  /// The URL (`http` or `https`) with its query. One half of what identifies the task.
  package var url: String
  /// The destination as an absolute path, the other half. A folder ends with `/`: then the file gets the name that the server
  /// suggests.
  package var to: String
  package var existing: Existing?
  /// True to create the missing directories of `to`.
  package var makeDirectories: Bool?
  /// The digest as `sha256:HEX`; `nil` where it is not known.
  package var digest: String?
  /// The expected size, for progress where the server gives no length. An answer without a marked end is the file only if it has
  /// exactly this size.
  package var expectedBytes: UInt64?
  package var priority: TaskPriority?
  /// `Name: value` lines. They are sent only to the origin of `url`.
  package var headers: [String]?
  /// A text for the program: what the file is.
  package var label: String?
  /// Data for the program, at most 4,096 bytes.
  package var userInfo: String?
  /// A group for the program: what the file belongs to.
  package var group: String?
  /// True when the task waits until it is resumed.
  package var suspended: Bool?
  /// The time before which the task does not begin.
  package var notBefore: Timestamp?
  package var limits: TaskLimits?
  /// Rules that come before those of the session.
  package var rules: [ResponseRule]?
  /// True to tell caches on the way to ask the server.
  package var ignoreCache: Bool?
  /// The method; `nil` for GET. Other methods are never repeated unless somebody orders it.
  package var method: String?
  /// The body of the request; its type is among the headers.
  package var body: String?
  /// Bytes that somebody else has fetched already.
  package var resuming: Resuming?
  /// A key of the client's own: a task with the same key is not added again.
  package var key: String?

  package init(url: String, to: String) { (self.url, self.to) = (url, to) }

  /// The first bytes of the file, stored in another file, with a proof that the server's bytes are the same.
  package struct Resuming: Codable, Sendable, Equatable {
    /// The absolute path of the file with the bytes. It is copied and stays.
    package var file: String
    /// The strong ETag with its quotes.
    package var etag: String?
    /// The Last-Modified header as the server sent it.
    package var lastModified: String?

    package init(file: String) { self.file = file }

    /// - Throws: which proof is none: a weak ETag, or what is no ETag or date (RFC 9110 8.8.3, 5.6.7).
    fileprivate func validate() throws(Refusal) {
      if let etag,
        ResumeLadder.strong(etag) == nil || !etag.utf8.dropFirst().dropLast().allSatisfy(Self.isOfETag)
      {
        let isWeak = etag.hasPrefix("W/")
        throw Refusal(
          code: "resuming-refused",
          message: "\(Printable.escape(etag)) is \(isWeak ? "a weak ETag, and proves nothing" : "no ETag"): "
            + "give a strong one with its quotes, lastModified or the file's digest")
      }
      if let lastModified, !Self.isDate(lastModified) {
        throw Refusal(
          code: "resuming-refused",
          message: "\(Printable.escape(lastModified)) is no date: give Last-Modified as the server sent it")
      }
    }

    private static func isOfETag(_ byte: UInt8) -> Bool { byte == 0x21 || byte >= 0x23 && byte != 0x7F }

    private static func isDate(_ text: String) -> Bool {
      let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
      let words = text.split(separator: " ")
      let hasTime = words.contains { word in
        let parts = word.split(separator: ":", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { $0.utf8.allSatisfy(\.isASCIIDigit) ? Int($0) : nil }
        guard numbers.count == 3, parts[0].utf8.count <= 2, parts[1...].allSatisfy({ $0.utf8.count == 2 })
        else { return false }
        return parts.count == 3 && numbers[0] < 24 && numbers[1] < 60 && numbers[2] <= 60
      }
      return hasTime && words.count >= 4 && days.contains(String(text.prefix(3)))
        && text.utf8.allSatisfy { (0x20..<0x7F).contains($0) }
    }
  }

  /// True when the request may be sent again without harm.
  package var isRepeatable: Bool { method == nil || method == "GET" }

  /// Why a request is refused.
  package struct Refusal: Error, Equatable, Sendable {
    /// A stable code for programs.
    package var code: String
    package var message: String

    package init(code: String, message: String) { (self.code, self.message) = (code, message) }
  }

  /// The most bytes of `label`, `userInfo`, `group` and `key` each.
  package static let mostText = 4096
  private static let mostURL = 32 << 10

  /// - Throws: what is wrong with the URL, for its author.
  package static func validate(url: String) throws(Refusal) {
    guard URLScheme.remotePrefixes.contains(where: { url.lowercased().hasPrefix($0) }) else {
      throw Refusal(
        code: "url-refused", message: "\(Printable.escape(url)): only \(URLScheme.remote) URLs are downloaded"
      )
    }
    guard url.utf8.count <= mostURL, url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw Refusal(
        code: "url-refused",
        message: "\(Printable.escape(url)): a URL is ASCII without blanks; encode other bytes as %XX")
    }
    let rest = url.firstRange(of: "://").map { url[$0.upperBound...] } ?? url[...]
    let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    guard !authority.contains("@") else {
      throw Refusal(
        code: "url-refused",
        message:
          "a URL with a name or password is not accepted: give a header; a session also takes the credential of a host"
      )
    }
  }

  /// Writes the digest as `Digest.labelled` does, so that equal digests are equal texts.
  package mutating func normalizeDigest() {
    digest = digest.flatMap { Digest(labelled: $0) }?.labelled ?? digest
  }

  /// - Throws: what is wrong with the request, for its author.
  package func validate() throws(Refusal) {
    try Self.validate(url: url)
    try Self.validate(headers: headers)
    if isRepeatable { try Self.refuseOwnHeaders(headers) }
    if let fault = TaskPlace.fault(of: to) {
      throw Refusal(code: "destination-refused", message: "\(Printable.escape(to)): \(fault)")
    }
    if let digest, Digest(labelled: digest) == nil {
      throw Refusal(
        code: "digest-refused", message: "\(Printable.escape(digest)): write a digest as sha256:HEX")
    }
    try limits?.validate()
    for rule in rules ?? [] { try rule.validate() }
    try validateMethod()
    if let resuming, TaskPlace(resuming.file)?.name == nil {
      throw Refusal(
        code: "resuming-refused",
        message: "\(Printable.escape(resuming.file)): give the absolute path of a file")
    }
    if let resuming, resuming.etag == nil, resuming.lastModified == nil, digest == nil {
      throw Refusal(
        code: "resuming-refused",
        message: "what proves that these bytes are the file's? give etag, lastModified or the file's digest")
    }
    try resuming?.validate()
    try Self.refuseLong(label, "label")
    try Self.refuseLong(userInfo, "userInfo")
    try Self.refuseLong(group, "group")
    try Self.refuseLong(key, "key")
  }

  private static func refuseLong(_ text: String?, _ name: String) throws(Refusal) {
    guard let count = text?.utf8.count, count > mostText else { return }
    throw Refusal(
      code: "text-too-long", message: "\(name) has \(Units.count(count, "byte")); \(mostText) are allowed")
  }
}

extension TaskRequest {
  /// - Throws: the line that is not a header (RFC 9110 5.1, 5.5).
  package static func validate(headers: [String]?) throws(Refusal) {
    let others = Array("!#$%&'*+-.^_`|~".utf8)
    for line in headers ?? [] {
      let name = line.utf8.prefix { $0 != UInt8(ascii: ":") }
      let isName =
        !name.isEmpty && name.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || others.contains($0) }
      let isValue = line.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
      guard isName, isValue, name.count < line.utf8.count else {
        // The message leaves out the value, which may be a secret.
        throw Refusal(
          code: "header-refused",
          message:
            "a header line that begins with \(Printable.escape(String(line.prefix(20).prefix { $0 != ":" }))) is none: write 'Name: value'"
        )
      }
    }
  }

  /// The headers with which Tarn itself asks for a part, or whether a file has changed.
  private static let own: Set<String> = [
    "range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since",
  ]

  /// - Throws: the header that Tarn sets itself in a GET.
  package static func refuseOwnHeaders(_ headers: [String]?) throws(Refusal) {
    for line in headers ?? [] {
      let name = line.prefix { $0 != ":" }
      guard own.contains(name.lowercased()) else { continue }
      throw Refusal(
        code: "header-refused",
        message: "Tarn sets \(name) itself, to resume a file and to ask whether it has changed: leave it out")
    }
  }

  private static let methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
  private static let mostBody = 64 << 10

  private func validateMethod() throws(Refusal) {
    guard method.map(Self.methods.contains) ?? true else {
      throw Refusal(
        code: "method-refused", message: "method is one of \(Self.methods.joined(separator: ", "))")
    }
    let isText = body?.utf8.contains(0) != true
    guard body == nil || !isRepeatable, isText, body?.utf8.count ?? 0 <= Self.mostBody else {
      throw Refusal(
        code: "body-refused",
        message: "a body is text without NUL, at most 65536 bytes, and not for GET")
    }
    if !isRepeatable, rules?.contains(where: { $0.then == .hold }) == true {
      throw Refusal(
        code: "rule-refused", message: "only a GET can be held: going on sends the request again")
    }
  }
}

/// The order in which a session's tasks begin.
package enum TaskPriority: String, Codable, Sendable, CaseIterable {
  case high, normal, low

  /// The rank of the priority; a smaller one goes first.
  package var rank: Int64 {
    switch self {
    case .high: 0
    case .normal: 1
    case .low: 2
    }
  }
}

/// The place where a task puts its file.
package struct TaskPlace: Hashable, Sendable {
  /// The absolute path of the directory, without a slash at its end except for the root.
  package var directory: String
  /// The file name; `nil` where the server suggests it.
  package var name: String?

  /// - Parameter path: an absolute path; a folder ends with `/`.
  /// - Returns: `nil` for a path that cannot be used.
  package init?(_ path: String) {
    guard Self.fault(of: path) == nil else { return nil }
    var parts = Self.parts(of: path)
    if path.utf8.last != UInt8(ascii: "/") { name = parts.popLast() }
    directory = "/" + parts.joined(separator: "/")
  }

  /// Splits by bytes, as the kernel does.
  private static func parts(of path: String) -> [String] {
    path.utf8.split(separator: UInt8(ascii: "/")).map { String(decoding: $0, as: UTF8.self) }
  }

  private static let mostName = 255

  /// Returns why no file can be put there; `nil` where one can.
  package static func fault(of path: String) -> String? {
    guard path.hasPrefix("/") else { return "give an absolute path; a folder ends with '/'" }
    if path.utf8.contains(0) { return "a path has no NUL in it" }
    let parts = parts(of: path)
    if let dots = parts.first(where: { $0 == "." || $0 == ".." }) {
      return "'\(dots)' stands for another folder; give a path without it"
    }
    if let long = parts.first(where: { $0.utf8.count > mostName }) {
      return "one of its names has \(Units.count(long.utf8.count, "byte")); \(mostName) are allowed"
    }
    guard path.utf8.last != UInt8(ascii: "/"), let name = parts.last, name.hasPrefix(".tarn-"),
      name.hasSuffix(".part")
    else { return nil }
    return "names such as .tarn-x.part are those of partial files; give another name"
  }

  package init(directory: String, name: String?) { (self.directory, self.name) = (directory, name) }

  /// The path without repeated slashes; a folder ends with one.
  package var text: String { path(name ?? "") }

  package func path(_ leaf: String) -> String { directory == "/" ? "/\(leaf)" : "\(directory)/\(leaf)" }
}
