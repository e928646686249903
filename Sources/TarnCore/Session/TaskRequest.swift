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
  /// For progress, where the server tells no length.
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
  /// The client's own: what was added under it is not added again.
  package var key: String?

  package init(url: String, to: String) { (self.url, self.to) = (url, to) }

  /// Why a request is not taken.
  package struct Refusal: Error, Equatable, Sendable {
    /// Stable.
    package var code: String
    package var message: String
  }

  /// Bytes of `label` and of `userInfo`.
  package static let mostText = 4096
  private static let mostURL = 32 << 10

  /// - Throws: what is wrong with it, for who wrote it.
  package func validate() throws(Refusal) {
    guard URLScheme.remotePrefixes.contains(where: { url.lowercased().hasPrefix($0) }) else {
      throw Refusal(
        code: "url-refused", message: "\(Printable.escape(url)): only \(URLScheme.remote) URLs are downloaded"
      )
    }
    guard url.utf8.count <= Self.mostURL, url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw Refusal(
        code: "url-refused",
        message: "\(Printable.escape(url)): a URL is ASCII without blanks; encode other bytes as %XX")
    }
    guard TaskPlace(to) != nil else {
      throw Refusal(
        code: "destination-refused",
        message: "\(Printable.escape(to)): give an absolute path without '..'; a folder ends with '/'")
    }
    if let digest, Digest(labelled: digest) == nil {
      throw Refusal(
        code: "digest-refused", message: "\(Printable.escape(digest)): write a digest as sha256:HEX")
    }
    for (name, text) in [("label", label), ("userInfo", userInfo), ("group", group), ("key", key)] {
      guard let text, text.utf8.count > Self.mostText else { continue }
      throw Refusal(
        code: "text-too-long",
        message: "\(name) has \(Units.count(text.utf8.count, "byte")); \(Self.mostText) are allowed")
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
  /// - Returns: nil for a path that is not absolute, has `.` or `..` in it, or holds NUL.
  package init?(_ path: String) {
    guard path.hasPrefix("/"), !path.utf8.contains(0) else { return nil }
    var parts = path.split(separator: "/", omittingEmptySubsequences: true)
    guard parts.allSatisfy({ $0 != "." && $0 != ".." && $0.utf8.count <= 255 }) else { return nil }
    if !path.hasSuffix("/") { name = parts.popLast().map(String.init) }
    directory = "/" + parts.joined(separator: "/")
  }

  package init(directory: String, name: String?) { (self.directory, self.name) = (directory, name) }

  package func path(_ leaf: String) -> String { directory == "/" ? "/\(leaf)" : "\(directory)/\(leaf)" }
}
