import TarnCore
import TarnRuntime

/// The waits before something that failed is tried again. Each wait is within a quarter of the given one, so that folders and
/// machines do not try in step.
enum WatchPace {
  /// Returns the wait for a folder that tarn-watch called blind, for the `attempt`th time in a row, from 0. `nil` when tarn-watch
  /// tries again itself, or when the next program is asked anew.
  static func again(_ code: WatchBlindness.Code, attempt: Int, random: any RandomSource) -> Duration? {
    switch code {
    case .overflow, .watcherDied, .watcherMissing: nil
    case .gone, .replaced, .unmounted, .unreadable: spread(.seconds(5), random)
    case .unsupported: spread(.seconds(600), random)
    case .watchLimit, .instanceLimit, .error:
      spread(.seconds(min(600, 60 << min(max(attempt, 0), 8))), random)
    }
  }

  /// Returns the wait before the program is started again, after it ended or could not be started `failures` times in a row, from
  /// 0; none the first time.
  static func restart(failures: Int, random: any RandomSource) -> Duration {
    guard failures > 0 else { return .zero }
    return spread(.seconds(min(300, 1 << min(failures - 1, 16))), random)
  }

  /// The longest silence of a working program, which gives a sign of life every five seconds. A longer one means that it hangs.
  static let longestSilence = Duration.seconds(20)

  /// The running time after which the program counts as working.
  static let goodRun = Duration.seconds(60)

  private static func spread(_ wait: Duration, _ random: any RandomSource) -> Duration {
    wait * (0.75 + 0.5 * random.unit())
  }
}
