/// Asks a pass to end: what is in flight is kept for a resume. Any thread.
package final class StopFlag: Sendable {
  private struct State {
    var isSet = false
    var wakers: [ObjectIdentifier: @Sendable () -> Void] = [:]
  }
  private let state = Locked(State())

  package init() {}

  package var isSet: Bool { state.withLock { $0.isSet } }

  package func set() {
    let wakers = state.withLock { state in
      state.isSet = true
      return Array(state.wakers.values)
    }
    for wake in wakers { wake() }
  }

  /// Calls `wake` once the flag is set; at once when it is.
  ///
  /// - Parameter whom: what `wake` wakes, and keeps alive; it has one, whoever asks again.
  package func onSet(waking whom: AnyObject, _ wake: @escaping @Sendable () -> Void) {
    let isSet = state.withLock { state in
      state.wakers[ObjectIdentifier(whom)] = wake
      return state.isSet
    }
    if isSet { wake() }
  }
}
