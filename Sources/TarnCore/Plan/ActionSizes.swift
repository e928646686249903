extension Action {
  /// It brings all of a file.
  private var isFetch: Bool { [.fetch, .update, .restore, .replace].contains(kind) }

  /// As far as the feed tells.
  package var bytesToFetch: UInt64 { isFetch ? entry?.size ?? 0 : 0 }

  /// Where the feed tells none: of what was there.
  package var bytesRecorded: UInt64 {
    [.restore, .replace].contains(kind) && entry?.size == nil ? row?.identity.size ?? 0 : 0
  }

  /// What it adds to `Plan.bytesWithRecorded`.
  package var bytesPlanned: UInt64 { bytesToFetch.addingSaturated(bytesRecorded) }

  package var hasUnknownSize: Bool { (isFetch || kind == .revalidate) && entry?.size == nil }
}
