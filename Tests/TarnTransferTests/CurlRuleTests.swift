import Foundation
import TarnCore
import TarnRuntime
import Testing

@testable import TarnTransfer

/// Redirects, secrets, addresses, TLS: what libcurl alone would do otherwise.
@Suite(
  .serialized, .timeLimit(.minutes(5)),
  .enabled(if: ScriptedServer.isAvailable, "python3 or openssl is missing"))
struct CurlRuleTests {
  let server: ScriptedServer

  init() throws {
    server = try ScriptedServer.shared.get()
  }

  private func settings(_ change: (inout NetworkSettings) -> Void = { _ in }) -> NetworkSettings {
    .patient(change)
  }

  private func fetch(
    _ url: String, _ settings: NetworkSettings, to receiver: Collector = Collector(),
    change: (inout DownloadRequest) -> Void = { _ in }
  ) throws -> (outcome: DownloadOutcome?, bytes: [UInt8]) {
    let downloader = try CurlDownloader(settings: settings)
    var request = DownloadRequest(url: url, limit: 1 << 30)
    change(&request)
    _ = downloader.start(request, to: receiver)
    let outcome = receiver.outcome()
    downloader.shutDown()
    #expect(receiver.offences == [])
    return (outcome, receiver.bytes)
  }

  // MARK: Redirects

  /// Who went ahead of others stands in its line twice. Led on to another host, it takes no second place by what is left at the first.
  @Test func whoWasLedOnLeavesNothingInItsFirstLine() throws {
    let downloader = try CurlDownloader(settings: settings { $0.connectionsPerHost = 1 })
    let isOpen = Locked(false)
    let (here, there) = (
      Collector { _ in isOpen.withLock { $0 } ? .taken : .full }, Collector { _ in .full }
    )
    func start(_ url: String, _ receiver: Collector) -> DownloadID {
      receiver.owner.withLock { $0 = downloader }
      return downloader.start(DownloadRequest(url: url, limit: 1 << 20), to: receiver)
    }
    let first = start("\(server.plain)/ok/led/10/on", here)
    _ = start("\(server.other)/ok/led/10/on", there)
    #expect(here.paused(1) && there.paused(1))
    let (led, behind) = (Collector(), Collector())
    downloader.prioritize(start("\(server.plain)/redirect-other/led/10/on", led))
    _ = start("\(server.plain)/ok/led/10/on", behind)
    isOpen.withLock { $0 = true }
    downloader.resume(first)
    #expect(behind.outcome()?.head != nil)
    let another = Collector()
    _ = start("\(server.plain)/ok/led/10/on", another)
    #expect(another.outcome()?.head != nil)
    // It waits for whom the other host serves.
    #expect(server.requests("/on").count { $0.port == server.otherPort } == 1)
    downloader.shutDown()
    #expect(led.outcome()?.head == nil)
  }

  @Test(arguments: [
    "redirect", "redirect-relative", "redirect-permanent", "redirect-other", "redirect-big-body",
  ])
  func followsRedirects(behaviour: String) throws {
    let (outcome, bytes) = try fetch("\(server.plain)/\(behaviour)/hop/90000/f", settings())
    let head = try #require(outcome?.head)
    #expect(head.status == 200)
    let origin = behaviour == "redirect-other" ? server.other : server.plain
    #expect(head.url == "\(origin)/ok/hop/90000/f")
    #expect(bytes == SeedStream.bytes(seed: "hop", size: 90_000))
  }

  @Test(arguments: ["redirect-file", "redirect-ftp", "redirect-gopher", "redirect-data", "redirect-user"])
  func refusesOtherSchemesAndUsers(behaviour: String) throws {
    let (outcome, _) = try fetch("\(server.plain)/\(behaviour)/x/10/f", settings())
    let failure = try #require(outcome?.failure)
    #expect(failure.code == .redirectRefused)
    #expect(!failure.isTransient)
    #expect(!failure.message.contains("secret"))
  }

  @Test func twentyHopsAndNoMore() throws {
    let (outcome, _) = try fetch("\(server.plain)/redirect-loop/x/10/twenty-hops", settings())
    #expect(outcome?.failure?.code == .tooManyRedirects)
    #expect(server.requests("/twenty-hops").count == 21)
    #expect(try fetch("\(server.plain)/redirect-20/x/10/f", settings()).outcome?.head?.status == 200)
  }

