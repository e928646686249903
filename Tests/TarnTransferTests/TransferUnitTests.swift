import CurlShim
import Glibc
import TarnCore
import TestSupport
import Testing

@testable import TarnTransfer

@Suite struct TransferUnitTests {
  // MARK: Addresses

  @Test(arguments: [
    "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.9.9.9", "169.254.169.254",
    "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.168.1.1", "198.18.0.1", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "::", "::1", "::7f00:1", "::ffff:8.8.8.8", "fc00::1", "fdff::1", "fe80::1", "fec0::1",
    "ff02::1", "2002:7f00:1::", "2001:0:1::", "64:ff9b::10.0.0.1",
  ]) func privateAddress(text: String) {
    #expect(isPrivate(text) == true)
  }

  @Test(arguments: [
    "1.1.1.1", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1",
    "192.169.0.1", "198.20.0.1", "223.255.255.255", "2001:db8::1", "2606:4700::1111", "2002:808:808::",
    "64:ff9b::8.8.8.8",
  ]) func publicAddress(text: String) {
    #expect(isPrivate(text) == false)
  }

  /// A proxy looks names up itself: this machine's resolver is told none, and a pass does not wait for it.
  @Test func behindAProxyNoHostIsLookedUp() throws {
    #expect(try FeedHost(url: "http://localhost/feed", proxy: nil).isPrivate)
    #expect(try !FeedHost(url: "http://localhost/feed", proxy: "socks5h://p:1").isPrivate)
    #expect(throws: DownloadFailure.self) { try FeedHost(url: "http://user@localhost/", proxy: "http://p:1") }
  }

  private func isPrivate(_ text: String) -> Bool? {
    var v4 = [UInt8](repeating: 0, count: 4)
    if inet_pton(AF_INET, text, &v4) == 1 { return AddressRule.isPrivate(v4: v4) }
    var v6 = [UInt8](repeating: 0, count: 16)
    return inet_pton(AF_INET6, text, &v6) == 1 ? AddressRule.isPrivate(v6: v6) : nil
  }

  // MARK: Header values

  @Test(arguments: [
    ("bytes 0-9/10", ContentRange(first: 0, last: 9, total: 10)),
    ("Bytes 5-9/*", ContentRange(first: 5, last: 9, total: nil)),
    ("bytes */10", ContentRange(first: nil, last: nil, total: 10)),
  ]) func contentRange(text: String, expected: ContentRange) {
    #expect(HeaderValue.contentRange(text) == expected)
  }

  @Test(arguments: [
    "", "bytes", "bytes 0-9", "bytes=0-9/10", "bytes 9-0/10", "bytes 0-10/10", "bytes -9/10", "bytes 0-/10",
    "bytes +0-9/10", "bytes 0-9/10/11", "bytes */*", "lines 0-9/10", "bytes 0-9/99999999999999999999999",
    "bytes  0-9/10", "bytes 0-9, 20-29/40",
  ]) func badContentRange(text: String) {
    #expect(HeaderValue.contentRange(text) == nil)
  }

