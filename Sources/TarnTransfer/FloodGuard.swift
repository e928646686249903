import CurlShim
import Glibc
import TarnCore
import TarnRuntime

/// Ends connections whose bytes hold almost no content: empty frames, chunk extensions, TLS records of no length.
///
/// libcurl keeps reading inside one call as long as there is something to read. A server that sends such bytes without a pause
/// keeps the network thread in that call, and libcurl does not check its time limits. So a separate thread looks at the sockets
/// while hops run. It compares the bytes read from them, as the kernel counts them, with those given to the callbacks. It shuts
/// down the sockets of a route that reads too much without content, and the call ends with an error.
final class FloodGuard: @unchecked Sendable {
  // Safe because the state is behind its lock, and the thread is set before anything else uses this object.

  /// The most bytes that may be read without content. Bytes that wait in libcurl while transfers pause count for a moment: ten MiB
  /// per stream in newer versions.
  static let mostWasted: UInt64 = 64 << 20
  /// The number of read bytes that each byte of content justifies: records and frames of one byte cost forty.
  static let worth: UInt64 = 64
  private static let interval = Duration.milliseconds(250)

  private struct Line {
    let route: Route
    /// The bytes read at the last look.
    var read: UInt64 = 0
  }

  private struct State {
    var lines: [curl_socket_t: Line] = [:]
    /// The content bytes since the last look.
    var content: [Route: UInt64] = [:]
    var wasted: [Route: UInt64] = [:]
    /// The number of times that a route's connections were ended.
    var floods: [Route: Int] = [:]
    var hops = 0
    var isClosed = false
  }

  private let state = LockedCondition(State())
  private var thread: WorkerThread?

  /// - Throws: when no thread can be made.
  init() throws(ThreadFailure) {
    thread = try WorkerThread.start(name: "tarn-net-guard", stackSize: 128 << 10) { [state] in
      Self.run(state)
    }
  }

  /// Ends the guard. The sockets may outlive it, but are not watched any more.
  func close() {
    state.change { $0.isClosed = true }
    thread?.join()
  }

  // MARK: Network thread

  func began() {
    if state.withLock({
      $0.hops += 1; return $0.hops == 1
    }) {
      state.change { _ in }
    }
  }

  func ended() { state.withLock { $0.hops -= 1 } }

  func opened(_ socket: curl_socket_t, to route: Route) {
    state.withLock { $0.lines[socket] = Line(route: route) }
  }

  /// Closes a socket that libcurl has finished with. This happens under the lock, so that its number is not reused while it is
  /// looked at.
  func close(_ socket: curl_socket_t) -> Int32 {
    state.withLock { state in
      let route = state.lines.removeValue(forKey: socket)?.route
      if let route, !state.lines.values.contains(where: { $0.route == route }) { state.wasted[route] = nil }
      return Glibc.close(socket)
    }
  }

  /// Counts header or body bytes that a callback received.
  func took(_ bytes: Int, from route: Route) {
    state.withLock { $0.content[route, default: 0] &+= UInt64(bytes) }
  }

  func floods(of route: Route) -> Int { state.withLock { $0.floods[route] ?? 0 } }

  // MARK: Its own thread

  private static func run(_ state: LockedCondition<State>) {
    while true {
      let isOpen = state.wait { state -> Bool? in
        state.isClosed ? false : state.hops > 0 ? true : nil
      }
      guard isOpen else { return }
      _ = state.wait(atMost: interval) { $0.isClosed ? true : nil }
      state.withLock { look(&$0) }
    }
  }

  private static func look(_ state: inout State) {
    var spent: [Route: UInt64] = [:]
    for (socket, line) in state.lines {
      guard let read = bytesRead(socket), read > line.read else { continue }
      state.lines[socket]?.read = read
      spent[line.route, default: 0] += read - line.read
    }
    for (route, bytes) in spent {
      let paid = min(state.content[route] ?? 0, .max / worth) * worth
      let wasted = (state.wasted[route] ?? 0) + bytes
      state.wasted[route] = wasted > paid ? wasted - paid : nil
    }
    state.content.removeAll(keepingCapacity: true)
    for (route, wasted) in state.wasted where wasted > mostWasted {
      state.wasted[route] = nil
      state.floods[route, default: 0] += 1
      for (socket, line) in state.lines where line.route == route { shutdown(socket, Int32(SHUT_RDWR)) }
    }
  }

  /// Returns the bytes read from a socket; `nil` where the kernel does not say.
  private static func bytesRead(_ socket: curl_socket_t) -> UInt64? {
    let count = tarn_curl_bytes_read(socket)
    return count < 0 ? nil : UInt64(count)
  }
}

extension Route {
  /// Makes the route that shares connections: a host, or for plain http a proxy of that kind.
  init(sharedBy origin: Origin, proxy: String?) {
    let isProxys = origin.scheme == .http && proxy?.lowercased().hasPrefix("http") ?? false
    self.init(origin: isProxys ? Origin(scheme: .http, host: "", port: "") : origin, proxy: proxy)
  }
}
