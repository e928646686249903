import Dispatch
package import Foundation

extension Process {
  /// Kills it when it has not ended five minutes from now, which the busiest machine does not need: a test fails then, rather than hang.
  ///
  /// By SIGKILL: the threads of tests block other signals, and a child inherits that.
  package func killWhenLate() {
    DispatchQueue.global().asyncAfter(deadline: .now() + 300) { [weak self] in
      guard let self, self.isRunning else { return }
      kill(self.processIdentifier, SIGKILL)
    }
  }
}
