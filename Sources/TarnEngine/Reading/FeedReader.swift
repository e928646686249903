package import TarnCore
package import TarnRuntime

/// Fetches a feed and the documents that it points to, and passes their items on. Used on the pass's thread.
struct FeedReader {
  let pass: Pass

  var ports: PassPorts { pass.ports }
  var policy: PassPolicy { pass.request.policy }

  /// The feed's name in a problem about the feed itself.
  var feedName: [UInt8] { Self.problemName(pass.request.feed.text) }

  /// Returns the name of a feed's document in a problem: its URL without secrets, for the log, events and summaries show it.
  static func problemName(_ url: String) -> [UInt8] { Array(Redaction.tokens(Redaction.address(url)).utf8) }

  /// A fetched document, which can be parsed repeatedly.
  struct Document {
    var spool: SpoolFile
    var url: String
    /// The requested URL, before redirects. `nil` when no server sent the document.
    var requestedURL: String?
    var isWhole = true
    /// The head of the response, when a server sent the document.
    var head: ResponseHead?
    /// The SHA-256 of all that a feed from a server is parsed from, besides its URL: its content type and its bytes.
    var digest: Digest?

    var contentType: String? { head?.contentType }

    /// True when the bytes are not those of the file, because the server encoded them for transport.
    var isEncoded: Bool { head?.contentEncoding != nil && !FeedDocument.isGzipFile(url) }
  }

  /// The most bytes on the wire of a feed document. By this limit a request for the feed differs from those for listings.
  static let mostBytes: UInt64 = 4 << 30
  /// The most bytes on the wire of a listing below the feed.
  static let mostListingBytes: UInt64 = 64 << 20

  /// Asks whether the feed has changed, and fetches it in the same exchange if it has.
  ///
  /// - Returns: the document; `nil` when it has not changed since.
  /// - Throws: the errors of `open`.
  func open(_ url: String, since known: FeedRecord) throws(PassFailure) -> Document? {
    let document = try finish(start(url, limit: Self.mostBytes, since: known.validators))
    guard let head = document.head, !head.isWholeFile else { return document }
    switch head.status {
    // When redirects lead elsewhere now, the tag or the date belongs to another document.
    case 304 where head.url == known.url && known.validators?.fit(head) == true: return nil
    default: return try finish(start(url, limit: Self.mostBytes))
    }
  }

  /// Fetches or opens the feed itself.
  ///
  /// - Throws: `feedUnreachable` with the cause.
  func open(_ feed: FeedLocation) throws(PassFailure) -> Document {
    if case .remote(let url) = feed { return try finish(start(url, limit: Self.mostBytes)) }
    let spool: SpoolFile
    do throws(SpoolFailure) {
      spool = try openLocal(feed)
    } catch {
      throw PassFailure(error, feed: feed)
    }
    try pass.stop.throwIfSet()
    // A broken pipe cannot be told from one that ends.
    return Document(spool: spool, url: feed.baseURL, isWhole: feed != .standardInput)
  }

  private func openLocal(_ feed: FeedLocation) throws(SpoolFailure) -> SpoolFile {
    if case .local(let path) = feed { return try SpoolFile(reading: String(decoding: path, as: UTF8.self)) }
    let spool = try newSpool()
    try spool.appendStandardInput(limit: Self.mostBytes) { pass.stop.isSet }
    return spool
  }

  /// Returns a hasher for the digest of a document with that type.
  private func hasher(of type: String?) -> any Hasher {
    let hasher = ports.hashing.hasher(.sha256)
    Array("\(type ?? "")\n".utf8).withUnsafeBytes { hasher.update($0) }
    return hasher
  }

  /// Returns the kind of the feed's own document.
  func kind(of document: Document) throws(FeedFailure) -> FeedKind {
    try ports.parser.kind(of: SpoolSource(document.spool), as: about(document, place: nil))
  }

  func parse(
    _ document: Document, place: RelativePath?, sink: (FeedItem) throws -> Void
  ) throws -> FeedEnd {
    try ports.parser.parse(SpoolSource(document.spool), as: about(document, place: place), sink: sink)
  }

