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
    var isTransient: Bool
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

  /// More restarts than this, and the source is called unstable.
  static let mostRestarts = 3

  init(_ action: Action, _ entry: Entry) {
    self.action = action
    self.entry = entry
  }

  var url: String { entry.sources[source].url }

  /// There are bytes to go on from.
  private var hasKept: Bool { Self.hasKept(known) }

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
    guard !isUnconditional, entry.digest == nil, entry.pieces == nil, !hasKept, let row = action.row,
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
  /// - Parameters:
  ///   - received: bytes that came for the file in it.
  ///   - retry: how often all sources are asked.
  ///   - random: for the length of a pause.
  /// - Returns: the step, and whether the bytes at hand are of no use any more.
  mutating func next(
    after end: JobEnd, received: UInt64, retry: RetryPolicy, random: any RandomSource
  ) -> (step: Step, discards: Bool) {
    let before = known
    keep(end)
    var failing = Failing(cameNothing: true, retry: retry, random: random)
    switch end {
    case .sealed(let partial, let sealed, let head): return (.publish(partial, sealed, head), false)
    case .verdict(let verdict, let head): return judge(verdict, head, failing)
    case .short(_, _, let total): return (goOn(to: total, from: before, failing), false)
    case .wrongSize(let said, let note):
      let size = entry.size ?? 0
      let text = "has \(Units.count(said, "byte")), the feed says \(Units.grouped(size))\(note)"
      return (fail("size-mismatch", text, isTransient: false, failing), false)
    case .isDirectory:
      let text =
        "is a directory, which this kind of index does not tell from a file; nothing below it is mirrored"
      return (fail("is-a-directory", text, isTransient: false, failing), false)
    case .network(let failure, _, _) where failure.code == .gaveWay:
      let seconds = DownloadRequest.patience(gaveWay: gaveWay)
      gaveWay += 1
      climb()
      return (.wait(seconds: Double(seconds), told: told(failure.message), isNewRound: false), false)
    case .network(let failure, _, _):
      // More than the space that was free then.
      if failure.code == .tooLarge, entry.size == nil { return (.lacksSpace(nil), discard()) }
      failing.cameNothing = received == 0
      failing.retryAfter = failure.retryAfter
      let (code, isTransient) = (failure.code.rawValue, failure.isTransient)
      return (fail(code, failure.message, isTransient: isTransient, failing), false)
    case .folder(let failure, _, let kept): return judge(failure, kept, before: before, failing)
    }
  }

  private mutating func judge(
    _ verdict: ResumeLadder.Verdict, _ head: ResponseHead, _ failing: Failing
  ) -> (Step, Bool) {
    switch verdict {
    case .append, .takeFromZero:
      return (fail("bad-response", "unexpected answer", isTransient: true, failing), false)
    case .nextRung:
      rung = ResumeLadder.rung(known, url: url, after: rung)
      return (.ask(told: nil), false)
    case .askFromZero: return (restart(failing, hadKept: hasKept), false)
    case .whole: return (.seal, false)
    case .contradiction:
      // The next pass asks as if nothing had come before.
      let discards = discard()
      let text =
        "has fewer bytes than the same version had before; the server or a cache is wrong, and the next pass asks for all of it"
      return (fail("unstable-source", text, isTransient: false, failing), discards)
    case .notModified where isConditional:
      guard let size = entry.size, size != action.row?.identity.size else { return (.unchanged, false) }
      // A stale cache: the feed says another size than that of the version that it vouches for.
      isUnconditional = true
      return (.ask(told: nil), false)
    case .notModified:
      if let step = askWithoutRange(HTTPStatus(head.status)) { return (step, false) }
      let text = "the server says 'not modified' (304) to a request without a condition"
      return (fail("bad-response", text, isTransient: false, failing), false)
    case .status(let status):
      if let step = askWithoutRange(status) { return (step, false) }
      var failing = failing
      failing.retryAfter = head.retryAfter
      return (fail(status.name, status.message, isTransient: status.isTransient, failing), false)
    }
  }

  /// Asks for what is behind a part that was shorter than asked for.
  private mutating func goOn(
    to total: UInt64, from before: ResumeLadder.Known?, _ failing: Failing
  ) -> Step {
    guard let kept = known?.kept else { return restart(failing, hadKept: Self.hasKept(before)) }
    let hasRoom = restarts < Self.mostRestarts
    if !ResumeLadder.isProgress(kept - min(kept, before?.kept ?? 0), of: total) {
      restarts += 1
      guard hasRoom else {
        let text = "ends after \(Units.grouped(kept)) of \(Units.count(total, "byte")), time and again"
        // Once: where the rest never comes, the whole may.
        guard restarts > Self.mostRestarts + 1 else { return askForTheWhole(told(text)) }
        return fail("range-too-short", text, isTransient: true, failing)
      }
    }
    climb()
    return .ask(told: nil)
  }

  /// The bytes at hand are of another version: from zero, but not for ever.
  private mutating func restart(_ failing: Failing, hadKept: Bool) -> Step {
    guard restarts < Self.mostRestarts, rung != .fromZero || hadKept else {
      let text = "answers with ranges that do not fit, or changes while it is read"
      return fail("unstable-source", text, isTransient: false, failing)
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
    _ failure: FolderFailure, _ kept: ResumeLadder.Known?, before: ResumeLadder.Known?, _ failing: Failing
  ) -> (Step, Bool) {
    let (code, text) = (failure.code.rawValue, failure.message)
    switch failure.code {
    case .contentMismatch where kept != nil:
      // The bytes of an earlier attempt are as they were.
      return (fail(code, text, isTransient: false, failing), false)
    case .digestMismatch, .sizeMismatch, .contentMismatch:
      let discards = discard()
      // Bytes of an earlier attempt were in it: they may be what is wrong.
      if Self.hasKept(before), failure.code != .contentMismatch {
        return (restart(failing, hadKept: true), discards)
      }
      return (fail(code, text, isTransient: false, failing), discards)
    case .pieceMismatch:
      // It began before what this source sent: bytes of an earlier attempt may be what is wrong.
      if failure.goodPrefix ?? .max < before?.kept ?? 0, restarts < Self.mostRestarts {
        restarts += 1
        climb()
        return (.ask(told: nil), false)
      }
      return (fail(code, text, isTransient: false, failing), false)
    // What does not fit must not keep others from fitting.
    case .noSpace, .quota: return (.lacksSpace(failure), discard())
    default: return (.fail(failure), false)
    }
  }

  /// Forgets what is known of the bytes at hand, which are of no use any more.
  private mutating func discard() -> Bool {
    known = nil
    return true
  }

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

  /// How a source failed.
  private struct Failing {
    /// Not a byte of the file.
    var cameNothing: Bool
    /// Seconds that its server asked for.
    var retryAfter: Int64?
    let retry: RetryPolicy
    let random: any RandomSource
  }

  private func told(_ text: String) -> String { "\(Printable.escape(url)): \(text)" }

  /// One source failed: the next one, else a pause and all of them again, else the entry has no source left.
  private mutating func fail(
    _ code: String, _ text: String, isTransient: Bool, _ failing: Failing
  ) -> Step {
    if isOfDocument {
      isOfDocument = false
      return .ask(told: nil)
    }
    let message = told(text)
    var trouble = Trouble(
      source: source, code: code, message: message, isTransient: isTransient, retryAfter: failing.retryAfter)
    // A server that asked for a pause is not to send more.
    trouble.mayBeOfRange =
      failing.cameNothing && rung != .fromZero && failing.retryAfter == nil && Self.mayBeOfRange(code)
    if let seconds = failing.retryAfter, !trouble.isRest {
      trouble.message += "; it asked for a pause of \(seconds) s"
    }
    note(trouble)
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
    let verdict = failing.retry.judge(
      attempt: round, isTransient: troubles.contains(where: \.isTransient),
      asked: waited.compactMap(\.retryAfter).min(), isResting: isResting, random: failing.random.unit())
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

  private mutating func note(_ trouble: Trouble) {
    troubles.removeAll { $0.source == trouble.source }
    troubles.append(trouble)
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
