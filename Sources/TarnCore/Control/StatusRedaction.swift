extension StatusAnswer {
  /// The text that takes the place of one that is not shown.
  package static let withheld = "withheld"

  /// The part that everyone may read: states, counts and times. No path, no URL beyond scheme and host, no name of a resting host,
  /// and no text that might hold one.
  package var redacted: StatusAnswer {
    var answer = self
    answer.agent = agent?.redacted
    answer.mirrors = mirrors.map(\.redacted)
    return answer
  }
}

extension AgentDocument {
  var redacted: AgentDocument {
    var document = self
    document.rejected = []
    document.settingsCheck = nil
    document.needRestart = []
    document.restingHosts = []
    (document.hooks, document.troubles) = (nil, nil)
    return document
  }
}

extension StatusDocument {
  var redacted: StatusDocument {
    var document = self
    // A mirror without a configured name is named by its folder.
    document.name = Self.lastName(name)
    document.feed = Self.origin(feed)
    document.feedBefore = feedBefore.map(Self.origin)
    document.folder = Self.lastName(folder)
    document.lastFailure = lastFailure.map { _ in StatusAnswer.withheld }
    (document.hint, document.incompleteReason) = (nil, nil)
    document.options = nil
    document.lastRun?.message = StatusAnswer.withheld
    document.lastRun?.hint = nil
    document.transfers = transfers.map { transfer in
      var transfer = transfer
      transfer.path = StatusAnswer.withheld
      transfer.source = StatusAnswer.withheld
      return transfer
    }
    document.watch.reason = StatusAnswer.withheld
    document.held?.plan = StatusAnswer.withheld
    document.problems = []
    document.moreProblems = moreProblems + problems.count
    return document
  }

  private static func lastName(_ path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? StatusAnswer.withheld
  }

  /// Returns `scheme://host` without user, port, path and query; `file://` for a local feed.
  private static func origin(_ feed: String) -> String {
    guard let mark = feed.firstRange(of: "://"), !feed.hasPrefix("/") else {
      return feed.hasPrefix("/") ? "file://" : StatusAnswer.withheld
    }
    let authority = feed[mark.upperBound...].prefix { !"/?#\\".contains($0) }
    let host = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
    let end =
      host.hasPrefix("[") ? host.firstIndex(of: "]").map { host.index(after: $0) } : host.firstIndex(of: ":")
    return String(feed[..<mark.upperBound] + host[..<(end ?? host.endIndex)])
  }
}