  /// Parses a file with digests of the files beside it. Its paths are relative to its own directory.
  func parseChecksums(_ document: Document, sink: (FeedItem) throws -> Void) throws -> FeedEnd {
    var about = FeedDocument(
      url: document.url, contentType: document.contentType, rule: policy.pathRule, format: .checksums)
    about.requestedURL = document.requestedURL
    return try ports.parser.parse(SpoolSource(document.spool), as: about, sink: sink)
  }

  private func about(_ document: Document, place: RelativePath?) -> FeedDocument {
    var about = FeedDocument(
      url: document.url, contentType: document.contentType, place: place, rule: policy.pathRule,
      format: policy.format)
    about.isWhole = document.isWhole
    about.requestedURL = document.requestedURL
    about.isEncoded = document.isEncoded
    about.modified = document.head?.modified
    if policy.keepsList { about.reread = { SpoolSource(document.spool) } }
    return about
  }

  /// Returns the bytes of a list to keep, so that it need not be fetched again.
  ///
  /// - Returns: the bytes; `nil` for a local feed, which is a file already.
  /// - Throws: `inputOutput`, or the parser's errors.
  func listFile(_ document: Document) throws -> SpoolFile? {
    guard document.head != nil else { return nil }
    guard document.isEncoded else { return document.spool }
    let spool = try makeSpool()
    var source = try ports.parser.decoded(SpoolSource(document.spool))
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    do {
      while case let count = try source.read(into: buffer), count > 0 {
        try spool.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      }
    } catch let failure as SpoolFailure {
      throw PassFailure(spool: failure)
    }
    return spool
  }

  /// Starts to fetch a document; see `finish`.
  ///
  /// - Parameter known: the validators of the known document, which need not be sent again.
  func start(_ url: String, limit: UInt64, since known: FeedValidators? = nil) -> Pending {
    var request = DownloadRequest(url: url, limit: limit)
    request.accept = accept(url)
    request.encoding = .gzipAsked
    request.ifNoneMatch = known?.etag
    request.ifModifiedSince = known?.lastModified
    let isFeed = limit == Self.mostBytes
    // The whole pass waits for the feed, so it does not queue behind files of other mirrors.
    request.isUrgent = isFeed
    return start(request)
  }

  private func start(_ request: DownloadRequest) -> Pending {
    let wishes = pass.request.steering?.wishes ?? 0
    let fetch = FeedReceiver(progress: request.limit == Self.mostBytes ? pass.progress : nil)
    let id = ports.downloader.start(request, to: fetch)
    return Pending(request: request, fetch: fetch, id: id, wishes: wishes)
  }

  /// Returns the value of `Accept`. Caddy answers a directory's URL with JSON to clients that name JSON at all. Servers that weigh
  /// the field send what they would send anyway.
  private func accept(_ url: String) -> String {
    let isDirectory = url.prefix { $0 != "?" && $0 != "#" }.last == "/"
    let mayBeIndex = policy.format == .auto || policy.format == .index
    return isDirectory && mayBeIndex ? "*/*, application/json;q=0.5" : "*/*"
  }

  struct Pending {
    let request: DownloadRequest
    let fetch: FeedReceiver
    let id: DownloadID
    /// The number of requests to try at once that were made before this request.
    let wishes: UInt64

    /// True for the feed itself, false for a listing below it.
    var isFeed: Bool { request.limit == FeedReader.mostBytes }

    /// Returns whether the response answers the request. 412 is not valid for the conditions of a GET, but some servers send it.
    func isAnswered(by head: ResponseHead) -> Bool {
      let hasCondition = request.ifNoneMatch != nil || request.ifModifiedSince != nil
      return head.isWholeFile || hasCondition && (head.status == 304 || head.status == 412)
    }
  }

