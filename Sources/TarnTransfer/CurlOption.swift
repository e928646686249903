import CurlShim
import TarnCore

/// The limits that no setting changes.
enum CurlLimits {
  /// The most body bytes per callback.
  static let buffer = 256 << 10
  /// The most header bytes of one hop, including informational responses and trailers.
  static let headerBytes = 300 << 10
  static let headerLines = 5000
  /// libcurl's own limit of one header line (CURL_MAX_HTTP_HEADER).
  static let headerLine = 100 << 10
  /// The most bytes of an unwanted body that are read to keep its connection. A longer body costs the connection.
  static let drained: UInt64 = 64 << 10
  /// The most unread bytes that the kernel holds of a near peer's body. They are lost when the process is killed, and are then
  /// fetched twice. For distant peers so small a buffer would cost speed.
  static let receiveBuffer: Int32 = 256 << 10
  /// The round-trip time below which a peer is near, in microseconds.
  static let nearestRoundTrip = 300
  /// The most seconds of a Retry-After: 7 days.
  static let retryAfter: Int64 = 7 * 86_400
}

/// A rate that several clients share, and the most transfers that share it.
struct SharedPace: Equatable, Sendable {
  /// The rate in bytes per second.
  var rate: UInt64
  var places: Int
}

/// A libcurl option with its value and reason. Every option that Tarn sets is in this file.
///
/// Left at their defaults on purpose: FAILONERROR (a status is a result), ACCEPT_ENCODING and TRANSFER_ENCODING (no decoding:
/// bodies are stored as sent, feeds are decoded under TarnFeeds' bounds), RESUME_FROM and RANGE (libcurl's own check ends a resumed
/// transfer that answers 200; Tarn sends the header itself and lets the receiver decide), MAX_RECV_SPEED (RateBucket), SHARE (one
/// multi handle is one domain of credentials, see DownloaderPool), HSTS and ALTSVC (a mirror goes where its feed says).
struct CurlOption {
  enum Value: Equatable {
    case long(Int)
    /// A text; `nil` for the option's default.
    case text(String?)
  }

  let option: CURLoption
  let value: Value
  let reason: String

  init(_ option: CURLoption, _ value: Value, _ reason: String) {
    self.option = option
    self.value = value
    self.reason = reason
  }

  func apply(to easy: UnsafeMutableRawPointer) -> CURLcode {
    switch value {
    case .long(let number): tarn_curl_set_long(easy, option, number)
    case .text(let text): tarn_curl_set_text(easy, option, text)
    }
  }
}

/// The facts that determine all options and headers of a plain request, except its URL. A plain request has no condition, range,
/// cap or secrets that libcurl looks up by the host.
struct HopSetup: Equatable {
  private let client: ClientID
  private let options: UInt64
  private let isTrusted: Bool
  private let isSecure: Bool
  private let encoding: DownloadRequest.Encoding

  /// Returns `nil` where there is more to set.
  init?(_ exchange: Exchange, isTrusted: Bool) {
    let request = exchange.request
    let client = exchange.client
    // Redirect targets are judged anew: see `hop`.
    if exchange.isLedAway, client.settings.allowsAskedPrivateAddresses { return nil }
    guard request.offset == 0, exchange.cookies.isEmpty, request.accept == nil, request.ifNoneMatch == nil,
      request.ifModifiedSince == nil, request.headers.isEmpty, request.method == nil,
      request.idleTimeout == nil, client.settings.cookieFile == nil, client.settings.netrcFile == nil,
      !client.settings.keepsCookies, client.settings.trust.isEmpty
    else { return nil }
    self.client = client.id
    options = client.optionsNumber
    self.isTrusted = isTrusted
    isSecure = exchange.url.origin.scheme.isSecure
    encoding = request.encoding
  }
}

extension CurlOption {
  /// Returns the options that are the same for every exchange of a client, as long as the rates stay as they are.
  ///
  /// - Parameter shared: the rate of all clients together; `nil` for none.
  static func fixed(_ settings: NetworkSettings, shared: SharedPace? = nil) -> [CurlOption] {
    safety(settings) + patience(settings) + connection(settings)
      + [lowSpeed(settings, shared), buffer(settings, shared)]
  }

  /// Returns the low-speed limit, which is also set on running transfers when a rate changes.
  static func lowSpeed(_ settings: NetworkSettings, _ shared: SharedPace?) -> CurlOption {
    // Under a rate limit a fair share may be less than the low-speed limit. Half of the share still counts as alive.
    let own = settings.rate.map { $0 / UInt64(max(1, settings.connections)) / 2 } ?? .max
    let common = shared.map { $0.rate / UInt64(max(1, $0.places)) / 2 } ?? .max
    return .init(
      CURLOPT_LOW_SPEED_LIMIT, .long(Int(clamping: min(settings.lowSpeedLimit, own, common))), "drips end")
  }

