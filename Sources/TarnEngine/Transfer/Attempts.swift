import TarnCore
import TarnRuntime

/// How the bytes of one entry are asked for: of which source, from which byte, and what follows from each answer. A value: it decides,
/// and whoever owns it acts.
struct Attempts {
  /// What one source told last when it failed.
  struct Trouble: Sendable {
    var source: Int
    var code: String
    var message: String
    var isTransient = false
    var retryAfter: Int64?
    /// A request for the rest of the file brought nothing, where one for the whole may.
    var mayBeOfRange = false

    /// The source was not asked: its host is left alone.
    var isRest: Bool { code == DownloadFailure.Code.hostResting.rawValue }
  }

  /// What follows from an answer.
  enum Step {
    /// Whole and checked.
    case publish(any PartialFile, Sealed, ResponseHead?)
    /// All bytes are at hand: only the check is left.
    case seal
    /// The server's version is the one that stands there.
    case unchanged
    /// Ask again at once.
    ///
    /// - Parameter told: why, for people; nil for what concerns nobody.
    case ask(told: String?)
    /// Ask again after so many seconds.
    ///
    /// - Parameter isNewRound: every source has failed.
    case wait(seconds: Double, told: String, isNewRound: Bool)
    /// There is no room for it: with nothing else at work there may be.
    ///
    /// - Parameter failure: nil where its size was not known, and it became larger than the room there was.
    case lacksSpace(FolderFailure?)
    /// No source is left.
    case exhausted(code: String, message: String)
    /// No source would help.
    case fail(FolderFailure)
  }

  let action: Action
  let entry: Entry
  /// How often all sources are asked.
  private let retry: RetryPolicy
  /// For the length of a pause.
  private let random: any RandomSource
  /// Which source is asked now.
  private(set) var source = 0
  /// Rounds over all sources so far, the running one included.
  private var round = 1
  /// The rung asked with now.
  private(set) var rung = ResumeLadder.Rung.fromZero
  /// Times that its source was asked anew, because bytes at hand were of another version or not what they should be, or hardly any
  /// came.
  private var restarts = 0
  /// What is proved of the bytes at hand; with none of these, what an answer said of the version that it brought.
  private(set) var known: ResumeLadder.Known?
  /// What each source that failed told last, the newest at the end.
  private(set) var troubles: [Trouble] = []
  /// The running request set a condition, so 304 is an answer to it.
  private var isConditional = false
  /// A 304 contradicted the feed: no conditions any more.
  private var isUnconditional = false
  /// Made from the bytes that the pass has read as its feed.
  private var isOfDocument = false
  /// Times that its place went to another mirror, because nothing came.
  private var gaveWay = 0
  /// The last answer made the bytes at hand be of no use any more.
  private(set) var discards = false
  /// It brought not a byte of the file.
  private var cameNothing = true
  /// Seconds that its server asked for.
  private var retryAfter: Int64?

  /// More restarts than this, and the source is called unstable.
  static let mostRestarts = 3

  init(_ action: Action, _ entry: Entry, _ retry: RetryPolicy, _ random: any RandomSource) {
    (self.action, self.entry) = (action, entry)
    (self.retry, self.random) = (retry, random)
  }

  var url: String { entry.sources[source].url }

  /// There are bytes to go on from.
  private static func hasKept(_ known: ResumeLadder.Known?) -> Bool { known.map { $0.kept > 0 } ?? false }

  // MARK: Asking