  /// Waits for a document. Tries again where that may help.
  func finish(_ first: Pending) throws(PassFailure) -> Document {
    var pending = first
    var request = first.request
    var attempt = 1
    var gaveWay = 0
    while true {
      let spool = try makeSpool()
      let (outcome, digest) = try drain(pending, into: spool)
      try pass.stop.throwIfSet()
      let trouble: Trouble
      switch outcome {
      case .complete(let head) where pending.isAnswered(by: head) && spool.size >= head.statedTotal ?? 0:
        return Document(
          spool: spool, url: head.url, requestedURL: request.url,
          isWhole: head.isFramed && !head.hasUnreadableRange, head: head, digest: digest)
      case .complete(let head): trouble = Trouble(head)
      case .failed(let failure): trouble = Trouble(failure)
      }
      let seconds: Double
      if trouble.hasGivenWay {
        // The server did not fail, so this does not count as an attempt.
        seconds = Double(DownloadRequest.patience(gaveWay: gaveWay))
        gaveWay += 1
      } else {
        // After this failure its host may be in a rest period.
        let rest = trouble.retryAfter == nil ? ports.downloader.rest(of: request.url) : nil
        let verdict = RetryPolicy(retries: min(policy.retries, 3)).judge(
          attempt: attempt, isTransient: trouble.isTransient, asked: rest ?? trouble.retryAfter,
          isResting: trouble.isRest || rest != nil, random: ports.random.unit())
        guard case .retry(let pause) = verdict else {
          throw trouble.failure(request.url, of: pass.request)
        }
        seconds = pause
        attempt += 1
      }
      let isAsked = trouble.isAsked && trouble.retryAfter != nil
      pass.observer.pass(.feedRetrying(message: trouble.message, seconds: seconds, isAsked: isAsked))
      pause(seconds, since: pending.wishes)
      request.patience = DownloadRequest.patience(gaveWay: gaveWay)
      pending = start(request)
    }
  }

  private func makeSpool() throws(PassFailure) -> SpoolFile {
    do {
      return try newSpool()
    } catch {
      throw PassFailure(spool: error)
    }
  }

  private func newSpool() throws(SpoolFailure) -> SpoolFile {
    let reserve = policy.reserve
    return try SpoolFile(directory: ports.spoolDirectory) { reserve.bytes(ofTotal: $0) }
  }

  /// - Returns: the outcome, and the digest of a feed, which is computed meanwhile.
  private func drain(
    _ pending: Pending, into spool: SpoolFile
  ) throws(PassFailure) -> (DownloadOutcome, Digest?) {
    var hasher: (any Hasher)?
    var told = ports.clock.monotonic()
    var hasTold = false
    while true {
      let outcome: DownloadOutcome?
      do {
        outcome = try pending.fetch.drain(
          into: spool, id: pending.id, downloader: ports.downloader, stop: pass.stop
        ) { chunk in
          guard pending.isFeed else { return }
          let known = hasher ?? self.hasher(of: pending.fetch.head?.contentType)
          chunk.withUnsafeBytes { known.update($0) }
          hasher = known
        }
      } catch {
        throw PassFailure(spool: error)
      }
      if pending.isFeed, outcome == nil, ports.clock.monotonic() >= told + .seconds(1) {
        told = ports.clock.monotonic()
        hasTold = true
        tell()
      }
      if let outcome {
        if hasTold { tell() }
        guard pending.isFeed else { return (outcome, nil) }
        return (outcome, (hasher ?? self.hasher(of: pending.fetch.head?.contentType)).finish())
      }
    }
  }

  /// Records the progress for `tarn status`. It is soon outdated, so a failure does not matter.
  private func tell() {
    let change = LedgerChange.fact(.feedTransfer, pass.progress.snapshot().feed?.encoded)
    try? ports.ledger.applyVolatile([change])
  }

  /// - Parameter wishes: the number of requests to try at once before the attempt. A new one ends the pause.
  private func pause(_ seconds: Double, since wishes: UInt64) {
    let gate = Gate()
    pass.stop.onSet(waking: gate) { gate.open() }
    pass.request.steering?.end(gate, since: wishes)
    _ = gate.wait(atMost: .bounded(seconds: seconds))
  }

  private static let unreadable = "cannot read the feed "

  /// Returns the reason why a document other than the feed could not be fetched.
  static func reason(_ failure: PassFailure) -> String {
    failure.message.hasPrefix(unreadable)
      ? String(failure.message.dropFirst(unreadable.count)) : failure.message
  }

  private struct Trouble {
    var code: String
    var message: String
    var isTransient: Bool
    var retryAfter: Int64?
    var isAsked = true
    /// The URL that was answered, after redirects; `nil` without an answer.
    var url: String?

    init(_ head: ResponseHead) {
      url = head.url
      guard !head.isPartOfFile, head.status != 206, !head.isWholeFile else {
        code = DownloadFailure.Code.truncated.rawValue
        message = "the server sent only a part of it"
        isTransient = false
        return
      }
      let status = HTTPStatus(head.status)
      code = status.name
      message = status.message
      isTransient = status.isTransient
      retryAfter = head.retryAfter
    }

