import CurlShim
import Glibc

/// A libcurl easy handle with the data that must outlive its transfer. Reused from hop to hop; network thread only.
final class EasyHandle {
  let easy: UnsafeMutableRawPointer
  private let guards: FloodGuard
  private let errorBuffer: UnsafeMutablePointer<CChar>
  private var headers: UnsafeMutablePointer<curl_slist>?
  /// The present setup, when the last transfer left it unchanged.
  private var setup: HopSetup?
  /// Transfers since the setup.
  private var uses = 0
  /// The most transfers with one setup. libcurl counts how often a handle's request is resent, gives up at the sixth, and resets
  /// the count only with the handle.
  private static let mostUses = 32

  /// - Returns: `nil` when there is no memory.
  init?(_ guards: FloodGuard) {
    self.guards = guards
    guard let easy = curl_easy_init() else { return nil }
    self.easy = easy
    errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
    errorBuffer.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
  }

  deinit {
    curl_easy_cleanup(easy)
    curl_slist_free_all(headers)
    errorBuffer.deallocate()
  }

  /// Sets up the next hop when it differs from the last one only by its URL: thirty options stay as they are.
  ///
  /// - Parameter hop: the hop that the callbacks report to; must live until the transfer is removed.
  /// - Returns: false when the handle was set up for something else, or its last transfer failed.
  func prepareAgain(_ setup: HopSetup, url: String, hop: Hop) -> Bool {
    guard self.setup == setup, uses < Self.mostUses else { return false }
    uses += 1
    errorBuffer[0] = 0
    return tarn_curl_set_text(easy, CURLOPT_URL, url) == CURLE_OK && setCallbacks(hop) == CURLE_OK
  }

  /// Forces a new setup, after a transfer that failed or had to connect.
  func forgetSetup() {
    setup = nil
  }

  /// Forgets the last hop and sets up the next one.
  ///
  /// - Parameters:
  ///   - setup: the facts that determine `options` and `lines`, except for the URL; `nil` where they contain more.
  ///   - hop: the hop that the callbacks report to; must live until the transfer is removed.
  func prepare(_ options: [CurlOption], headers lines: [String], setup: HopSetup?, hop: Hop) -> CURLcode {
    self.setup = nil
    curl_easy_reset(easy)
    curl_slist_free_all(headers)
    headers = nil
    errorBuffer[0] = 0
    for line in lines {
      guard let longer = curl_slist_append(headers, line) else { return CURLE_OUT_OF_MEMORY }
      headers = longer
    }
    for option in options {
      let code = option.apply(to: easy)
      guard code == CURLE_OK else { return code }
    }
    let code = tarn_curl_set_headers(easy, headers)
    guard code == CURLE_OK else { return code }
    tarn_curl_set_error_buffer(easy, errorBuffer)
    self.setup = setup
    uses = 0
    return setCallbacks(hop)
  }

  private func setCallbacks(_ hop: Hop) -> CURLcode {
    tarn_curl_set_callbacks(
      easy, receiveHeader, receiveBody, openSocket, Unmanaged.passUnretained(hop).toOpaque(), closeSocket,
      Unmanaged.passUnretained(guards).toOpaque())
  }

  /// Sets an option of a running transfer, between two calls of libcurl.
  func apply(_ option: CurlOption) {
    // This fails only for options that this libcurl does not know, and `prepare` has set it before.
    _ = option.apply(to: easy)
  }

  /// libcurl's message about the last failure, not escaped.
  var detail: String { String(cString: errorBuffer) }

  /// True when anything came since the request was sent.
  var hasHeard: Bool {
    var microseconds = 0
    tarn_curl_get_long(easy, CURLINFO_STARTTRANSFER_TIME_T, &microseconds)
    return microseconds > 0
  }

  var errno: Int {
    var value = 0
    tarn_curl_get_long(easy, CURLINFO_OS_ERRNO, &value)
    return value
  }

  /// Continues after a callback that paused. Calls the body callback at once with the bytes held back.
  func unpause() -> CURLcode {
    curl_easy_pause(easy, CURLPAUSE_CONT)
  }
}

// The callbacks. libcurl calls them on the network thread, inside perform or pause, with the hop that
// `prepare` set; TransferLoop holds that hop until the transfer is removed.

private func receiveHeader(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  guard let context else { return 0 }
  let hop = Unmanaged<Hop>.fromOpaque(context).takeUnretainedValue()
  return hop.takeHeader(UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
}

private func receiveBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  guard let context else { return 0 }
  let hop = Unmanaged<Hop>.fromOpaque(context).takeUnretainedValue()
  switch hop.takeBody(UnsafeRawBufferPointer(start: bytes, count: size * count)) {
  case .goOn: return size * count
  case .pause: return Int(CURL_WRITEFUNC_PAUSE)
  case .stop: return 0
  }
}

private func openSocket(
  _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype,
  _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
  guard let context, let address, let target = tarn_curl_address(address) else { return -1 }
  let hop = Unmanaged<Hop>.fromOpaque(context).takeUnretainedValue()
  return hop.openSocket(to: target, address.pointee)
}

/// Closes a socket. Connections are closed later than the transfer that made them, but before their multi handle, which keeps the
/// guard alive.
private func closeSocket(_ context: UnsafeMutableRawPointer?, _ socket: curl_socket_t) -> Int32 {
  guard let context else { return close(socket) }
  return Unmanaged<FloodGuard>.fromOpaque(context).takeUnretainedValue().close(socket)
}
