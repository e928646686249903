import TarnConfig
import TarnRuntime
import TarnTransfer

/// Changes the rate of a running pass, before its downloader is made and while it works. Callable on any
/// thread.
package final class RateControl: Sendable {
  private struct State {
    var rate: UInt64?
    var downloader: CurlDownloader?
  }
  private let state: Locked<State>

  /// - Parameter rate: the bytes per second; `nil` for no limit.
  init(_ rate: UInt64?) {
    state = Locked(State(rate: rate))
  }

  var rate: UInt64? { state.withLock { $0.rate } }

  func set(_ rate: UInt64?) {
    let downloader = state.withLock { state -> CurlDownloader? in
      guard state.rate != rate else { return nil }
      state.rate = rate
      return state.downloader
    }
    downloader?.setRate(rate)
  }

  func attach(_ downloader: CurlDownloader) {
    let rate = state.withLock { state in
      state.downloader = downloader
      return state.rate
    }
    downloader.setRate(rate)
  }
}

extension PlaceLimits {
  init(_ limits: LimitSettings) {
    self.init(total: limits.connections, perHost: limits.connectionsPerHost)
  }
}
