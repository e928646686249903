/// Asks a pass to end: what is in flight is kept for a resume. Any thread.
package final class StopFlag: Sendable {
  private struct State {
    var isSet = false
    var wakers: [@Sendable () -> Void] = []
  }
  private let state = Locked(State())

  package init() {}

  package var isSet: Bool { state.withLock { $0.isSet } }

  package func set() {
    let wakers = state.withLock { state in
      state.isSet = true
      return state.wakers
    }
    for wake in wakers { wake() }
  }

  /// Calls `wake` once the flag is set; at once when it is.
  package func onSet(_ wake: @escaping @Sendable () -> Void) {
    let isSet = state.withLock { state in
      state.wakers.append(wake)
      return state.isSet
    }
    if isSet { wake() }
  }
}
