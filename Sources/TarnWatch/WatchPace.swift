import TarnCore
import TarnRuntime

/// When something that does not work is tried again. All waits are nanoseconds, within a quarter around the named one,
/// so that folders and machines do not try in step.
enum WatchPace {
  private static let second: UInt64 = 1_000_000_000

  /// A folder that tarn-watch called blind, for the `attempt`th time in a row, from 0; nil when tarn-watch tries by
  /// itself, or when it is asked anew with the next program.
  static func again(_ code: WatchBlindness.Code, attempt: Int, random: any RandomSource) -> UInt64? {
    switch code {
    case .overflow, .watcherDied, .watcherMissing: nil
    case .gone, .replaced, .unmounted, .unreadable: spread(5 * second, random)
    case .unsupported: spread(600 * second, random)
    case .watchLimit, .instanceLimit, .error:
      spread(min(600, 60 << UInt64(min(max(attempt, 0), 8))) * second, random)
    }
  }

  /// The program ended, or could not be started, after so many times in a row, from 0: at once the first time.
  static func restart(failures: Int, random: any RandomSource) -> UInt64 {
    guard failures > 0 else { return 0 }
    return spread(min(300, 1 << UInt64(min(failures - 1, 16))) * second, random)
  }

  /// A program that says nothing for so long, though it gives a sign of life every five seconds, hangs.
  static let longestSilence: UInt64 = 20 * second

  /// A program that ran for so long counts as one that works.
  static let goodRun: UInt64 = 60 * second

  private static func spread(_ wait: UInt64, _ random: any RandomSource) -> UInt64 {
    UInt64(Double(wait) * (0.75 + 0.5 * random.unit()))
  }
}