  /// The next request, but for its urgency.
  ///
  /// - Parameters:
  ///   - room: bytes that a file of unknown size may have; called for such a one only.
  ///   - document: where the pass keeps the bytes that it has read as its feed; nil to ask the source.
  mutating func request(room: () -> UInt64, document: String?) -> DownloadRequest {
    var request = DownloadRequest(url: document ?? url, limit: entry.size ?? max(room(), 1))
    if rung != .fromZero, let known {
      request.offset = known.kept
      request.ifRange = rung == .etag ? known.etag : rung == .lastModified ? known.lastModified : nil
    } else if let row = conditionalRow {
      request.ifNoneMatch = row.etag
      request.ifModifiedSince = row.lastModified
    }
    let size = entry.size ?? action.row?.identity.size
    request.expected = size.map { $0 - min($0, request.offset) }
    request.patience = DownloadRequest.patience(gaveWay: gaveWay)
    request.encoding = takesEncoding ? .taken : .refused
    isConditional = request.ifNoneMatch != nil || request.ifModifiedSince != nil
    isOfDocument = document != nil
    return request
  }

  /// Servers label compressed files as encoded: the bytes are the file. Anything else that is sent encoded is
  /// another file, which only a digest would tell.
  private var takesEncoding: Bool {
    let compressed = [".gz", ".tgz", ".bz2", ".xz", ".zst", ".br", ".Z", ".svgz", ".lzma"]
    let name = entry.path.bytes
    return entry.digest != nil || compressed.contains { name.suffix($0.utf8.count).elementsEqual($0.utf8) }
  }

  /// Ask conditionally: what stands there may be the server's version still. Only where no digest decides.
  private var conditionalRow: Row? {
    guard !isUnconditional, entry.digest == nil, entry.pieces == nil, !Self.hasKept(known),
      let row = action.row,
      action.present != nil,
      action.kind == .update || action.kind == .revalidate, row.etag != nil || row.lastModified != nil
    else { return nil }
    return row
  }

  // MARK: Bytes at hand

  /// Goes on with the bytes of an earlier attempt.
  ///
  /// - Returns: whether they are all of the file, and only the check is left.
  mutating func resume(with known: ResumeLadder.Known) -> Bool {
    self.known = known
    // Where neither digest nor listing vouches for the bytes, only the server can.
    let isVouchedFor = known.digestDecides || entry.hasFingerprint
    if isVouchedFor, let total = known.total, known.kept == total { return true }
    climb()
    return false
  }

  /// The exchange was ended before its time.
  mutating func interrupt(_ end: JobEnd) {
    keep(end)
    climb()
  }

  private mutating func keep(_ end: JobEnd) {
    if let atHand = end.atHand { known = atHand.known }
  }

  /// Back to the best rung for the bytes at hand.
  private mutating func climb() { rung = ResumeLadder.rung(known, url: url) }

  // MARK: Answers

  /// Decides what follows from the end of an exchange.
  ///
  /// - Parameter received: bytes that came for the file in it.
  mutating func next(after end: JobEnd, received: UInt64) -> Step {
    let before = known
    keep(end)
    (discards, cameNothing, retryAfter) = (false, true, nil)
    switch end {
    case .sealed(let partial, let sealed, let head): return .publish(partial, sealed, head)
    case .verdict(let verdict, let head): return judge(verdict, head)
    case .short(_, _, let total): return goOn(to: total, from: before)
    case .wrongSize(let said, let note):
      let size = Units.grouped(entry.size ?? 0)
      let text = "has \(Units.count(said, "byte")), the feed says \(size)\(note)"
      return fail("size-mismatch", text, isTransient: false)
    case .isDirectory:
      let text =
        "is a directory, which this kind of index does not tell from a file; nothing below it is mirrored"
      return fail("is-a-directory", text, isTransient: false)
    case .network(let failure, _, _) where failure.code == .gaveWay:
      let seconds = DownloadRequest.patience(gaveWay: gaveWay)
      gaveWay += 1
      climb()
      return .wait(seconds: Double(seconds), told: told(failure.message), isNewRound: false)
    case .network(let failure, _, _):
      // More than the space that was free then.
      if failure.code == .tooLarge, entry.size == nil {
        discard()
        return .lacksSpace(nil)
      }
      // Nobody knows whether these bytes are the file, or its beginning.
      if failure.code == .lengthUnknown { discard() }
      (cameNothing, retryAfter) = (received == 0, failure.retryAfter)
      return fail(failure.code.rawValue, failure.message, isTransient: failure.isTransient)
    case .folder(let failure, _, let kept): return judge(failure, kept, before: before)
    }
  }