  /// Trackers in front of a file set a cookie and send the client back to them.
  @Test(arguments: [false, true]) func cookiesGoAlongInTheirChainOnly(hasFile: Bool) throws {
    let file = try cookieFile()
    let downloader = try CurlDownloader(
      settings: settings {
        $0.cookieFile = hasFile ? file : nil
        $0.credentialOrigin = server.plain
      })
    let name = "/wall-\(hasFile)"
    for _ in 0..<2 {
      let receiver = Collector()
      _ = downloader.start(
        DownloadRequest(url: "\(server.plain)/cookie-wall/key/10\(name)", limit: 100), to: receiver)
      #expect(receiver.outcome()?.head?.status == 200)
    }
    downloader.shutDown()
    let own = hasFile ? "session=abc" : nil
    let both = hasFile ? "session=abc; pass=key" : "pass=key"
    #expect(server.requests(name).map { $0.headers["cookie"] } == [own, both, own, both])
  }

  @Test func aCookieLineOfTheUsersGoesBesideThem() throws {
    let own = settings {
      $0.headers = ["Cookie: mine=1"]
      $0.credentialOrigin = server.plain
    }
    #expect(try fetch("\(server.plain)/cookie-wall/key/10/cookie-line", own).outcome?.head?.status == 200)
    #expect(server.requests("/cookie-line").map { $0.headers["cookie"] } == ["mine=1", "mine=1; pass=key"])
  }

  @Test func httpsNeverBecomesHttp() throws {
    let trusting = settings { $0.caFile = server.certificate }
    let (down, _) = try fetch("\(server.tls)/redirect-to-plain/x/10/down", trusting)
    #expect(down?.failure?.code == .redirectRefused)
    let (up, bytes) = try fetch("\(server.plain)/redirect-to-tls/up/10/f", trusting)
    #expect(up?.head?.url == "\(server.tls)/ok/up/10/f")
    #expect(bytes.count == 10)
    #expect(server.requests("/down").count == 1)
  }

  @Test func spacesInLocationAreEncoded() throws {
    let (outcome, _) = try fetch("\(server.plain)/redirect-space/x/10/f", settings())
    #expect(outcome?.head?.url == "\(server.plain)/ok/x/10/f%20with%20space")
  }

  /// Some versions of libcurl write the digits in small letters, which is the same URL.
  @Test func bytesInLocationAreEncoded() throws {
    let (outcome, bytes) = try fetch("\(server.plain)/redirect-bytes/raw/10/f", settings())
    #expect(outcome?.head?.url.lowercased() == "\(server.plain)/ok/raw/10/f-%c3%bc")
    #expect(bytes == SeedStream.bytes(seed: "raw", size: 10))
  }

  /// What is to come with its body is not led to where it would come without.
  @Test(arguments: [("redirect", 302, 1), ("redirect-relative", 200, 2), ("redirect-permanent", 200, 2)])
  func aRedirectThatDropsTheBodyIsAResult(_ behaviour: String, _ status: Int, _ requests: Int) throws {
    let name = "/kept-\(behaviour)"
    let (outcome, _) = try fetch("\(server.plain)/\(behaviour)/x/10\(name)", settings()) {
      $0.keepsBody = true
    }
    #expect(outcome?.head?.status == status && server.requests(name).count == requests)
  }

  @Test func redirectWithoutLocationIsAResult() throws {
    #expect(try fetch("\(server.plain)/redirect-nowhere/x/10/f", settings()).outcome?.head?.status == 302)
  }

  // MARK: Secrets

  @Test func headersStayWithTheirOrigin() throws {
    let secret = settings {
      $0.headers = ["X-Canary: sings"]
      $0.credentialOrigin = "\(server.plain)/feed/path"
    }
    _ = try fetch("\(server.plain)/redirect-other-and-back/x/10/canary-one", secret)
    let hops = server.requests("/canary-one")
    #expect(hops.map(\.port) == [server.plainPort, server.otherPort, server.plainPort])
    #expect(hops.map { $0.headers["x-canary"] } == ["sings", nil, "sings"])

    _ = try fetch("\(server.other)/ok/x/10/canary-two", secret)
    #expect(server.requests("/canary-two").map { $0.headers["x-canary"] } == [nil])
  }

  @Test func netrcOverPlainHttpOnlyForTheFeed() throws {
    let file = server.folder.appending(path: "netrc").path
    try "machine 127.0.0.1 login user password secret\n".write(
      toFile: file, atomically: true, encoding: .utf8)
    let secret = settings {
      $0.netrcFile = file
      $0.credentialOrigin = server.plain
      $0.caFile = server.certificate
    }
    let basic = "Basic " + Data("user:secret".utf8).base64EncodedString()
    for (origin, expected) in [(server.plain, basic), (server.other, nil), (server.tls, basic)] {
      let name = "/netrc-\(origin.suffix(5))"
      _ = try fetch("\(origin)/ok/x/10\(name)", secret)
      #expect(server.requests(name).map { $0.headers["authorization"] } == [expected])
    }
  }

  /// One cookie for this machine, whatever the port.
  private func cookieFile() throws -> String {
    let file = server.folder.appending(path: "cookies").path
    try "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\tabc\n".write(
      toFile: file, atomically: true, encoding: .utf8)
    return file
  }

