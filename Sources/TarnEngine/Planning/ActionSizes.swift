import TarnCore

extension Action {
  /// It brings all of a file.
  private var isFetch: Bool { [.fetch, .update, .restore, .replace].contains(kind) }

  /// As far as the feed tells.
  var bytesToFetch: UInt64 { isFetch ? entry?.size ?? 0 : 0 }

  /// Where the feed tells none: of what was there.
  var bytesRecorded: UInt64 {
    [.restore, .replace].contains(kind) && entry?.size == nil ? row?.identity.size ?? 0 : 0
  }

  /// What it adds to `Plan.bytesWithRecorded`.
  var bytesPlanned: UInt64 { bytesToFetch.addingSaturated(bytesRecorded) }

  var hasUnknownSize: Bool { (isFetch || kind == .revalidate) && entry?.size == nil }
}
