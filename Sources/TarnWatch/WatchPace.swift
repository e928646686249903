import TarnCore
import TarnRuntime

/// When something that does not work is tried again. All waits are within a quarter around the named one,
/// so that folders and machines do not try in step.
enum WatchPace {
  /// A folder that tarn-watch called blind, for the `attempt`th time in a row, from 0; nil when tarn-watch tries by
  /// itself, or when it is asked anew with the next program.
  static func again(_ code: WatchBlindness.Code, attempt: Int, random: any RandomSource) -> Duration? {
    switch code {
    case .overflow, .watcherDied, .watcherMissing: nil
    case .gone, .replaced, .unmounted, .unreadable: spread(.seconds(5), random)
    case .unsupported: spread(.seconds(600), random)
    case .watchLimit, .instanceLimit, .error:
      spread(.seconds(min(600, 60 << min(max(attempt, 0), 8))), random)
    }
  }

  /// The program ended, or could not be started, after so many times in a row, from 0: at once the first time.
  static func restart(failures: Int, random: any RandomSource) -> Duration {
    guard failures > 0 else { return .zero }
    return spread(.seconds(min(300, 1 << min(failures - 1, 16))), random)
  }

  /// A program that says nothing for so long, though it gives a sign of life every five seconds, hangs.
  static let longestSilence = Duration.seconds(20)

  /// A program that ran for so long counts as one that works.
  static let goodRun = Duration.seconds(60)

  private static func spread(_ wait: Duration, _ random: any RandomSource) -> Duration {
    wait * (0.75 + 0.5 * random.unit())
  }
}
