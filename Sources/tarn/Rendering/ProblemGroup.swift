import TarnCore

/// Problems with one cause, told together: when a host cannot be reached, all of its files fail for the same
/// reason.
struct ProblemGroup<Item> {
  let first: Item
  /// The common cause; `nil` for a single problem.
  let cause: String?
  private(set) var count = 1

  /// Returns the groups, in the order of their first problems.
  static func groups(
    of problems: [Item], by cause: (Item) -> String?
  ) -> [ProblemGroup] {
    var groups: [ProblemGroup] = []
    var places: [String: Int] = [:]
    for problem in problems {
      let shared = cause(problem)
      if let shared, let place = places[shared] {
        groups[place].count += 1
        continue
      }
      if let shared { places[shared] = groups.count }
      groups.append(ProblemGroup(first: problem, cause: shared))
    }
    return groups
  }

  /// Returns `a.iso and 499 other files: host:80 failed again and again: refused`.
  ///
  /// - Parameters:
  ///   - name: the name in the first problem, ready to be shown.
  ///   - message: the message of the first problem.
  func text(name: String, message: String) -> String {
    guard count > 1, let cause else { return "\(name): \(Brief.text(message))" }
    return "\(name) and \(Numbers.count(count - 1, "other file")): \(Brief.text(cause))"
  }
}

/// The cause that a problem shares with others.
enum SharedCause {
  /// The failures that concern the server rather than the file.
  private static let ofHosts: Set<DownloadFailure.Code> = [
    .resolve, .connect, .timeout, .tls, .addressRefused, .hostResting,
  ]

  /// The failures that concern the whole folder.
  private static let ofFolders: Set<FolderFailure.Code> = [.noSpace, .quota, .readOnly]

  /// - Returns: `nil` for a problem that has its own cause.
  static func of(code: String, message: String) -> String? {
    if isOfHost(code) { return withoutURL(message) }
    return FolderFailure.Code(rawValue: code).map(ofFolders.contains) == true ? message : nil
  }

  /// True for a failure of the host, which another pass may reach.
  static func isOfHost(_ code: String) -> Bool {
    DownloadFailure.Code(rawValue: code).map(ofHosts.contains) ?? false
  }

  /// Returns a message without the URL of the file at its beginning, and without the number of its HTTP/2 stream.
  static func withoutURL(_ message: String) -> String {
    let words = message.split(separator: ": ", maxSplits: 1)
    let cause = words.count == 2 && words[0].contains("://") ? String(words[1]) : message
    return cause.replacing(/HTTP\/2 stream \d+/, with: "HTTP/2 stream")
  }

  static func of(_ problem: Problem) -> String? { of(code: problem.code, message: problem.message) }
}
