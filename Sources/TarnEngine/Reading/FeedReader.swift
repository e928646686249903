package import TarnCore
package import TarnRuntime

/// Gets a feed and what it points to, and hands its items on. On the pass's thread.
struct FeedReader {
  let pass: Pass

  var ports: PassPorts { pass.ports }
  var policy: PassPolicy { pass.request.policy }

  /// What the feed is called in a problem of its own.
  var feedName: String { Redaction.address(pass.request.feed.text) }

  /// A document that was fetched and can be parsed, again and again.
  struct Document {
    var spool: SpoolFile
    var url: String
    /// What was asked for, before redirects; nil of what no server sent.
    var requestedURL: String?
    var isWhole = true
    /// Of a document that a server sent.
    var head: ResponseHead?
    /// Of a feed that a server sent: SHA-256 of all that it is parsed from, beside its URL: the type that it was sent as, and its bytes.
    var digest: Digest?

    var contentType: String? { head?.contentType }

    /// Its bytes are not those of the file: the server encoded them on the way.
    var isEncoded: Bool { head?.contentEncoding != nil && !FeedDocument.isGzipFile(url) }
  }

  /// Bytes on the wire of one feed document.
  static let mostBytes: UInt64 = 4 << 30
  /// Bytes on the wire of one listing below the feed.
  static let mostListingBytes: UInt64 = 64 << 20