  private mutating func judge(_ verdict: ResumeLadder.Verdict, _ head: ResponseHead) -> Step {
    switch verdict {
    case .append, .takeFromZero: return fail("bad-response", "unexpected answer", isTransient: true)
    case .nextRung:
      rung = ResumeLadder.rung(known, url: url, after: rung)
      return .ask(told: nil)
    case .askFromZero: return restart(hadKept: Self.hasKept(known))
    case .whole: return .seal
    case .contradiction:
      // The next pass asks as if nothing had come before.
      discard()
      let text =
        "has fewer bytes than the same version had before; the server or a cache is wrong, and the next pass asks for all of it"
      return fail("unstable-source", text, isTransient: false)
    case .notModified where isConditional:
      guard let size = entry.size, size != action.row?.identity.size else { return .unchanged }
      // A stale cache: the feed says another size than that of the version that it vouches for.
      isUnconditional = true
      return .ask(told: nil)
    case .notModified:
      let text = "the server says 'not modified' (304) to a request without a condition"
      return askWithoutRange(HTTPStatus(head.status)) ?? fail("bad-response", text, isTransient: false)
    case .status(let status):
      if let step = askWithoutRange(status) { return step }
      retryAfter = head.retryAfter
      return fail(status.name, status.message, isTransient: status.isTransient)
    }
  }

  /// Asks for what is behind a part that was shorter than asked for.
  private mutating func goOn(to total: UInt64, from before: ResumeLadder.Known?) -> Step {
    guard let kept = known?.kept else { return restart(hadKept: Self.hasKept(before)) }
    if !ResumeLadder.isProgress(kept - min(kept, before?.kept ?? 0), of: total) {
      restarts += 1
      guard restarts <= Self.mostRestarts else {
        let text = "ends after \(Units.grouped(kept)) of \(Units.count(total, "byte")), time and again"
        // Once: where the rest never comes, the whole may.
        guard restarts > Self.mostRestarts + 1 else { return askForTheWhole(told(text)) }
        return fail("range-too-short", text, isTransient: true)
      }
    }
    climb()
    return .ask(told: nil)
  }

  /// The bytes at hand are of another version: from zero, but not for ever.
  private mutating func restart(hadKept: Bool) -> Step {
    guard restarts < Self.mostRestarts, rung != .fromZero || hadKept else {
      let text = "answers with ranges that do not fit, or changes while it is read"
      return fail("unstable-source", text, isTransient: false)
    }
    restarts += 1
    // How many the version has is known still.
    known?.kept = 0
    known?.durable = 0
    rung = .fromZero
    return .ask(told: nil)
  }

  /// - Parameter kept: what is known of the bytes at hand; nil where they are of no use.
  private mutating func judge(
    _ failure: FolderFailure, _ kept: ResumeLadder.Known?, before: ResumeLadder.Known?
  ) -> Step {
    switch failure.code {
    // The bytes of an earlier attempt are as they were.
    case .contentMismatch where kept != nil: break
    case .digestMismatch, .sizeMismatch, .contentMismatch:
      discard()
      // Bytes of an earlier attempt were in it: they may be what is wrong.
      if Self.hasKept(before), failure.code != .contentMismatch { return restart(hadKept: true) }
    case .pieceMismatch:
      // It began before what this source sent: bytes of an earlier attempt may be what is wrong.
      if failure.goodPrefix ?? .max < before?.kept ?? 0, restarts < Self.mostRestarts {
        restarts += 1
        climb()
        return .ask(told: nil)
      }
    // What does not fit must not keep others from fitting.
    case .noSpace, .quota:
      discard()
      return .lacksSpace(failure)
    default: return .fail(failure)
    }
    return fail(failure.code.rawValue, failure.message, isTransient: false)
  }