  private static func buffer(_ settings: NetworkSettings, _ shared: SharedPace?) -> CurlOption {
    .init(
      CURLOPT_BUFFERSIZE, .long(RateBucket.bufferSize(rates: [settings.rate, shared?.rate])),
      "fewer callbacks; small under a rate limit so that the flow is even")
  }

  private static func safety(_ settings: NetworkSettings) -> [CurlOption] {
    var options: [CurlOption] = [
      .init(
        CURLOPT_PROTOCOLS_STR, .text("http,https"), "nothing else is HTTP; file: is read by FileExchange"),
      .init(CURLOPT_REDIR_PROTOCOLS_STR, .text("http,https"), "in case libcurl ever follows by itself"),
      .init(CURLOPT_FOLLOWLOCATION, .long(0), "each hop is judged by RedirectRule and gets its own headers"),
      .init(CURLOPT_UNRESTRICTED_AUTH, .long(0), "credentials stay with their host"),
      .init(CURLOPT_DISALLOW_USERNAME_IN_URL, .long(1), "secrets come from files, not from feeds"),
      .init(CURLOPT_SSL_VERIFYPEER, .long(1), "never switched off"),
      .init(CURLOPT_SSL_VERIFYHOST, .long(2), "the certificate must name the host"),
      .init(CURLOPT_SSLVERSION, .long(Int(CURL_SSLVERSION_TLSv1_2)), "older versions are broken"),
      .init(CURLOPT_HTTP09_ALLOWED, .long(0), "a response without a head proves nothing"),
      .init(CURLOPT_PROXY, .text(settings.proxy ?? ""), "explicit: an empty text keeps the environment out"),
      .init(CURLOPT_NOPROXY, .text(""), "the same: no exceptions from the environment"),
      .init(CURLOPT_SUPPRESS_CONNECT_HEADERS, .long(1), "a proxy's CONNECT answer is not the response"),
      .init(CURLOPT_PATH_AS_IS, .long(0), "dot segments are squashed as RFC 3986 says"),
    ]
    if let file = settings.caFile {
      options.append(.init(CURLOPT_CAINFO, .text(file), "the user's authorities in place of the system's"))
    }
    return options
  }

  private static func patience(_ settings: NetworkSettings) -> [CurlOption] {
    [
      .init(CURLOPT_NOSIGNAL, .long(1), "signals belong to SignalWatch"),
      .init(
        CURLOPT_CONNECTTIMEOUT_MS, .long(settings.connectTimeout * 1000), "covers name, TCP, proxy and TLS"),
      .init(CURLOPT_LOW_SPEED_TIME, .long(settings.lowSpeedTime), "also the longest wait for a head"),
      .init(CURLOPT_TCP_KEEPALIVE, .long(1), "a dead peer shows while a transfer is paused"),
    ]
  }

  private static func connection(_ settings: NetworkSettings) -> [CurlOption] {
    [
      .init(CURLOPT_HTTP_VERSION, .long(Int(CURL_HTTP_VERSION_2TLS)), "HTTP/2 by ALPN, else 1.1"),
      .init(CURLOPT_MAXAGE_CONN, .long(60), "an idle connection older than this is not trusted"),
      .init(CURLOPT_MAXLIFETIME_CONN, .long(600), "changes of DNS are seen"),
      .init(CURLOPT_USERAGENT, .text(settings.userAgent ?? "tarn"), "operators can tell who asks"),
    ]
  }

  /// Returns the options of one hop of an exchange.
  ///
  /// - Parameters:
  ///   - isTrusted: true when the hop goes to the feed's own origin, the only one that gets the user's headers.
  ///   - isLedAway: true when a redirect led to another origin than the requested one.
  ///   - secondsLeft: the rest of the exchange's time, at least 1; `nil` for no limit.
  ///   - cookies: the cookies that earlier hops of the chain set for this one.
  static func hop(
    _ url: SourceURL, settings: NetworkSettings, isTrusted: Bool, isLedAway: Bool = false, secondsLeft: Int?,
    cookies: String? = nil
  ) -> [CurlOption] {
    var options: [CurlOption] = [
      .init(CURLOPT_URL, .text(url.text), "as parsed and checked by SourceURL"),
      // Over plain HTTP, libcurl 7.88 wakes waiting transfers only when the first one is over.
      .init(
        CURLOPT_PIPEWAIT, .long(url.origin.scheme.isSecure ? 1 : 0),
        "wait for a connection that may multiplex, where ALPN can say so"),
    ]
    if isLedAway, settings.allowsAskedPrivateAddresses {
      options.append(
        .init(CURLOPT_FRESH_CONNECT, .long(1), "another request may have opened one to a private address"))
    }
    if let seconds = secondsLeft {
      options.append(.init(CURLOPT_TIMEOUT_MS, .long(seconds * 1000), "the cap holds over all hops"))
    }
    if let cookies {
      options.append(.init(CURLOPT_COOKIE, .text(cookies), "beside those of the user's file"))
    }
    if let file = settings.cookieFile {
      options.append(.init(CURLOPT_COOKIELIST, .text("ALL"), "handles are reused: forget what servers set"))
      if !isLedAway, url.origin.scheme.isSecure || isTrusted {
        options.append(
          .init(
            CURLOPT_COOKIEFILE, .text(file),
            "cookies that the user gave; over plain http only to the feed's own origin, as ports are no part of a domain"
          ))
      }
    }
    if let file = settings.netrcFile, url.origin.scheme.isSecure || isTrusted {
      options.append(
        .init(CURLOPT_NETRC, .long(Int(CURL_NETRC_REQUIRED.rawValue)), "names only from the file"))
      options.append(.init(CURLOPT_NETRC_FILE, .text(file), "never ~/.netrc by itself"))
      options.append(
        .init(CURLOPT_HTTPAUTH, .long(1), "Basic; over plain http only to the feed's own origin"))
    }
    return options
  }

