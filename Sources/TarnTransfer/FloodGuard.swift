import CurlShim
import Glibc
import TarnCore
import TarnRuntime

/// Ends connections whose bytes hold next to no content: empty frames, chunk extensions, TLS records of no length.
///
/// libcurl reads on inside one call as long as there is something to read. A server that sends such bytes without a pause keeps
/// the network thread in that call, and no time limit of libcurl's comes to be looked at. So a thread of its own looks at the
/// sockets while hops run. It compares what was read from them, as the kernel counts it, with what the callbacks were given, and
/// shuts down those of a route that reads too much for nothing: that call then ends with an error.
final class FloodGuard: @unchecked Sendable {
  // Safe because the state is behind its lock, and the thread is set before anything else uses this object.

  /// Bytes that may be read for nothing. What waits in libcurl while transfers pause counts so for a moment: ten MiB a stream, in newer ones.
  static let mostWasted: UInt64 = 64 << 20
  /// Each byte of content pays for so many: records and frames of one byte cost forty.
  static let worth: UInt64 = 64
  private static let interval = Duration.milliseconds(250)

  private struct Line {
    let route: Route
    /// As of the last look.
    var read: UInt64 = 0
  }

  private struct State {
    var lines: [curl_socket_t: Line] = [:]
    /// Since the last look.
    var content: [Route: UInt64] = [:]
    var wasted: [Route: UInt64] = [:]
    /// How often a route's connections were ended.
    var floods: [Route: Int] = [:]
    var hops = 0
    var isClosed = false
  }

  private let state = LockedCondition(State())
  private var thread: WorkerThread?

  /// - Throws: when there is no thread to be had.
  init() throws(ThreadFailure) {
    thread = try WorkerThread.start(name: "tarn-net-guard", stackSize: 128 << 10) { [state] in
      Self.run(state)
    }
  }

  /// The sockets may outlive it; nobody looks at them any more.
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

  /// libcurl is done with the socket. Closes it, under the lock: its number is not another's while it is looked at.
  func close(_ socket: curl_socket_t) -> Int32 {
    state.withLock { state in
      let route = state.lines.removeValue(forKey: socket)?.route
      if let route, !state.lines.values.contains(where: { $0.route == route }) { state.wasted[route] = nil }
      return Glibc.close(socket)
    }
  }

  /// Header or body bytes came to a callback.
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

  /// nil where the kernel does not say.
  private static func bytesRead(_ socket: curl_socket_t) -> UInt64? {
    let count = tarn_curl_bytes_read(socket)
    return count < 0 ? nil : UInt64(count)
  }
}

extension Route {
  /// What connections are shared by: a host, or for plain http a proxy of that kind.
  init(sharedBy origin: Origin, proxy: String?) {
    let isProxys = origin.scheme == .http && proxy?.lowercased().hasPrefix("http") ?? false
    self.init(origin: isProxys ? Origin(scheme: .http, host: "", port: "") : origin, proxy: proxy)
  }
}
