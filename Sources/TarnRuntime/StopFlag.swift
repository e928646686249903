/// Asks a pass to end; running transfers are kept for a resume. Any thread.
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

  /// Calls `wake` when the flag is set, or at once when it is set already.
  ///
  /// - Parameter whom: the object that `wake` wakes and keeps alive. It has one `wake`; a later one replaces it.
  package func onSet(waking whom: AnyObject, _ wake: @escaping @Sendable () -> Void) {
    let isSet = state.withLock { state in
      state.wakers[ObjectIdentifier(whom)] = wake
      return state.isSet
    }
    if isSet { wake() }
  }
}
