/// A download that a program hands over: as it stands on the control socket, and as its session keeps it.
package struct TaskRequest: Codable, Sendable, Equatable {
  /// What is done where something has the file's name already.
  package enum Existing: String, Codable, Sendable, CaseIterable {
    /// The task fails, and keeps its bytes.
    case fail
    /// The new file takes its place, at once.
    case replace
    /// The new file gets a name with a number: `a (1).txt`.
    case keepBoth = "keep-both"
  }

  /// `http` or `https`, with its query. Half of what the task is known by.
  package var url: String
  /// An absolute path, the other half. A folder ends with `/`: the file then gets the name that the server suggests.
  package var to: String
  package var existing: Existing?
  /// Makes the directories of `to` that are missing.
  package var makeDirectories: Bool?
  /// As `sha256:HEX`; nil where nobody knows it.
  package var digest: String?
  /// For progress, where the server tells no length. An answer whose end nothing marks is the file only if it has so many bytes.
  package var expectedBytes: UInt64?
  package var priority: TaskPriority?
  /// `Name: value` lines. They go to the origin of `url` only.
  package var headers: [String]?
  /// For the program: what the file is.
  package var label: String?
  /// For the program, 4,096 bytes at most.
  package var userInfo: String?
  /// For the program: what it belongs to.
  package var group: String?
  /// It waits until it is resumed.
  package var suspended: Bool?
  /// It does not begin before.
  package var notBefore: Timestamp?
  package var limits: TaskLimits?
  /// They go before those of the session.
  package var rules: [ResponseRule]?
  /// Caches on the way are told to ask the server.
  package var ignoreCache: Bool?
  /// nil for GET. What is no GET is never repeated unless somebody says so.
  package var method: String?
  /// Sent with the request; its type is among the headers.
  package var body: String?
  /// Bytes that somebody else has fetched.
  package var resuming: Resuming?
  /// The client's own: what was added under it is not added again.
  package var key: String?

  package init(url: String, to: String) { (self.url, self.to) = (url, to) }

  /// The first bytes of the file, in another one, and what proves that the server's are the same.
  package struct Resuming: Codable, Sendable, Equatable {
    /// Absolute. It is copied, and stays.
    package var file: String
    /// Strong, with its quotes.
    package var etag: String?
    /// As the server sent it.
    package var lastModified: String?

    package init(file: String) { self.file = file }
  }

  /// It may be sent again without harm.
  package var isRepeatable: Bool { method == nil || method == "GET" }

  /// Why a request is not taken.
  package struct Refusal: Error, Equatable, Sendable {
    /// Stable.
    package var code: String
    package var message: String
  }

  /// Bytes of `label` and of `userInfo`.
  package static let mostText = 4096
  private static let mostURL = 32 << 10

  /// - Throws: what is wrong with a URL, for who wrote it.
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
        message: "a URL with a name or password is not taken: give a header, or the credential of a host")
    }
  }

  /// - Throws: what is wrong with it, for who wrote it.
  package func validate() throws(Refusal) {
    try Self.validate(url: url)
    try Self.validate(headers: headers)
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
    for (name, text) in [("label", label), ("userInfo", userInfo), ("group", group), ("key", key)] {
      guard let text, text.utf8.count > Self.mostText else { continue }
      throw Refusal(
        code: "text-too-long",
        message: "\(name) has \(Units.count(text.utf8.count, "byte")); \(Self.mostText) are allowed")
    }
  }
}

extension TaskRequest {
  /// - Throws: which line is none (RFC 9110 5.1, 5.5).
  package static func validate(headers: [String]?) throws(Refusal) {
    let others = Array("!#$%&'*+-.^_`|~".utf8)
    for line in headers ?? [] {
      let name = line.utf8.prefix { $0 != UInt8(ascii: ":") }
      let isName =
        !name.isEmpty && name.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || others.contains($0) }
      let isValue = line.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
      guard isName, isValue, name.count < line.utf8.count else {
        // Not its value: it may be a secret.
        throw Refusal(
          code: "header-refused",
          message:
            "a header line that begins with \(Printable.escape(String(line.prefix(20).prefix { $0 != ":" }))) is none: write 'Name: value'"
        )
      }
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
        message: "a body is text without NUL, of 65536 bytes at most, of a request that is no GET")
    }
    if !isRepeatable, rules?.contains(where: { $0.then == .hold }) == true {
      throw Refusal(
        code: "rule-refused", message: "what is no GET cannot be held: it would be sent again to go on")
    }
  }
}

/// Which of a session's tasks begins first.
package enum TaskPriority: String, Codable, Sendable, CaseIterable {
  case high, normal, low

  /// Smaller goes first.
  package var rank: Int64 {
    switch self {
    case .high: 0
    case .normal: 1
    case .low: 2
    }
  }
}

/// Where a task puts its file.
package struct TaskPlace: Hashable, Sendable {
  /// Absolute, without a slash at its end but for the root.
  package var directory: String
  /// nil where the server suggests it.
  package var name: String?

  /// - Parameter path: absolute; ends with `/` for a folder.
  /// - Returns: nil for a path that has a fault.
  package init?(_ path: String) {
    guard Self.fault(of: path) == nil else { return nil }
    var parts = Self.parts(of: path)
    if path.utf8.last != UInt8(ascii: "/") { name = parts.popLast() }
    directory = "/" + parts.joined(separator: "/")
  }

  /// By bytes, as the kernel takes it apart.
  private static func parts(of path: String) -> [String] {
    path.utf8.split(separator: UInt8(ascii: "/")).map { String(decoding: $0, as: UTF8.self) }
  }

  private static let mostName = 255

  /// Why no file can be put there; nil where one can.
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

  /// Without repeated slashes; a folder ends with one.
  package var text: String { path(name ?? "") }

  package func path(_ leaf: String) -> String { directory == "/" ? "/\(leaf)" : "\(directory)/\(leaf)" }
}
