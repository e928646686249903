/// Why a pass or a command ended without doing its work.
package struct PassFailure: Error, Sendable, Equatable {
  /// The kind of failure by exit status (tarn/ExitStatus.swift): those of sysexits.h where one fits.
  package enum Kind: Int32, Sendable, CaseIterable {
    case usage = 64
    case feedMalformed = 65
    case feedUnreachable = 66
    case noAgent = 69
    case defect = 70
    case folderUnusable = 73
    case inputOutput = 74
    case locked = 75
    case permission = 77
    case configuration = 78
    case stopped = 130

    package var exitStatus: Int32 { rawValue }
  }
  package var kind: Kind
  /// A stable code such as `feed-truncated`.
  package var code: String
  /// What failed, and where: a text for logs and events, without the tokens in the queries of URLs.
  package var message: String
  /// How to fix it; a command where there is one.
  package var hint: String?
  /// The option that the failure is about.
  package var option: PassOptions.Name?
  /// Seconds from now after which to try again.
  package var retryAfter: Int64?
  /// True when the server itself asked for the pause, false when the host is left alone because it failed.
  package var isAsked = true

  package init(_ kind: Kind, code: String, _ message: String, hint: String? = nil) {
    (self.kind, self.code) = (kind, code)
    (self.message, self.hint) = (Redaction.tokens(message), hint)
  }
}

extension PassFailure {
  package init(_ failure: LedgerFailure) {
    let kind: Kind = failure.code == .permission ? .permission : .inputOutput
    let hint =
      failure.code == .newer
      ? "use the Tarn that wrote it, or a newer one; this one leaves it untouched"
      : failure.code == .noSpace ? LedgerFailure.makeRoom : nil
    self.init(kind, code: failure.code.rawValue, failure.message, hint: hint)
  }

  package init(_ failure: PassOptions.Failure) {
    self.init(.usage, code: "option-value", failure.message)
    option = failure.name
  }

  package init(_ failure: FolderFailure) {
    let kind: Kind
    switch failure.code {
    case .permission: kind = .permission
    case .markerMissing, .missing, .notDirectory, .otherFileSystem, .link: kind = .folderUnusable
    default: kind = .inputOutput
    }
    let hint: String? =
      switch failure.code {
      case .noSpace: LedgerFailure.makeRoom
      case .quota:
        "remove what this user does not need on that file system, or have its quota raised, and try again"
      case .nameTooLong: "give a shorter name"
      case .readOnly: "mount that file system writable, and try again"
      default: nil
      }
    self.init(kind, code: failure.code.rawValue, failure.message, hint: hint)
  }

  /// - Parameter feed: the name of the feed.
  package init(_ failure: FeedFailure, feed: String) {
    let place = failure.line.map { line in ":\(line)" + (failure.column.map { ":\($0)" } ?? "") } ?? ""
    let kind: Kind = failure.code == "feed-not-readable" ? .feedUnreachable : .feedMalformed
    self.init(
      kind, code: failure.code, "\(Printable.escape(feed))\(place): \(failure.message)",
      hint: failure.hint ?? Self.hint(failure.code, of: feed))
  }

  private static func hint(_ code: String, of feed: String) -> String {
    switch code {
    case "feed-empty" where feed == "-":
      "its mirror was made from standard input, so each pass needs the list there: tarn sync - FOLDER < LIST"
    case "feed-not-readable": "check its path, and whether this user may read it"
    case "feed-empty":
      "look at its address; it may be written just now: try again later; 'tarn forget' gives the mirror up"
    case "feed-too-many-entries": "make several lists of it, and a mirror of each"
    case "feed-not-recognised": "look at what is at its address"
    case "opml-not-recognised": "give the OPML file that a program for podcasts or news exports"
    case "feed-without-links": "look at the page with a browser: does it list the files?"
    default:
      "it may be half written, or cut on its way: try again later; if it stays so, its publisher has to correct it"
    }
  }
}
