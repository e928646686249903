package import TarnRuntime

/// Nobody opened the gate that a test waited at.
package struct ClosedGate: Error {
  package init() {}
}

extension Gate {
  /// Blocks until the gate is open, for as long as the busiest machine may take.
  ///
  /// - Throws: `ClosedGate` after five minutes: a test fails then, rather than hang.
  package func waitOrThrow() throws(ClosedGate) {
    if !wait(atMost: .seconds(300)) { throw ClosedGate() }
  }
}
