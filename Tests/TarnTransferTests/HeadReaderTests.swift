import CurlShim
import TarnCore
import Testing

@testable import TarnTransfer

/// What is read of a head, whatever libcurl itself lets through; and what is sent and set, whatever its defaults are.
@Suite struct HeadReaderTests {
  /// What the last line came to, and the head.
  private func read(_ lines: [String]) -> (step: HeadReader.Step, head: ResponseHead) {
    var reader = HeadReader(url: "u")
    var step = HeadReader.Step.more
    for line in lines {
      step = Array("\(line)\r\n".utf8).withUnsafeBytes { reader.read($0, now: Timestamp(nanoseconds: 0)) }
    }
    return (step, reader.head)
  }

  private func isMalformed(_ step: HeadReader.Step) -> Bool {
    if case .failed(let failure) = step { failure.code == .protocolError } else { false }
  }

  @Test(arguments: ["x", "-1", "+5", "5x", "", "0x5", "5, 6", "5,", "99999999999999999999999"])
  func aLengthIsANumber(_ text: String) {
    #expect(isMalformed(read(["HTTP/1.1 200 OK", "Content-Length: \(text)"]).step))
  }

  @Test func lengthsAndRangesComeOnce() {
    #expect(isMalformed(read(["HTTP/1.1 200 OK", "Content-Length: 5", "Content-Length: 6"]).step))
    let range = "Content-Range: bytes 0-9/10"
    #expect(isMalformed(read(["HTTP/1.1 206 Partial Content", range, range]).step))
    #expect(read(["HTTP/1.1 206 Partial Content", range]).step == .more)
  }

  @Test(arguments: [("bytes 0-9/10", false), ("bytes=0-9/10", true), ("", true), ("odd", true)])
  func aRangeThatCannotBeReadIsKnownToBeThere(_ range: String, _ isUnreadable: Bool) {
    let head = read(["HTTP/1.1 200 OK", "Content-Range: \(range)", ""]).head
    #expect(head.hasUnreadableRange == isUnreadable && (head.contentRange == nil) == isUnreadable)
    #expect(!read(["HTTP/1.1 200 OK", ""]).head.hasUnreadableRange)
  }

  @Test(arguments: [["5", "5"], ["5, 5"], ["5", "5,5"]]) func equalLengthsAreOne(_ lengths: [String]) {
    let (step, head) = read(["HTTP/1.1 200 OK"] + lengths.map { "Content-Length: \($0)" } + [""])
    #expect(step == .complete)
    #expect(head.contentLength == 5)
  }

  @Test(
    arguments: [
      (["identity"], nil), (["none"], nil), (["aws-chunked"], nil), (["UTF-8"], nil), ([""], nil),
      (["text"], nil), (["ascii"], nil),
      (["gzip"], "gzip"), (["aws-chunked,gzip"], "gzip"), (["gzip, aws-chunked"], "gzip"),
      (["aws-chunked", "br"], "br"), (["gzip", "br"], "gzip, br"), (["x-odd"], "x-odd"),
    ] as [([String], String?)]) func whatIsNoCodingIsNone(_ values: [String], _ coding: String?)
  {
    let (step, head) = read(["HTTP/1.1 200 OK"] + values.map { "Content-Encoding: \($0)" } + [""])
    #expect(step == .complete)
    #expect(head.contentEncoding == coding)
  }

  @Test(arguments: [
    (["HTTP/1.1 200 OK"], false), (["HTTP/1.0 200 OK", "Content-Type: x/y"], false),
    (["HTTP/1.1 200 OK", "Content-Length: 5"], true),
    (["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"], true),
    (["HTTP/2 200"], true),
    // What an informational response said is not of the final one.
    (["HTTP/1.1 103 Early", "Content-Length: 5", "", "HTTP/1.1 200 OK"], false),
  ]) func whatMarksTheEnd(_ lines: [String], _ isFramed: Bool) {
    let (step, head) = read(lines + [""])
    #expect(step == .complete)
    #expect(head.isFramed == isFramed)
  }