  /// Returns the options that are particular to a single request or host.
  ///
  /// - Parameter isGet: true when a redirect has changed the method to GET.
  static func own(
    _ request: DownloadRequest, of url: SourceURL, isGet: Bool, _ settings: NetworkSettings
  ) -> [CurlOption] {
    var options: [CurlOption] = []
    if let seconds = request.idleTimeout {
      options.append(.init(CURLOPT_LOW_SPEED_TIME, .long(seconds), "the task's own patience"))
    }
    if let trust = settings.trust.first(where: { HostName($0.host)?.inURL == url.origin.host }) {
      if let file = trust.ca {
        options.append(.init(CURLOPT_CAINFO, .text(file), "this host's own authorities"))
      }
      if let pins = trust.pins {
        options.append(
          .init(
            CURLOPT_PINNEDPUBLICKEY, .text(pins.joined(separator: ";")), "this host has one of these keys"))
      }
    }
    if let method = request.method, method != "GET", !isGet {
      options += [
        .init(CURLOPT_COPYPOSTFIELDS, .text(request.body ?? ""), "what the method is given"),
        .init(CURLOPT_CUSTOMREQUEST, .text(method), "as the program asked"),
        .init(CURLOPT_FRESH_CONNECT, .long(1), "over a used connection libcurl may send it twice"),
      ]
    }
    return options
  }

  /// Returns the options of the multi handle.
  static func multi(_ places: PlaceLimits) -> [(CURLMoption, Int, reason: String)] {
    [
      (
        CURLMOPT_MAX_TOTAL_CONNECTIONS, places.total,
        "the budget keeps places; this holds for the streams of hosts that allow few, too"
      ),
      (CURLMOPT_MAX_HOST_CONNECTIONS, places.perHost, "the same"),
      (CURLMOPT_MAXCONNECTS, places.total, "idle connections kept"),
      (CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX), "HTTP/2 streams share a connection"),
      (CURLMOPT_MAX_CONCURRENT_STREAMS, StreamLimit.last, "StreamLimit and the server say how many"),
    ]
  }

  /// Returns the request header lines of one hop.
  ///
  /// - Parameters:
  ///   - isTrusted: true when it goes to the origin that gets the headers of the settings.
  ///   - isLedAway: true when it goes to another origin than that of the request's URL.
  ///   - cookies: as for `hop`. A `Cookie` line of the user's keeps libcurl from sending them.
  static func headers(
    _ request: DownloadRequest, isTrusted: Bool, isLedAway: Bool = false, settings: NetworkSettings,
    cookies: String? = nil
  ) -> [String] {
    // The lines of a request take the place of those of the settings, and both that of Tarn's own `Accept`. libcurl leaves out its
    // `User-Agent` where there is a line of that name.
    let common = isTrusted ? settings.headers : []
    let own = HeaderLines.merged(isLedAway ? [] : request.headers, over: common).filter(HeaderValue.isSafe)
    var lines: [String] = []
    if !own.contains(where: { HeaderLines.name(of: $0) == "accept" }) {
      lines.append("Accept: \(request.accept ?? "*/*")")
    }
    // Only feeds can use encoded bytes. Asking for identity keeps proxies from encoding files.
    lines.append("Accept-Encoding: \(request.encoding == .gzipAsked ? "gzip" : "identity")")
    if request.offset > 0 { lines.append("Range: bytes=\(request.offset)-") }
    if request.offset > 0, let validator = request.ifRange { lines.append("If-Range: \(validator)") }
    if let tag = request.ifNoneMatch { lines.append("If-None-Match: \(tag)") }
    if let date = request.ifModifiedSince { lines.append("If-Modified-Since: \(date)") }
    // Removes the headers that libcurl adds for a body: its author says what it is.
    if request.method != nil { lines += ["Expect:", "Content-Type:"] }
    lines += own.map { line in
      line.lowercased().hasPrefix("cookie:") ? line + (cookies.map { "; \($0)" } ?? "") : line
    }
    return lines
  }
}