  /// Forgets what is known of the bytes at hand, which are of no use any more.
  private mutating func discard() { (known, discards) = (nil, true) }

  // MARK: The whole

  /// Asks once more, without a range, where the request for the rest of a file was refused. The partial file stays until the whole
  /// one comes.
  ///
  /// - Returns: nil when the answer has another cause.
  private mutating func askWithoutRange(_ status: HTTPStatus) -> Step? {
    guard rung != .fromZero, ResumeLadder.mayGiveTheWhole(status) else { return nil }
    return askForTheWhole(told("refuses the rest of the file (\(status.code))"))
  }

  private mutating func askForTheWhole(_ reason: String) -> Step {
    rung = .fromZero
    return .ask(told: "\(reason); all of it is asked for")
  }

  /// Whether a request without a range may fare better: servers, and what stands before them, fail at ranges in many ways. Of
  /// these failures a range is no cause.
  private static func mayBeOfRange(_ code: String) -> Bool {
    let others: Set<DownloadFailure.Code> = [
      .resolve, .connect, .tls, .addressRefused, .urlRefused, .fileNotReadable, .hostResting, .tooLarge,
      .outOfMemory, .tooManyOpenFiles, .refusedByReceiver,
    ]
    return DownloadFailure.Code(rawValue: code).map { !others.contains($0) } ?? code.hasPrefix("http-")
  }

  // MARK: Sources

  private func told(_ text: String) -> String { "\(Printable.escape(url)): \(text)" }

  /// One source failed: the next one, else a pause and all of them again, else the entry has no source left.
  private mutating func fail(_ code: String, _ text: String, isTransient: Bool) -> Step {
    if isOfDocument {
      isOfDocument = false
      return .ask(told: nil)
    }
    let message = told(text)
    var trouble = Trouble(
      source: source, code: code, message: message, isTransient: isTransient, retryAfter: retryAfter)
    // A server that asked for a pause is not to send more.
    trouble.mayBeOfRange =
      cameNothing && rung != .fromZero && retryAfter == nil && Self.mayBeOfRange(code)
    if let retryAfter, !trouble.isRest { trouble.message += "; it asked for a pause of \(retryAfter) s" }
    troubles.removeAll { $0.source == trouble.source }
    troubles.append(trouble)
    if let next = usableSource(from: source + 1) {
      source = next
      climb()
      return .ask(told: message)
    }
    guard let first = usableSource(from: 0) else { return exhaust(code, message) }
    // A host that rests is waited for only where no other source may be back before.
    let asked = troubles.filter { !$0.isRest }
    let isResting = !asked.contains(where: \.isTransient)
    let waited = isResting ? troubles : asked
    let verdict = retry.judge(
      attempt: round, isTransient: troubles.contains(where: \.isTransient),
      asked: waited.compactMap(\.retryAfter).min(), isResting: isResting, random: random.unit())
    guard case .retry(let seconds) = verdict else { return exhaust(code, message) }
    source = first
    round += 1
    climb()
    return .wait(seconds: seconds, told: message, isNewRound: true)
  }

  /// All sources were tried. Perhaps one of them fails only at requests for the rest of the file: else no later pass would ever get
  /// it. Each such source is asked for the whole, once.
  private mutating func exhaust(_ code: String, _ message: String) -> Step {
    guard let trouble = troubles.first(where: \.mayBeOfRange) else {
      return .exhausted(code: code, message: message)
    }
    source = trouble.source
    return askForTheWhole(trouble.message)
  }

  /// The first source from this one on that did not fail for good; nil when there is none.
  private func usableSource(from first: Int) -> Int? {
    (first..<entry.sources.count).first { source in
      troubles.allSatisfy { $0.source != source || $0.isTransient }
    }
  }

  /// What went wrong, source by source; empty where nothing did.
  var troubleText: String {
    guard troubles.count > 1, entry.sources.count > 1 else { return troubles.last?.message ?? "" }
    return troubles.suffix(3).map(\.message).joined(separator: "; ")
  }
}
