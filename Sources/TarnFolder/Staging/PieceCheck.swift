import TarnCore

/// Checks the digests of consecutive pieces as they fill.
struct PieceCheck {
  private let pieces: Pieces
  private let hashing: any Hashing
  private var index = 0
  private var filled: UInt64 = 0
  private var hasher: (any Hasher)?

  /// - Returns: `nil` when there is nothing to check.
  init?(_ pieces: Pieces, hashing: any Hashing) {
    guard pieces.length > 0, !pieces.digests.isEmpty else { return nil }
    self.pieces = pieces
    self.hashing = hashing
  }

  /// The most bytes that the pieces cover; `nil` beyond 64 bits.
  var reach: UInt64? {
    let (bytes, overflow) = pieces.length.multipliedReportingOverflow(by: UInt64(pieces.digests.count))
    return overflow ? nil : bytes
  }

  /// - Returns: the start of the first wrong piece; `nil` when all complete pieces are good. Must not be called again after a wrong
  ///   piece.
  mutating func update(_ bytes: UnsafeRawBufferPointer) -> UInt64? {
    var rest = bytes[...]
    while !rest.isEmpty {
      guard index < pieces.digests.count else { return start }
      let running = hasher ?? hashing.hasher(pieces.digests[index].algorithm)
      hasher = running
      let part = rest.prefix(Int(min(pieces.length - filled, UInt64(rest.count))))
      running.update(UnsafeRawBufferPointer(rebasing: part))
      filled += UInt64(part.count)
      rest = rest.dropFirst(part.count)
      if filled == pieces.length, let wrong = close() { return wrong }
    }
    return nil
  }

  /// Checks the last piece, which may be short. All pieces must be present.
  ///
  /// - Returns: the start of the first wrong or missing piece.
  mutating func finish() -> UInt64? {
    if filled > 0, let wrong = close() { return wrong }
    return index < pieces.digests.count ? start : nil
  }

  private var start: UInt64 { UInt64(index) * pieces.length }

  private mutating func close() -> UInt64? {
    guard let digest = hasher?.finish(), digest == pieces.digests[index] else { return start }
    index += 1
    filled = 0
    hasher = nil
    return nil
  }
}
