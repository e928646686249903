import TarnCore

/// Whether a manifest may be followed at all (I7).
extension Pass {
  /// Refuses a manifest that is expired or older than the one before it (I7).
  func check(_ end: FeedEnd) throws {
    if let notice = end.notice { observer.notice(notice.code.rawValue, notice.message) }
    let latest = try latestTime()
    if let expires = end.expires, expires < latest {
      let isBehind = expires >= ports.now
      throw PassFailure(
        .feedMalformed, code: "feed-expired",
        "the manifest expired at \(expires.rfc3339); nothing was changed"
          + (isBehind
            ? "; the last pass was at \(latest.rfc3339), and the clock says an earlier time now" : ""),
        hint: isBehind
          ? "set this machine's clock; if it was ahead then, 'tarn forget' the mirror and make it again with --adopt"
          : "ask its publisher for a new one")
    }
    if let version = end.version, let known = try ports.ledger.fact(.manifestVersion),
      let last = UInt64(known), version < last
    {
      throw PassFailure(
        .feedMalformed, code: "feed-older",
        "the manifest is version \(version), and version \(last) was accepted before; nothing was changed",
        hint: "an old copy is served, or somebody plays it back")
    }
  }

  /// Now, or the time of an earlier pass where the clock was set back since: what has expired stays so (I7).
  func latestTime() throws -> Timestamp {
    let known = try ports.ledger.fact(.latestTime).flatMap { Int64($0) }
    return known.map { max(ports.now, Timestamp(nanoseconds: $0)) } ?? ports.now
  }
}
