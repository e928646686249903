extension Action {
  /// True when the action fetches a whole file.
  private var isFetch: Bool { [.fetch, .update, .restore, .replace].contains(kind) }

  /// The bytes to fetch, as far as the feed gives the size.
  package var bytesToFetch: UInt64 { isFetch ? entry?.size ?? 0 : 0 }

  /// The recorded size of the file that was there, where the feed gives no size.
  package var bytesRecorded: UInt64 {
    [.restore, .replace].contains(kind) && entry?.size == nil ? row?.identity.size ?? 0 : 0
  }

  /// The bytes that the action adds to `Plan.bytesWithRecorded`.
  package var bytesPlanned: UInt64 { bytesToFetch.addingSaturated(bytesRecorded) }

  package var hasUnknownSize: Bool { (isFetch || kind == .revalidate) && entry?.size == nil }
}