  /// Asks whether the feed has changed, and fetches it in the same exchange if it has.
  ///
  /// - Returns: nil when it has not changed since.
  /// - Throws: as `open`.
  func open(_ url: String, since known: FeedRecord) throws(PassFailure) -> Document? {
    let document = try finish(start(url, limit: Self.mostBytes, since: known.validators))
    guard let head = document.head, !head.isWholeFile else { return document }
    switch head.status {
    // Where redirects lead elsewhere by now, the tag or the date is another document's.
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
    // A pipe that breaks looks like one that ends.
    return Document(spool: spool, url: feed.baseURL, isWhole: feed != .standardInput)
  }

  private func openLocal(_ feed: FeedLocation) throws(SpoolFailure) -> SpoolFile {
    if case .local(let path) = feed { return try SpoolFile(reading: String(decoding: path, as: UTF8.self)) }
    let spool = try newSpool()
    try spool.appendStandardInput(limit: Self.mostBytes) { pass.stop.isSet }
    return spool
  }

  /// For the digest of a document of that type.
  private func hasher(of type: String?) -> any Hasher {
    let hasher = ports.hashing.hasher(.sha256)
    Array("\(type ?? "")\n".utf8).withUnsafeBytes { hasher.update($0) }
    return hasher
  }

  /// What the feed's own document holds.
  func kind(of document: Document) throws(FeedFailure) -> FeedKind {
    try ports.parser.kind(of: SpoolSource(document.spool), as: about(document, place: nil))
  }

  func parse(
    _ document: Document, place: RelativePath?, sink: (FeedItem) throws -> Void
  ) throws -> FeedEnd {
    try ports.parser.parse(SpoolSource(document.spool), as: about(document, place: place), sink: sink)
  }

  /// Reads what holds digests of the files beside it. It names paths as from its own directory.
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

  /// The bytes that a list is kept with, so that it need not be asked for again.
  ///
  /// - Returns: nil for a local feed, which is a file already.
  /// - Throws: `inputOutput`, or what the parser throws.
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
  /// - Parameter known: the document is wanted only if it is another one.
  func start(_ url: String, limit: UInt64, since known: FeedValidators? = nil) -> Pending {
    var request = DownloadRequest(url: url, limit: limit)
    request.accept = accept(url)
    request.encoding = .gzipAsked
    request.ifNoneMatch = known?.etag
    request.ifModifiedSince = known?.lastModified
    let isFeed = limit == Self.mostBytes
    // All that a pass does waits for it: it stands behind no other mirror's files.
    request.isUrgent = isFeed
    return start(request)
  }

  private func start(_ request: DownloadRequest) -> Pending {
    let wishes = pass.request.steering?.wishes ?? 0
    let fetch = FeedReceiver(progress: request.limit == Self.mostBytes ? pass.progress : nil)
    let id = ports.downloader.start(request, to: fetch)
    return Pending(request: request, fetch: fetch, id: id, wishes: wishes)
  }

  /// Caddy answers a directory's URL with JSON for whoever names JSON at all, whatever its page looks like. Whoever weighs
  /// what is asked for sends what it would send anyway.
  private func accept(_ url: String) -> String {
    let isDirectory = url.prefix { $0 != "?" && $0 != "#" }.last == "/"
    let mayBeIndex = policy.format == .auto || policy.format == .index
    return isDirectory && mayBeIndex ? "*/*, application/json;q=0.5" : "*/*"
  }

  struct Pending {
    let request: DownloadRequest
    let fetch: FeedReceiver
    let id: DownloadID
    /// Those who wanted it tried now, before it was asked for.
    let wishes: UInt64

    /// Not one of the listings that it leads to.
    var isFeed: Bool { request.limit == FeedReader.mostBytes }

    /// The answer is to what was asked. 412 is no answer to a condition on what is read, and is sent all the same.
    func isAnswered(by head: ResponseHead) -> Bool {
      let hasCondition = request.ifNoneMatch != nil || request.ifModifiedSince != nil
      return head.isWholeFile || hasCondition && (head.status == 304 || head.status == 412)
    }
  }

  /// Waits for a document, trying again where that may help.
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
        // No failure of its server's: no attempt either.
        seconds = Double(DownloadRequest.patience(gaveWay: gaveWay))
        gaveWay += 1
      } else {
        // By this failure its host may have come to be left alone.
        let rest = trouble.retryAfter == nil ? ports.downloader.rest(of: request.url) : nil
        let verdict = RetryPolicy(retries: min(policy.retries, 3)).judge(
          attempt: attempt, isTransient: trouble.isTransient, asked: rest ?? trouble.retryAfter,
          isResting: trouble.isRest || rest != nil, random: ports.random.unit())
        guard case .retry(let pause) = verdict else { throw trouble.failure(request.url) }
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

  /// - Returns: also the digest of what came of a feed: it is made meanwhile.
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

  /// What `tarn status` shows beside it; soon stale, so a failure is of no account here.
  private func tell() {
    let change = LedgerChange.fact(.feedTransfer, pass.progress.snapshot().feed?.encoded)
    try? ports.ledger.applyVolatile([change])
  }

  /// - Parameter wishes: how many there were before the attempt: a new one ends the pause.
  private func pause(_ seconds: Double, since wishes: UInt64) {
    let gate = Gate()
    pass.stop.onSet(waking: gate) { gate.open() }
    pass.request.steering?.end(gate, since: wishes)
    _ = gate.wait(atMost: .bounded(seconds: seconds))
  }

  private static let unreadable = "cannot read the feed "

  /// Why a document could not be had that is not the feed.
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

    init(_ head: ResponseHead) {
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

    /// Nothing came for a while, and another mirror has its place.
    var hasGivenWay: Bool { code == DownloadFailure.Code.gaveWay.rawValue }

    /// The host was not asked: it is left alone.
    var isRest: Bool { code == DownloadFailure.Code.hostResting.rawValue }

    func failure(_ url: String) -> PassFailure {
      let isMalformed = [DownloadFailure.Code.tooLarge, .truncated].contains { $0.rawValue == code }
      // Read at any time later on: how long it is from now is for others to tell.
      let isSlowed = isRest ? "" : retryAfter.map { "; it asked for a pause of \($0) s" } ?? ""
      var failure = PassFailure(
        isMalformed ? .feedMalformed : .feedUnreachable, code: code,
        "\(FeedReader.unreadable)\(Printable.escape(url)): \(message)\(isSlowed)", hint: hint)
      failure.retryAfter = retryAfter
      failure.isAsked = isAsked
      return failure
    }

    private var hint: String? {
      switch code {
      case "http-404", "http-410": "check the address of the feed; nothing was changed"
      case "http-407": "give the proxy its user and password, in the address of --proxy"
      case "http-401": "give what the server wants to see: --netrc, or --header-file FILE"
      case "http-403":
        "check the address of the feed; if one has to log in there, give what the server wants to see: --netrc, or "
          + "--header-file FILE"
      case "http-451": "give another address of the feed: its server may not give it to everybody"
      case "http-429" where retryAfter != nil, "http-503" where retryAfter != nil,
        "host-resting" where isAsked:
        "wait as long as it asks; a pass before that may be refused again"
      case "http-429": "try again later, and read the feed more seldom"
      case "host-resting", "connection-refused", "host-not-found", "timed-out", "too-slow", "connection-lost",
        "body-truncated":
        "check the feed's address, and the way to its server; the next pass tries again"
      case "too-many-redirects", "redirect-refused":
        "open the feed's address with a browser, and give the address that it ends at"
      case "tls-failed" where message.contains("self-signed") || message.contains("issuer"):
        "give the authority that signed its certificate with --cacert FILE"
      case "tls-failed" where message.contains("authority's certificate"):
        "give --cacert a file of certificates in PEM (-----BEGIN CERTIFICATE-----), or leave it out"
      case "tls-failed" where message.contains("certificate"):
        "check the feed's address, and this machine's clock"
      case "body-truncated" where message.contains("a part of it"):
        "a cache or proxy on the way may answer with parts: try again later, or give another address"
      case "headers-too-large": "check the address of the feed: no server of files sends as much before one"
      case "address-refused": "redirects to private addresses are followed only from a private feed"
      case _ where code.hasPrefix("http-5"):
        "try again later; if it stays so, its server needs mending, or the feed has another address by now"
      case _ where code.hasPrefix("http-4"): "check the address of the feed"
      default: nil
      }
    }
  }
}

extension PassPorts {
  /// Reads a document that is no mirror's as a feed is read, and hands it to whoever knows what it is. Blocking.
  ///
  /// - Parameter body: gets the bytes, the URL after redirects and the Content-Type.
  /// - Throws: `PassFailure`: of getting it, or what `body` throws with its place.
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
  /// A feed that is no server's, and could not be opened or read.
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
        "\(name) is no regular file: Tarn does not wait for what may never end",
        hint: "let it come by standard input: tarn sync - FOLDER < \(ShellWord.quote(feed.text))")
    case (.closed, .standardInput):
      self.init(
        .feedUnreachable, code: "feed-not-readable",
        "standard input is closed, and the feed was to come by it",
        hint: "tarn sync - FOLDER < FILE")
    case (.noSpace, _): self.init(spool: failure)
    default:
      self.init(.feedUnreachable, code: "feed-not-readable", "cannot read the feed: \(failure.message)")
    }
  }

  /// The feed cannot be kept while it is read.
  fileprivate init(spool failure: SpoolFailure) {
    self.init(
      .inputOutput, code: "spool-failed", failure.message,
      hint: failure.reason == .noSpace ? "make room there, or lower --reserve" : nil)
  }
}
