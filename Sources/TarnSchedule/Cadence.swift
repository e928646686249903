package import TarnCore

/// The timing `every = "1h"`: one run per interval, at a phase of the mirror's own.
///
/// The phase depends only on the machine and the mirror's name. It survives restarts, and neither the mirrors of one machine nor
/// the machines with one mirror reach a server all at once. The times are fixed multiples in UTC, so that they do not drift,
/// however long runs take.
package struct Cadence: Hashable, Sendable {
  /// The allowed intervals in seconds. More frequent runs would be impolite, less frequent ones need a calendar.
  package static let bounds: ClosedRange<Int64> = 60...366 * 86_400

  let interval: Duration
  /// The time after each whole multiple of the interval since 1970; below the interval.
  let phase: Duration

  /// - Parameters:
  ///   - seconds: the interval.
  ///   - machine: the ID of this machine (`/etc/machine-id`).
  ///   - mirror: the mirror's name or folder.
  /// - Returns: `nil` for an interval outside `bounds`.
  package init?(every seconds: Int64, machine: some Collection<UInt8>, mirror: some Collection<UInt8>) {
    guard Self.bounds.contains(seconds) else { return nil }
    interval = .seconds(seconds)
    var hash = StableHash()
    hash.add(machine)
    hash.add(mirror)
    // The high half of the product is uniform below the interval.
    phase = .nanoseconds(Int64(hash.value.multipliedFullWidth(by: interval.nanoseconds.magnitude).high))
  }

  /// The seconds between two runs.
  package var seconds: Int64 { interval.components.seconds }

  /// Returns the first time of the series after `moment`; the end of all time when there is none.
  package func next(after moment: Timestamp) -> Timestamp {
    let step = floorQuotient(moment.nanoseconds, interval.nanoseconds)
    let start = Timestamp(nanoseconds: step * interval.nanoseconds) + phase
    return start > moment ? start : start + interval
  }
}

/// A hash of 64 bits that is the same in every run and every version. It is FNV-1a over the parts with their lengths, then the last
/// step of MurmurHash3, since FNV alone leaves the high bits of short texts alike. Not for secrets.
package struct StableHash: Sendable {
  private var state: UInt64 = 0xCBF2_9CE4_8422_2325

  package init() {}

  package mutating func add(_ part: some Collection<UInt8>) {
    var length = UInt64(part.count)
    for _ in 0..<8 {
      add(UInt8(truncatingIfNeeded: length))
      length >>= 8
    }
    for byte in part { add(byte) }
  }

  private mutating func add(_ byte: UInt8) {
    state = (state ^ UInt64(byte)) &* 0x100_0000_01B3
  }

  package var value: UInt64 {
    var word = state
    word = (word ^ (word >> 33)) &* 0xFF51_AFD7_ED55_8CCD
    word = (word ^ (word >> 33)) &* 0xC4CE_B9FE_1A85_EC53
    return word ^ (word >> 33)
  }
}