  @Test func cookiesComeFromTheFileOnly() throws {
    let file = try cookieFile()
    let downloader = try CurlDownloader(
      settings: settings {
        $0.cookieFile = file
        $0.credentialOrigin = server.plain
      })
    for _ in 0..<2 {
      let receiver = Collector()
      _ = downloader.start(
        DownloadRequest(url: "\(server.plain)/set-cookie/x/10/cookies", limit: 100), to: receiver)
      #expect(receiver.outcome()?.head != nil)
    }
    #expect(server.requests("/cookies").map { $0.headers["cookie"] } == ["session=abc", "session=abc"])
  }

  /// Ports are no part of a cookie's domain: its own rules would let it go along.
  @Test func noCookieGoesWhereARedirectLeadsAway() throws {
    let file = try cookieFile()
    let downloader = try CurlDownloader(
      settings: settings {
        $0.cookieFile = file
        $0.credentialOrigin = server.plain
        $0.caFile = server.certificate
      })
    // The handle that was led away is used again.
    for behaviour in ["redirect-other", "ok", "redirect-other", "redirect"] {
      let receiver = Collector()
      _ = downloader.start(
        DownloadRequest(url: "\(server.plain)/\(behaviour)/x/10/away", limit: 100), to: receiver)
      #expect(receiver.outcome()?.head?.status == 200)
    }
    let cookies = server.requests("/away").map { $0.headers["cookie"] }
    #expect(cookies == ["session=abc", nil, "session=abc", "session=abc", nil, "session=abc", "session=abc"])
    let receiver = Collector()
    _ = downloader.start(
      DownloadRequest(url: "\(server.plain)/redirect-to-tls/x/10/safe", limit: 100), to: receiver)
    #expect(receiver.outcome()?.head?.status == 200)
    #expect(server.requests("/safe").map { $0.headers["cookie"] } == ["session=abc", nil])
  }

  /// Where the addresses of a list lead: a redirect of the list decides that as well.
  @Test func cookiesOverPlainHTTPAreTheFeedsOwn() throws {
    let file = try cookieFile()
    let cookies = settings {
      $0.cookieFile = file
      $0.credentialOrigin = server.plain
      $0.caFile = server.certificate
    }
    for (origin, expected) in [
      (server.plain, "session=abc"), (server.other, nil), (server.tls, "session=abc"),
    ] {
      let name = "/plain-\(origin.suffix(5))"
      _ = try fetch("\(origin)/ok/x/10\(name)", cookies)
      #expect(server.requests(name).map { $0.headers["cookie"] } == [expected], "\(origin)")
    }
  }