    init(_ failure: DownloadFailure) {
      code = failure.code.rawValue
      message = failure.message
      isTransient = failure.isTransient
      retryAfter = failure.retryAfter
      isAsked = failure.isAsked
    }

    /// True when no bytes came for a while and another mirror got the connection.
    var hasGivenWay: Bool { code == DownloadFailure.Code.gaveWay.rawValue }

    /// True when the host was not asked, because it is in a rest period.
    var isRest: Bool { code == DownloadFailure.Code.hostResting.rawValue }

    func failure(_ url: String, of request: PassRequest) -> PassFailure {
      let isMalformed = [DownloadFailure.Code.tooLarge, .truncated].contains { $0.rawValue == code }
      // The message may be read later, when the remaining time would be wrong.
      let isSlowed = isRest ? "" : retryAfter.map { "; it asked for a pause of \($0) s" } ?? ""
      let other = self.url.flatMap(request.otherOrigin)
      let isRefusal = code == "http-401" || code == "http-403" && request.credentials != .none
      let asked = isRefusal ? request.credentials.refusal(by: other) : nil
      var failure = PassFailure(
        isMalformed ? .feedMalformed : .feedUnreachable, code: code,
        "\(FeedReader.unreadable)\(Printable.escape(url)): \(message)\(asked?.words ?? "")\(isSlowed)",
        hint: asked?.remedy ?? hint)
      failure.retryAfter = retryAfter
      failure.isAsked = isAsked
      return failure
    }

    private var hint: String? {
      switch code {
      case "http-404", "http-410": "check the address of the feed"
      case "http-407": "give the proxy its user and password, in the address of --proxy"
      case "http-403":
        "check the address of the feed; if one has to log in there, give the credentials that the server asks for: "
          + PassRequest.Credentials.options
      case "http-451": "give another address of the feed: its server may not serve it to everybody"
      case "http-429" where retryAfter != nil, "http-503" where retryAfter != nil,
        "host-resting" where isAsked:
        "wait as long as it asks; a pass before that may be refused again"
      case "http-429": "try again later, and read the feed less often"
      case "body-truncated" where message.contains("a part of it"):
        "a cache or proxy on the way may answer with parts: try again later, or give another address"
      case "host-resting", "connection-refused", "host-not-found", "timed-out", "too-slow", "connection-lost",
        "body-truncated":
        "check the feed's address, and the way to its server"
      case "too-many-redirects", "redirect-refused":
        "open the feed's address with a browser, and give the address that it ends at"
      case "tls-failed" where message.contains("self-signed") || message.contains("issuer"):
        "give the authority that signed its certificate with --cacert FILE"
      case "tls-failed" where message.contains("authority's certificate"):
        "give --cacert a file of certificates in PEM (-----BEGIN CERTIFICATE-----), or leave it out"
      case "tls-failed" where message.contains("certificate"):
        "check the feed's address, and this machine's clock"
      case "headers-too-large": "check the address of the feed: no server of files sends as much before one"
      case "address-refused": "redirects to private addresses are followed only from a private feed"
      case _ where code.hasPrefix("http-5"):
        "try again later; if it stays so, its server needs a repair, or the feed has a new address"
      case _ where code.hasPrefix("http-4"): "check the address of the feed"
      default: nil
      }
    }
  }
}

extension PassRequest.Credentials {
  fileprivate static let options = "--netrc-file FILE, --netrc or --header-file FILE"

  /// Returns what a server's 401 says of them, and what helps.
  ///
  /// - Parameter other: the server's origin; `nil` for the feed's own.
  fileprivate func refusal(by other: String?) -> (words: String, remedy: String) {
    switch (self, other) {
    case (.none, _): ("", "give the credentials that the server asks for: \(Self.options)")
    case (.netrc, nil):
      (
        "; it refused the name and password of the netrc file, or that has none for this host",
        "check the entry of this host in the file of --netrc-file or --netrc: machine HOST login NAME password WORD"
      )
    case (.netrc, let other?):
      (
        "; that was \(other), which refused the name and password of the netrc file, or got none",
        "check the entry of that host in the netrc file; to other hosts than the feed's it goes over https only"
      )
    case (.headers, nil):
      (
        "; it refused what the header file holds",
        "check the file of --header-file; or give a name and a password with --netrc-file FILE"
      )
    case (.headers, let other?):
      (
        "; that was \(other), and what the header file holds goes to the feed's own scheme, host and port only",
        "give the address that the feed has on that host"
      )
    }
  }
}

