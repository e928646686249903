import TarnCore

/// Problems with one cause, told as one: of a host that cannot be reached all files fail, and each for the same reason.
struct ProblemGroup<Item> {
  let first: Item
  /// What they share; nil for one that stands for itself.
  let cause: String?
  private(set) var count = 1

  /// In the order of the first of each.
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

  /// `a.iso and 499 other files: host:80 failed again and again: refused`.
  ///
  /// - Parameters:
  ///   - name: of the first, ready to be shown.
  ///   - message: of the first.
  func text(name: String, message: String) -> String {
    guard count > 1, let cause else { return "\(name): \(Brief.text(message))" }
    return "\(name) and \(Numbers.count(count - 1, "other file")): \(Brief.text(cause))"
  }
}

/// The cause that a problem shares with others.
enum SharedCause {
  /// Failures that say nothing of the file, but of where it comes from.
  private static let ofHosts: Set<DownloadFailure.Code> = [
    .resolve, .connect, .timeout, .tls, .addressRefused, .hostResting,
  ]

  /// Of the folder as a whole.
  private static let ofFolders: Set<FolderFailure.Code> = [.noSpace, .quota, .readOnly]

  /// - Returns: nil for a problem that stands for itself.
  static func of(code: String, message: String) -> String? {
    if isOfHost(code) { return withoutURL(message) }
    return FolderFailure.Code(rawValue: code).map(ofFolders.contains) == true ? message : nil
  }

  /// Another pass may reach it.
  static func isOfHost(_ code: String) -> Bool {
    DownloadFailure.Code(rawValue: code).map(ofHosts.contains) ?? false
  }

  /// A message without the URL of the file that it begins with.
  static func withoutURL(_ message: String) -> String {
    let words = message.split(separator: ": ", maxSplits: 1)
    return words.count == 2 && words[0].contains("://") ? String(words[1]) : message
  }

  static func of(_ problem: Problem) -> String? { of(code: problem.code, message: problem.message) }
}