  @Test func retryAfter() {
    let now = Timestamp(nanoseconds: 1_000_000_000_000_000_000)
    #expect(HeaderValue.retryAfter("0", date: nil, now: now) == 0)
    #expect(HeaderValue.retryAfter("99999999999999999999999999", date: nil, now: now) == 604_800)
    #expect(HeaderValue.retryAfter("-1", date: nil, now: now) == nil)
    // 1,000,000,000 s is Sun, 09 Sep 2001 01:46:40 GMT.
    #expect(HeaderValue.retryAfter("Sun, 09 Sep 2001 01:47:40 GMT", date: nil, now: now) == 60)
    let sent = Timestamp(seconds: 1_000_000_050)
    #expect(
      HeaderValue.retryAfter("Sun, 09 Sep 2001 01:47:40 GMT", date: sent, now: Timestamp(nanoseconds: 0))
        == 10)
  }

  @Test func headOfTheLastResponseCounts() {
    var reader = HeadReader(url: "u")
    let lines = [
      "HTTP/1.1 103 Early", "ETag: \"early\"", "", "HTTP/1.1 200 OK", "Content-Length:  5 ", "X: y",
      " folded: 1",
      "LAST-MODIFIED: Sun, 09 Sep 2001 01:46:40 GMT", "",
    ]
    let steps = lines.map { line in
      Array("\(line)\r\n".utf8).withUnsafeBytes { reader.read($0, now: Timestamp(nanoseconds: 0)) }
    }
    #expect(steps.last == .complete)
    #expect(steps.dropLast().allSatisfy { $0 == .more })
    #expect(reader.head.status == 200)
    #expect(reader.head.etag == nil)
    #expect(reader.head.contentLength == 5)
    #expect(reader.head.modified == Timestamp(seconds: 1_000_000_000))
  }

  @Test func twoETagsAreNone() {
    var reader = HeadReader(url: "u")
    for line in ["HTTP/1.1 200 OK", "ETag: \"a\"", "ETag: \"b\""] {
      _ = Array("\(line)\r\n".utf8).withUnsafeBytes { reader.read($0, now: Timestamp(nanoseconds: 0)) }
    }
    #expect(reader.head.etag == nil)
  }

  // MARK: URLs

  @Test func originsAreCompared() throws {
    let one = try SourceURL("https://Example.org/a")
    #expect(one.origin == (try SourceURL("https://example.org:443/b#part")).origin)
    #expect(one.origin != (try SourceURL("http://example.org/a")).origin)
    #expect(one.origin != (try SourceURL("https://example.org:444/a")).origin)
    #expect(one.origin == (try SourceURL("https://example.org./a")).origin)
    #expect(try SourceURL("https://Example.org.:1/a").hostAndPort == "example.org.:1")
    #expect(try SourceURL("https://example.org.?b:.").hostAndPort == "example.org.:443")
    #expect(try SourceURL("https://[::1]/a.").hostAndPort == "[::1]:443")
    #expect(try SourceURL("http://[::ffff:127.0.0.1]/").origin == SourceURL("http://[::FFFF:7f00:1]/").origin)
    #expect(try one.resolving("//other.example/x").origin.host == "other.example")
    #expect(try one.resolving("b?c#d").text == "https://Example.org/b?c")
  }

  @Test(arguments: [
    ("https://h/a?b=1", true), ("https://H:443/a#c", true), ("https://h/a", true), ("https://h/a/", false),
    ("http://h/a", false), ("https://h:444/a", false), ("https://other/a", false), ("a", false),
  ]) func theQueryAloneMayDiffer(other: String, isSame: Bool) {
    #expect(URLOrigin.isSameButQuery("https://h/a?b=2", other) == isSame)
    #expect(!URLOrigin.isSameWithQuery("https://h/a?b=2", other))
    #expect(URLOrigin.isSameWithQuery(other, other) == (other != "a"))
  }

  // MARK: Rate

  @Test func theBucketKeepsItsRate() {
    var bucket = RateBucket(rate: 1_000_000, now: 0)
    var taken = 0
    var now = Instant()
    while now < .at(10) {
      bucket.refill(now: now)
      while bucket.isOpen {
        bucket.spend(50_000)
        taken += 50_000
      }
      now += .milliseconds(max(1, bucket.millisecondsToOpen))
    }
    #expect((9_500_000...10_500_000).contains(taken))
  }

  // MARK: Tables

  @Test func everyCurlCodeHasAFailure() {
    for raw in 1..<CURL_LAST.rawValue {
      let failure = FailureTable.failure(
        CURLcode(rawValue: raw), host: "h:80", detail: "\u{1B}[2J", errno: 0)
      #expect(!failure.message.contains("\u{1B}"))
      #expect(failure.message.contains("h:80"))
    }
  }

  @Test(arguments: [
    (CURLE_COULDNT_RESOLVE_HOST, DownloadFailure.Code.resolve, true), (CURLE_COULDNT_CONNECT, .connect, true),
    (CURLE_OPERATION_TIMEDOUT, .timeout, true), (CURLE_PEER_FAILED_VERIFICATION, .tls, false),
    (CURLE_SSL_CACERT_BADFILE, .tls, false), (CURLE_SSL_CONNECT_ERROR, .tls, true),
    (CURLE_RECV_ERROR, .reset, true), (CURLE_SEND_ERROR, .reset, true), (CURLE_GOT_NOTHING, .reset, true),
    (CURLE_HTTP2_STREAM, .reset, true), (CURLE_PARTIAL_FILE, .truncated, true),
    (CURLE_FILESIZE_EXCEEDED, .tooLarge, false), (CURLE_UNSUPPORTED_PROTOCOL, .protocolError, true),
    (CURLE_OUT_OF_MEMORY, .outOfMemory, true), (CURLE_WEIRD_SERVER_REPLY, .protocolError, true),
  ]) func failureTable(code: CURLcode, expected: DownloadFailure.Code, isTransient: Bool) {
    let row = FailureTable.row(code)
    #expect(row.code == expected)
    #expect(row.isTransient == isTransient)
  }

  /// Whoever looks at the feed's server then finds nothing wrong.
  @Test func aProxyThatRefusesIsSaidToBeTheProxy() {
    let failure = FailureTable.failure(
      CURLE_COULDNT_CONNECT, host: "h:80", detail: "", errno: Int(ECONNREFUSED), isProxied: true)
    #expect(failure.message == "connection refused by the proxy on the way to h:80")
    for (status, isTransient) in [(407, false), (403, false), (502, true)] {
      let refused = FailureTable.failure(
        CURLE_RECV_ERROR, host: "h:443", detail: "CONNECT tunnel failed, response \(status)", errno: 0,
        isProxied: true)
      #expect(refused.code == .connect && refused.isTransient == isTransient)
      #expect(refused.message.hasPrefix("the proxy gave no connection to h:443: it answered with \(status)"))
      #expect(refused.message.contains("a name and password") == (status == 407))
    }
    let lost = FailureTable.failure(CURLE_RECV_ERROR, host: "h:80", detail: "", errno: 0, isProxied: true)
    #expect(lost.message.contains(" h:80") && !lost.message.contains("proxy"))
  }

  /// Raw words of OpenSSL say nothing to people.
  @Test(arguments: [
    ("wrong version number", "h:443 does not speak TLS: its addresses may begin with http://", false),
    ("unexpected eof while reading", "no secure connection to h:443: unexpected eof while reading", true),
  ]) func failuresOfTLSAreInPlainWords(words: String, message: String, isTransient: Bool) {
    let failure = FailureTable.failure(
      CURLE_SSL_CONNECT_ERROR, host: "h:443",
      detail: "OpenSSL/3.0.22: error:0A00010B:SSL routines::\(words)", errno: 0)
    #expect(failure.code == .tls && failure.isTransient == isTransient)
    #expect(failure.message == message)
  }

  /// libcurl's words for a file of authorities that holds no certificate, or is none.
  @Test(arguments: [
    ("error setting certificate file: /my ca.pem", " from /my ca.pem"),
    ("error setting certificate file: /ca\u{1B}.pem", " from /ca\\x1b.pem"), ("", ""),
  ]) func aFileWithoutCertificatesIsNamed(detail: String, place: String) {
    let failure = FailureTable.failure(CURLE_SSL_CACERT_BADFILE, host: "h:443", detail: detail, errno: 0)
    #expect(
      failure.message == "no authority's certificate could be read\(place), so h:443 cannot be trusted")
    #expect(failure.code == .tls && !failure.isTransient)
  }

  /// Each option is set once, has a reason, and is known to the libcurl at hand.
  @Test func optionTable() throws {
    var settings = NetworkSettings()
    settings.caFile = "/ca"
    settings.cookieFile = "/cookies"
    settings.netrcFile = "/netrc"
    let url = try SourceURL("https://example.org/")
    let options =
      CurlOption.fixed(settings)
      + CurlOption.hop(url, settings: settings, isTrusted: true, secondsLeft: 5, cookies: "a=b")
    #expect(Set(options.map(\.option.rawValue)).count == options.count)
    let guards = try FloodGuard()
    defer { guards.close() }
    let handle = try #require(EasyHandle(guards))
    for option in options {
      #expect(!option.reason.isEmpty)
      #expect(option.apply(to: handle.easy) == CURLE_OK, "\(option)")
    }
  }

  /// However the host is written: a pin that is not found would be no pin.
  @Test(arguments: [
    ("::1", "https://[::1]/a"), ("[::1]", "https://[0:0:0:0:0:0:0:1]:9/a"),
    ("localhost.", "https://localhost/"),
    ("Localhost", "https://localhost./"), ("::ffff:127.0.0.1", "https://[::ffff:7f00:1]/"),
  ]) func theTrustInAHostIsFound(host: String, url: String) throws {
    var (settings, trust) = (NetworkSettings(), HostTrust(host))
    (trust.ca, trust.pins) = ("/ca", ["sha256//AAAA"])
    settings.trust = [HostTrust("other"), trust]
    let request = DownloadRequest(url: url, limit: 1)
    let options = CurlOption.own(request, of: try SourceURL(url), isGet: true, settings)
    #expect(options.map(\.value) == [.text("/ca"), .text("sha256//AAAA")])
  }

  @Test func whatSomebodyWaitsForMayHaveAPlaceOfTheSmallOnes() {
    func isSmall(_ expected: UInt64?, isUrgent: Bool) -> Bool {
      var request = DownloadRequest(url: "http://127.0.0.1/f", limit: .max)
      request.expected = expected
      request.isUrgent = isUrgent
      return request.isSmall
    }
    #expect(isSmall(1 << 20, isUrgent: false) && isSmall(nil, isUrgent: true))
    #expect(isSmall(3 << 20, isUrgent: true) && isSmall(16 << 20, isUrgent: true))
    #expect(!isSmall(nil, isUrgent: false) && !isSmall((1 << 20) + 1, isUrgent: false))
    #expect(!isSmall((16 << 20) + 1, isUrgent: true))
  }
}