extension PassRequest {
  /// Returns the origin of a URL for messages; `nil` when it is the feed's.
  fileprivate func otherOrigin(_ url: String) -> String? {
    guard case .remote(let own) = feed, let origin = Self.origin(url), origin != Self.origin(own) else {
      return nil
    }
    return Printable.escape(origin)
  }

  /// Returns scheme, host and port in their normal form, without the scheme's own port.
  private static func origin(_ url: String) -> String? {
    guard let mark = url.firstRange(of: "://"), let scheme = URLScheme(url[..<mark.lowerBound]) else {
      return nil
    }
    let authority = url[mark.upperBound...].prefix { !"/?#".contains($0) }
    // An IPv6 address has colons within its brackets.
    let colon =
      authority.lastIndex(of: ":").flatMap { authority[$0...].contains("]") ? nil : $0 } ?? authority.endIndex
    let host = String(authority[..<colon])
    let port = authority[colon...].dropFirst()
    let isUsual = port.isEmpty || scheme.port.map { port == "\($0)" } == true
    return "\(scheme.rawValue)://\(HostName(host)?.inURL ?? host.lowercased())\(isUsual ? "" : ":\(port)")"
  }
}

extension PassPorts {
  /// Fetches a document that belongs to no mirror as a feed is fetched, and passes it to `body`. Blocks.
  ///
  /// - Parameter body: gets the bytes, the URL after redirects and the Content-Type.
  /// - Throws: `PassFailure` when fetching fails, or for what `body` throws, with the location.
  package func read<Value>(
    _ location: FeedLocation, observer: any PassObserver, stop: StopFlag,
    body: (any ByteSource, _ url: String, _ contentType: String?) throws(FeedFailure) -> Value
  ) throws(PassFailure) -> Value {
    let request = PassRequest(feed: location, folderName: "", policy: PassPolicy())
    let pass = Pass(
      ports: self, request: request, observer: observer, progress: PassProgress(clock: clock), stop: stop)
    let document = try pass.reader.open(location)
    do throws(FeedFailure) {
      return try body(SpoolSource(document.spool), document.url, document.contentType)
    } catch {
      throw PassFailure(error, feed: location.text)
    }
  }
}

extension PassFailure {
  /// A failure to open or read a feed that does not come from a server.
  fileprivate init(_ failure: SpoolFailure, feed: FeedLocation) {
    let name = Printable.escape(feed.text)
    switch (failure.reason, feed) {
    case (.directory, .local):
      self.init(
        .usage, code: "feed-not-a-file", "\(name) is a directory, and no feed",
        hint: "give the list in it, as \(ShellWord.quote(feed.text + "/SHA256SUMS"))")
    case (.noFile, .local):
      self.init(
        .usage, code: "feed-not-a-file",
        "\(name) is not a regular file: Tarn does not wait for what may never end",
        hint: "read it from standard input: tarn sync - FOLDER < \(ShellWord.quote(feed.text))")
    case (.closed, .standardInput):
      self.init(
        .feedUnreachable, code: "feed-not-readable",
        "standard input is closed, but the feed should come from it",
        hint: "tarn sync - FOLDER < FILE")
    case (.noSpace, _): self.init(spool: failure)
    case (_, .local) where failure.operation.hasPrefix("read "):
      self.init(
        .feedUnreachable, code: "feed-not-readable",
        "cannot read the feed \(name): \(ErrorText.of(failure.number))",
        hint: "check its path, and whether this user may read it")
    default:
      self.init(.feedUnreachable, code: "feed-not-readable", "cannot read the feed: \(failure.message)")
    }
  }

  /// A failure to keep the feed while it is read.
  fileprivate init(spool failure: SpoolFailure) {
    self.init(
      .inputOutput, code: "spool-failed", failure.message,
      hint: failure.reason == .noSpace ? "make room there, or lower --reserve" : nil)
  }
}
