import TarnCore

extension Action {
  /// As far as the feed tells.
  var bytesToFetch: UInt64 {
    switch kind {
    case .fetch, .update, .restore, .replace: entry?.size ?? 0
    default: 0
    }
  }

  /// Where the feed tells none: of what was there.
  var bytesRecorded: UInt64 {
    switch kind {
    case .restore, .replace: entry?.size == nil ? row?.identity.size ?? 0 : 0
    default: 0
    }
  }

  /// What it adds to `Plan.bytesWithRecorded`.
  var bytesPlanned: UInt64 { bytesToFetch.addingSaturated(bytesRecorded) }

  var hasUnknownSize: Bool {
    switch kind {
    case .fetch, .update, .restore, .replace, .revalidate: entry?.size == nil
    case .adopt, .delete, .inspect, .forget: false
    }
  }
}
