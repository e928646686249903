import TarnCore

/// The offsets of the clocks of one place. A value: read once from TZif bytes, used often.
///
/// Seconds are those of `Timestamp`, without leap seconds. A local time is the number of seconds that UTC has at the same date and
/// time.
package struct TimeZoneRules: Hashable, Sendable {
  /// The moments at which another offset begins, ascending.
  let transitions: [Int64]
  /// The offsets in seconds east of UTC, before the first transition and from each one on; one more than transitions.
  let offsets: [Int32]
  /// The rules after the last transition; `nil` to keep the last offset.
  let footer: PosixZone?

  package static let utc = TimeZoneRules(transitions: [], offsets: [0], footer: nil)

  /// The limit of all offsets (RFC 8536 3.2), in seconds.
  static let mostOffset = 26 * 3600

  init(transitions: [Int64], offsets: [Int32], footer: PosixZone?) {
    self.transitions = transitions
    self.offsets = offsets
    self.footer = footer
  }

  /// Returns the offset at a moment in seconds east of UTC. O(log transitions).
  package func offset(at seconds: Int64) -> Int {
    let index = transitionsUpTo(seconds)
    if index == transitions.count, let footer { return footer.offset(at: seconds) }
    return Int(offsets[index])
  }

  /// Returns the first moment after `seconds` at which another rule may begin; `nil` when there is none. The offset need not
  /// differ.
  package func nextTransition(after seconds: Int64) -> Int64? {
    let index = transitionsUpTo(seconds)
    if index < transitions.count { return transitions[index] }
    return footer?.nextTransition(after: seconds)
  }

  /// Returns the moments at which clocks show that local time, ascending: none when they skip it, two or more when they are set
  /// back over it.
  func instants(local: Int64) -> [Int64] {
    var instants: [Int64] = []
    var start = local - Int64(Self.mostOffset)
    while start <= local + Int64(Self.mostOffset) {
      let end = nextTransition(after: start) ?? .max
      let instant = local - Int64(offset(at: start))
      if instant >= start, instant < end { instants.append(instant) }
      start = end
    }
    return instants
  }

  /// Returns the first local time that clocks show after skipping `local`.
  func endOfGap(local: Int64) -> Int64 {
    var start = local - Int64(Self.mostOffset)
    while let next = nextTransition(after: start), next <= local + Int64(Self.mostOffset) {
      let shown = next + Int64(offset(at: next))
      if shown > local { return shown }
      start = next
    }
    return local + 1
  }

  /// Returns the number of transitions up to that moment.
  private func transitionsUpTo(_ seconds: Int64) -> Int {
    var low = 0
    var high = transitions.count
    while low < high {
      let middle = (low + high) / 2
      if transitions[middle] <= seconds { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

/// The name of a zone in the time zone database, which becomes a path below its directory.
package enum TimeZoneName {
  /// Returns whether the name cannot lead out of the directory: letters, digits, `+`, `-`, `_` in parts between single slashes.
  package static func isSafe(_ name: String) -> Bool {
    let parts = name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    return name.utf8.count <= 255
      && parts.allSatisfy { part in
        !part.isEmpty
          && part.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || "+-_".utf8.contains($0) }
      }
  }
}