  @Test func theEnvironmentSteersNothing() {
    for name in CurlDownloader.unwelcomeVariables { #expect(getenv(name) == nil) }
  }

  @Test func userNamesInURLsAreRefused() throws {
    let (outcome, _) = try fetch("http://user:secret@127.0.0.1:1/", settings())
    #expect(outcome?.failure?.code == .urlRefused)
    #expect(outcome?.failure?.message.contains("secret") == false)
  }

  @Test(arguments: [
    "ftp://127.0.0.1/x", "gopher://127.0.0.1/", "dict://127.0.0.1/", "scp://127.0.0.1/x", "/etc", "",
  ])
  func otherSchemesAreRefused(url: String) throws {
    #expect(try fetch(url, settings()).outcome?.failure?.code == .urlRefused)
  }

  @Test func controlCharactersInHeadersAreRefused() throws {
    let (outcome, _) = try fetch("\(server.plain)/ok/x/10/injected", settings()) {
      $0.ifNoneMatch = "\"a\"\r\nX-Evil: 1"
    }
    #expect(outcome?.failure?.code == .urlRefused)
    #expect(server.requests("/injected").isEmpty)
  }

  // MARK: Addresses

  @Test(arguments: [
    "127.0.0.1", "0x7f.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "localhost", "0.0.0.0",
  ])
  func privateAddressesAreRefused(host: String) throws {
    let (outcome, _) = try fetch("http://\(host):\(server.plainPort)/ok/x/10/private", NetworkSettings())
    #expect(outcome?.failure?.code == .addressRefused)
    #expect(server.requests("/private").isEmpty)
  }

  /// What somebody asked for by its own URL is meant, wherever it is, and it may lead to its like.
  @Test func aRequestsOwnHostMayBePrivate() throws {
    var asked = NetworkSettings()
    asked.allowsAskedPrivateAddresses = true
    for name in ["asked-one", "asked-two"] {
      let (outcome, _) = try fetch("\(server.plain)/redirect-other-and-back/x/10/\(name)", asked) {
        $0.headers = ["X-Canary: sings"]
      }
      #expect(outcome?.failure == nil, "\(outcome as Any)")
      // Its headers go to its own origin only.
      #expect(server.requests("/\(name)").map { $0.headers["x-canary"] } == ["sings", nil, "sings"])
    }
  }

  // MARK: TLS

  @Test func anUnknownAuthorityIsRefused() throws {
    let failure = try #require(try fetch("\(server.tls)/ok/x/10/f", settings()).outcome?.failure)
    #expect(failure.code == .tls)
    #expect(!failure.isTransient)
    #expect(failure.message == "certificate refused of 127.0.0.1:\(server.tlsPort): self-signed certificate")
  }

  @Test func aWrongNameIsRefused() throws {
    let trusting = settings { $0.caFile = server.certificate }
    let (outcome, _) = try fetch("https://localhost:\(server.tlsPort)/ok/x/10/f", trusting)
    #expect(outcome?.failure?.code == .tls)
    #expect(try fetch("\(server.tls)/ok/x/10/f", trusting).outcome?.head?.status == 200)
  }

  // MARK: Limits

  /// Not a byte is taken of a body that says itself that it is too long.
  @Test func aBodyThatIsAnnouncedTooLongIsNotBegun() throws {
    let (outcome, bytes) = try fetch("\(server.plain)/ok/long/2000000/f", settings()) { $0.limit = 1_999_999 }
    #expect(outcome?.failure?.code == .tooLarge)
    #expect(bytes.isEmpty)
  }

  /// A body without an end costs the connection, not the exchange: its head was the answer.
  @Test func anEndlessBodyThatNobodyWantsIsLeft() throws {
    let receiver = Collector(.headOnly)
    let (outcome, bytes) = try fetch("\(server.plain)/endless/x/10/f", settings(), to: receiver)
    #expect(outcome?.head?.status == 200)
    #expect(bytes.isEmpty)
  }

  // MARK: Encodings

  @Test func encodingsAreRefusedOrDeliveredRaw() throws {
    let (refused, _) = try fetch("\(server.plain)/gzip-unasked/z/1000/plain", settings())
    #expect(refused?.failure?.code == .contentEncoding)
    let (taken, bytes) = try fetch("\(server.plain)/gzip-unasked/z/1000/asked", settings()) {
      $0.encoding = .gzipAsked
    }
    #expect(taken?.head?.contentEncoding == "gzip")
    #expect(bytes.prefix(2) == [0x1F, 0x8B])
    #expect(server.requests("/plain").map { $0.headers["accept-encoding"] } == ["identity"])
    #expect(server.requests("/asked").map { $0.headers["accept-encoding"] } == ["gzip"])
  }

  // MARK: Files

  @Test func filesAreReadWithRanges() throws {
    let content = SeedStream.bytes(seed: "file", size: 400_000)
    let file = server.folder.appending(path: "a file")
    try Data(content).write(to: file)
    let (whole, bytes) = try fetch("file://\(server.folder.path)/a%20file", settings())
    #expect(whole?.head?.status == 200)
    #expect(bytes == content)
    let etag = try #require(whole?.head?.etag)
    let (part, tail) = try fetch("file://\(server.folder.path)/a%20file", settings()) {
      $0.offset = 300_000
      $0.ifRange = etag
    }
    #expect(part?.head?.contentRange == ContentRange(first: 300_000, last: 399_999, total: 400_000))
    #expect(tail == Array(content[300_000...]))
    let (same, _) = try fetch("file://\(server.folder.path)/a%20file", settings()) { $0.ifNoneMatch = etag }
    #expect(same?.head?.status == 304)
    let (over, _) = try fetch("file://\(server.folder.path)/a%20file", settings()) { $0.limit = 399_999 }
    #expect(over?.failure?.code == .tooLarge)
  }

  /// Files that wait for a place are started as soon as one is free, not when libcurl next wakes up.
  @Test func filesThatWaitAreNotForgotten() throws {
    try Data("x".utf8).write(to: server.folder.appending(path: "small"))
    let downloader = try CurlDownloader(settings: settings { $0.connections = 2 })
    defer { downloader.shutDown() }
    let collectors = (0..<20).map { _ in Collector() }
    for collector in collectors {
      _ = downloader.start(
        DownloadRequest(url: "file://\(server.folder.path)/small", limit: 10), to: collector)
    }
    for collector in collectors {
      let outcome = collector.outcome()
      #expect(outcome != nil, "it waits for ever")
    }
  }

  @Test func whatIsNoFileIsNotRead() throws {
    let fifo = server.folder.appending(path: "fifo").path
    mkfifo(fifo, 0o600)
    for path in [server.folder.path, "/nonexistent", fifo, "/dev/zero"] {
      #expect(try fetch("file://\(path)", settings()).outcome?.failure?.code == .fileNotReadable)
    }
  }
}