  /// UTF-8 stays as it is, and the bytes of other code pages are encoded. What has control characters is not followed.
  @Test(
    arguments: [
      (Array("/ok/".utf8) + [0xE9], "/ok/%E9"), (Array("/a%20".utf8) + [0xFC, 0x2F, 0xFF], "/a%20%FC/%FF"),
      (Array("/ok/\u{E9}".utf8), "/ok/\u{E9}"), (Array("/ok/".utf8) + [0xE9, 0x07], nil),
    ] as [([UInt8], String?)]) func theBytesOfALocationAreFollowed(_ sent: [UInt8], _ location: String?)
  {
    var reader = HeadReader(url: "u")
    for line in [Array("HTTP/1.1 302 Found\r\n".utf8), Array("Location: ".utf8) + sent + [0x0D, 0x0A]] {
      _ = line.withUnsafeBytes { reader.read($0, now: Timestamp(nanoseconds: 0)) }
    }
    #expect(reader.location == location)
  }

  @Test func headersThatWouldBeTwoAreNotSent() {
    var settings = NetworkSettings()
    settings.headers = ["X-One: 1", "X-Two: 2\r\nX-Three: 3", "X-Four: \u{7F}"]
    let request = DownloadRequest(url: "http://a.example/", limit: 1)
    let trusted = CurlOption.headers(request, isTrusted: true, settings: settings)
    #expect(trusted.filter { $0.hasPrefix("X-") } == ["X-One: 1"])
    let other = CurlOption.headers(request, isTrusted: false, settings: settings)
    #expect(other.filter { $0.hasPrefix("X-") } == [])
  }

  /// A line of the request takes the place of one of the settings, and both that of Tarn's own; elsewhere Tarn's own is sent.
  @Test func linesOfTheUsersTakeThePlaceOfOthers() {
    var settings = NetworkSettings()
    settings.headers = ["ACCEPT: text/html", "X-A: session", "X-B: session"]
    var request = DownloadRequest(url: "http://a.example/", limit: 1)
    func lines(isTrusted: Bool, isLedAway: Bool = false) -> [String] {
      CurlOption.headers(request, isTrusted: isTrusted, isLedAway: isLedAway, settings: settings)
        .filter { !$0.hasPrefix("Accept-Encoding: ") }
    }
    #expect(lines(isTrusted: true) == ["ACCEPT: text/html", "X-A: session", "X-B: session"])
    request.headers = ["accept: audio/*", "x-a: task"]
    #expect(lines(isTrusted: true) == ["X-B: session", "accept: audio/*", "x-a: task"])
    #expect(lines(isTrusted: false) == ["accept: audio/*", "x-a: task"])
    #expect(lines(isTrusted: false, isLedAway: true) == ["Accept: */*"])
  }

  /// What no setting moves, and no server at hand could tell: the system's TLS refuses old versions by itself, a response
  /// without a head fails later on, and the environment is emptied at the start.
  @Test func safetyIsExplicit() {
    let options = CurlOption.fixed(NetworkSettings())
    let wanted: [(CURLoption, CurlOption.Value)] = [
      (CURLOPT_SSL_VERIFYPEER, .long(1)), (CURLOPT_SSL_VERIFYHOST, .long(2)),
      (CURLOPT_SSLVERSION, .long(Int(CURL_SSLVERSION_TLSv1_2))), (CURLOPT_HTTP09_ALLOWED, .long(0)),
      (CURLOPT_PROXY, .text("")), (CURLOPT_NOPROXY, .text("")), (CURLOPT_FOLLOWLOCATION, .long(0)),
      (CURLOPT_PROTOCOLS_STR, .text("http,https")), (CURLOPT_REDIR_PROTOCOLS_STR, .text("http,https")),
      (CURLOPT_UNRESTRICTED_AUTH, .long(0)), (CURLOPT_DISALLOW_USERNAME_IN_URL, .long(1)),
    ]
    for (option, value) in wanted {
      #expect(options.first { $0.option == option }?.value == value, "\(option)")
    }
  }
}
