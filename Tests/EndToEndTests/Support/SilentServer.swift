import Foundation

/// A port of the loopback that takes connections, and never answers.
final class SilentServer {
  let port: UInt16
  private let listener: Int32

  init() throws {
    (listener, port) = try Loopback.makeListener()
  }

  deinit { close(listener) }
}
