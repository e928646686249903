import TarnCore
import TarnRuntime

/// Decides how to request the bytes of one entry: from which source, from which byte, and what follows from each answer. This is a
/// value: it decides, and its owner acts.
struct Attempts {
  /// The last failure of one source.
  struct Trouble: Sendable {
    var source: Int
    var code: String
    var message: String
    var isTransient = false
    var retryAfter: Int64?
    /// True when a request for the rest of the file brought nothing, and one for the whole may succeed.
    var mayBeOfRange = false

    /// True when the source was not asked, because its host is in a rest period.
    var isRest: Bool { code == DownloadFailure.Code.hostResting.rawValue }
  }

  /// The consequence of an answer.
  enum Step {
    /// The file is complete and verified.
    case publish(any PartialFile, Sealed, ResponseHead?)
    /// All bytes are at hand, and only the check is left.
    case seal
    /// The server's version is the one in place.
    case unchanged
    /// Asks again at once.
    ///
    /// - Parameter told: the reason, for people; `nil` when it concerns nobody.
    case ask(told: String?)
    /// Asks again after this many seconds.
    ///
    /// - Parameter isNewRound: true when every source has failed.
    case wait(seconds: Double, told: String, isNewRound: Bool)
    /// There is no room for the file. There may be room once nothing else is running.
    ///
    /// - Parameter failure: the failure; `nil` when a file of unknown size outgrew the room.
    case lacksSpace(FolderFailure?)
    /// No source is left.
    case exhausted(code: String, message: String)
    /// Another source would not help.
    case fail(FolderFailure)
  }

  let action: Action
  let entry: Entry
  /// True to keep the bytes of a file that does not fit.
  var keepsWithoutRoom = false
  /// See `TransferClient.mayAskForTheWhole`.
  var mayAskForTheWhole = true
  /// The URL that sent the file in place, after redirects; `nil` when it is not known.
  var knownURL: String?
  /// The policy for asking all sources again.
  private let retry: RetryPolicy
  /// The randomness for the length of pauses.
  private let random: any RandomSource
  /// The index of the source that is asked now.
  private(set) var source = 0
  /// The number of rounds over all sources, including the present one.
  private var round = 1
  /// The rung of the present request.
  private(set) var rung = ResumeLadder.Rung.fromZero
  /// The number of restarts at this source, because the bytes at hand were of another version, were wrong, or hardly any came.
  private var restarts = 0
  /// The knowledge about the bytes at hand. Without any bytes, what an answer said about its version.
  private(set) var known: ResumeLadder.Known?
  /// The last failure of each source that failed, the newest at the end.
  private(set) var troubles: [Trouble] = []
  /// True when the present request is conditional, so that 304 is a valid answer.
  private var isConditional = false
  /// True once a 304 contradicted the feed, or was that of another file; no conditions are sent after it.
  private var isUnconditional = false
  /// True when the file is made from the bytes that the pass has read as its feed.
  private var isOfDocument = false
  /// The number of times that its connection went to another mirror, because no bytes came.
  private var gaveWay = 0
  /// True when the last answer made the bytes at hand useless.
  private(set) var discards = false
  /// True while all of the file is asked for, and no request for it was sent.
  private var awaitsWhole = false
  /// True once such a request has waited for a host that is left alone.
  private var hasWaitedForWhole = false
  /// True when no byte of the file came.
  private var cameNothing = true
  /// The pause in seconds that the server asked for.
  private var retryAfter: Int64?

  /// The most restarts before a source counts as unstable.
  static let mostRestarts = 3

  init(_ action: Action, _ entry: Entry, _ retry: RetryPolicy, _ random: any RandomSource) {
    (self.action, self.entry) = (action, entry)
    (self.retry, self.random) = (retry, random)
  }

  var url: String { entry.sources[source].url }

  /// Returns whether there are bytes to continue from.
  private static func hasKept(_ known: ResumeLadder.Known?) -> Bool { known.map { $0.kept > 0 } ?? false }

  // MARK: Asking

  /// Returns the next request, except for its urgency.
  ///
  /// - Parameters:
  ///   - room: returns the most bytes that a file of unknown size may have. Called only for such files.
  ///   - document: the place where the pass keeps the bytes of its feed; `nil` to ask the source.
  mutating func request(room: () -> UInt64, document: String?) -> DownloadRequest {
    // A whole passes over the bytes at hand, or takes their place.
    let held = rung == .fromZero ? known?.kept ?? 0 : 0
    var request = DownloadRequest(
      url: document ?? url, limit: entry.size ?? max(room(), 1).addingSaturated(held))
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

  /// Whether an encoded response is accepted. Servers label compressed files as encoded, and their bytes are the file: the receiver
  /// looks whether the coding is the file's own. Any other encoded response is another file, which only a digest would reveal.
  private var takesEncoding: Bool { entry.digest != nil || FileSignature.isPacked(entry) }

  /// The row whose validators make the request conditional, because the file in place may still be the server's version. `nil` when
  /// a digest decides instead.
  private var conditionalRow: Row? {
    guard !isUnconditional, entry.digest == nil, entry.pieces == nil, !Self.hasKept(known),
      let row = action.row,
      action.present != nil,
      action.kind == .update || action.kind == .revalidate, row.etag != nil || row.lastModified != nil
    else { return nil }
    return row
  }

  // MARK: Bytes at hand

  /// Continues from the bytes of an earlier attempt.
  ///
  /// - Returns: true when they are the whole file, and only the check is left.
  mutating func resume(with known: ResumeLadder.Known) -> Bool {
    self.known = known
    // When neither digest nor listing vouches for the bytes, only the server can.
    let isVouchedFor = known.digestDecides || entry.hasFingerprint
    if isVouchedFor, let total = known.total, known.kept == total { return true }
    climb()
    return false
  }

  /// Notes that the exchange was ended before its time.
  mutating func interrupt(_ end: JobEnd) {
    keep(end)
    climb()
  }

  private mutating func keep(_ end: JobEnd) {
    if let atHand = end.atHand { known = atHand.known }
  }

  /// Selects the best rung for the bytes at hand.
  private mutating func climb() { rung = ResumeLadder.rung(known, url: url) }

  // MARK: Answers

  /// Decides what follows from the end of an exchange.
  ///
  /// - Parameter received: the bytes that this exchange brought for the file.
  mutating func next(after end: JobEnd, received: UInt64) -> Step {
    let before = known
    keep(end)
    (discards, cameNothing, retryAfter) = (false, true, nil)
    switch end {
    case .sealed(let partial, let sealed, let head):
      guard rung != .fromZero, head?.status == 206, let step = askAgain(sealed.identity.size, before) else {
        return .publish(partial, sealed, head)
      }
      discard()
      return step
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
      // The file is larger than the space that was free.
      if failure.code == .tooLarge, entry.size == nil {
        if !keepsWithoutRoom { discard() }
        return .lacksSpace(nil)
      }
      // These bytes may be the whole file or only its beginning.
      if failure.code == .lengthUnknown { discard() }
      (cameNothing, retryAfter) = (received == 0, failure.retryAfter)
      return fail(failure.code.rawValue, failure.message, isTransient: failure.isTransient)
    case .folder(let failure, _, let kept): return judge(failure, kept, before: before)
    }
  }

  private mutating func judge(_ verdict: ResumeLadder.Verdict, _ head: ResponseHead) -> Step {
    switch verdict {
    case .append, .passOver, .takeFromZero:
      return fail("bad-response", "unexpected answer", isTransient: true)
    case .nextRung:
      rung = ResumeLadder.rung(known, url: url, after: rung)
      return .ask(told: nil)
    case .askFromZero:
      // The file has grown since, whatever its validators say.
      if let had = known?.total, let total = head.contentRange?.total, total > had { known?.total = nil }
      return restart(hadKept: Self.hasKept(known))
    case .whole: return askAgain(known?.kept ?? 0, known) ?? .seal
    case .contradiction:
      // The next pass asks as if nothing had come before.
      discard()
      let text =
        "has fewer bytes than the same version had before; the server or a cache is wrong, and the next pass asks for all of it"
      return fail("unstable-source", text, isTransient: false)
    case .notModified where isConditional:
      // A stale cache answers where the feed has another size than the version that it confirms.
      let isOtherSize = entry.size.map { $0 != action.row?.identity.size } ?? false
      guard isOtherSize || isOfOtherFile(head) else { return .unchanged }
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

  /// Returns whether a 304 is about another file than the one in place, because redirects lead elsewhere now. Its ETag is the one that
  /// was sent.
  private func isOfOtherFile(_ head: ResponseHead) -> Bool {
    guard let knownURL else {
      // The row does not say where redirects led.
      guard head.url != url, let date = action.row?.lastModified, let said = head.lastModified else {
        return false
      }
      return !date.utf8.elementsEqual(said.utf8)
    }
    let before = ResumeLadder.Sender(
      url: knownURL, etag: action.row?.etag, lastModified: action.row?.lastModified)
    return !ResumeLadder.mayBeSameFile(before, ResumeLadder.Sender(head))
  }

  /// Requests what follows a part that was shorter than requested.
  private mutating func goOn(to total: UInt64, from before: ResumeLadder.Known?) -> Step {
    guard let kept = known?.kept else { return restart(hadKept: Self.hasKept(before)) }
    if !ResumeLadder.isProgress(kept - min(kept, before?.kept ?? 0), of: total) {
      restarts += 1
      guard restarts <= Self.mostRestarts else {
        let text = "ends after \(Units.grouped(kept)) of \(Units.count(total, "byte")), time and again"
        // This happens once: when the rest never comes, the whole may.
        guard restarts > Self.mostRestarts + 1 else { return askForTheWhole(told(text)) }
        return fail("range-too-short", text, isTransient: true)
      }
    }
    climb()
    return .ask(told: nil)
  }

  /// Judges bytes that the server calls the whole file, though nothing told their number when the first of them were sent. The feed's
  /// length may be off, so what is shorter is asked for once more. Of less than half of it nothing is taken.
  ///
  /// - Returns: `nil` when they are taken.
  private mutating func askAgain(_ size: UInt64, _ known: ResumeLadder.Known?) -> Step? {
    guard let known, known.kept > 0, known.total == nil, !known.digestDecides, entry.size == nil,
      let told = entry.hint.length, size < told
    else { return nil }
    if restarts == 0 { return restart(hadKept: true) }
    guard size < told / 2 else { return nil }
    discard()
    let text = "ends after \(Units.grouped(size)) of \(Units.count(told, "byte")) that the feed says"
    return fail("content-mismatch", text, isTransient: false)
  }

  /// Restarts from zero, because the bytes at hand are of another version. The number of restarts is limited.
  private mutating func restart(hadKept: Bool) -> Step {
    guard restarts < Self.mostRestarts, rung != .fromZero || hadKept else {
      let text = "answers with ranges that do not fit, or changes while it is read"
      return fail("unstable-source", text, isTransient: false)
    }
    restarts += 1
    // The size of the version is still known.
    known?.kept = 0
    known?.durable = 0
    rung = .fromZero
    return .ask(told: nil)
  }

  /// - Parameter kept: the knowledge about the bytes at hand; `nil` when they are useless.
  private mutating func judge(
    _ failure: FolderFailure, _ kept: ResumeLadder.Known?, before: ResumeLadder.Known?
  ) -> Step {
    switch failure.code {
    // The bytes of an earlier attempt are unchanged.
    case .contentMismatch where kept != nil:
      // Something between here and the server may answer such requests with a page of its own.
      if rung != .fromZero {
        return askForTheWhole(told("answers the request for the rest of the file with something else"))
      }
    case .digestMismatch, .sizeMismatch, .contentMismatch:
      discard()
      // It included bytes of an earlier attempt, which may be the wrong ones.
      if Self.hasKept(before) { return restart(hadKept: true) }
    case .pieceMismatch:
      // The bad piece began before the bytes of this source, so bytes of an earlier attempt may be wrong.
      if failure.goodPrefix ?? .max < before?.kept ?? 0, restarts < Self.mostRestarts {
        restarts += 1
        climb()
        return .ask(told: nil)
      }
    // In a mirror, a file that does not fit must not keep others from fitting.
    case .noSpace, .quota:
      if !keepsWithoutRoom { discard() }
      return .lacksSpace(failure)
    default: return .fail(failure)
    }
    return fail(failure.code.rawValue, failure.message, isTransient: false)
  }

  /// Forgets the bytes at hand, which are useless now.
  private mutating func discard() { (known, discards) = (nil, true) }

  // MARK: The whole

  /// Asks once more without a range, when the request for the rest of a file was refused. The partial file stays until the whole
  /// one comes.
  ///
  /// - Returns: `nil` when the answer has another cause.
  private mutating func askWithoutRange(_ status: HTTPStatus) -> Step? {
    guard rung != .fromZero, ResumeLadder.mayGiveTheWhole(status) else { return nil }
    return askForTheWhole(told("refuses the rest of the file (\(status.code))"))
  }

  private mutating func askForTheWhole(_ reason: String) -> Step {
    (rung, awaitsWhole) = (.fromZero, true)
    return .ask(told: "\(reason); all of it is asked for")
  }

  /// Returns whether a request without a range may succeed. Servers and proxies fail at ranges in many ways. The failures listed
  /// here have other causes.
  private static func mayBeOfRange(_ code: String) -> Bool {
    let others: Set<DownloadFailure.Code> = [
      .resolve, .connect, .tls, .addressRefused, .urlRefused, .fileNotReadable, .hostResting, .tooLarge,
      .outOfMemory, .tooManyOpenFiles, .refusedByReceiver,
    ]
    return DownloadFailure.Code(rawValue: code).map { !others.contains($0) } ?? code.hasPrefix("http-")
  }

  // MARK: Sources

  private func told(_ text: String) -> String { "\(Printable.escape(url)): \(text)" }

  /// Handles the failure of a source: the next one is asked, else all again after a pause, else the entry is exhausted.
  private mutating func fail(_ code: String, _ text: String, isTransient: Bool) -> Step {
    if isOfDocument {
      isOfDocument = false
      return .ask(told: nil)
    }
    let message = told(text)
    var trouble = Trouble(
      source: source, code: code, message: message, isTransient: isTransient, retryAfter: retryAfter)
    // A server that asked for a pause must not be made to send more. A host that is left alone was not asked: what brought it there
    // still counts.
    trouble.mayBeOfRange =
      trouble.isRest
      ? awaitsWhole || rung != .fromZero && troubles.contains { $0.source == source && $0.mayBeOfRange }
      : cameNothing && rung != .fromZero && retryAfter == nil && Self.mayBeOfRange(code)
    if !trouble.isRest { awaitsWhole = false }
    if let retryAfter, !trouble.isRest { trouble.message += "; it asked for a pause of \(retryAfter) s" }
    troubles.removeAll { $0.source == trouble.source }
    troubles.append(trouble)
    if let next = usableSource(from: source + 1) {
      source = next
      climb()
      return .ask(told: message)
    }
    guard let first = usableSource(from: 0) else { return exhaust(code, message) }
    // A resting host is waited for only when no other source may recover before.
    let asked = troubles.filter { !$0.isRest }
    let isResting = !asked.contains(where: \.isTransient)
    let waited = isResting ? troubles : asked
    let verdict = retry.judge(
      attempt: round, isTransient: troubles.contains(where: \.isTransient),
      asked: waited.compactMap(\.retryAfter).min(), isResting: isResting, random: random.unit())
    guard case .retry(let seconds) = verdict else { return exhaust(code, message) }
    round += 1
    // A request that was not sent stays as it is, or asks for all of the file.
    if trouble.isRest, source == first {
      if trouble.mayBeOfRange { (rung, awaitsWhole) = (.fromZero, true) }
    } else {
      source = first
      climb()
    }
    return .wait(seconds: seconds, told: message, isNewRound: true)
  }

  /// Handles the failure of all sources. One may fail only at requests for the rest of the file, which no later pass would then
  /// ever complete. Each such source is asked for the whole file, once, as soon as its host is asked at all.
  private mutating func exhaust(_ code: String, _ message: String) -> Step {
    guard mayAskForTheWhole, let trouble = troubles.first(where: \.mayBeOfRange) else {
      return .exhausted(code: code, message: message)
    }
    source = trouble.source
    guard trouble.isRest, let rest = trouble.retryAfter else { return askForTheWhole(trouble.message) }
    guard rest <= retry.mostRest, !hasWaitedForWhole else {
      return .exhausted(code: code, message: message)
    }
    hasWaitedForWhole = true
    (rung, awaitsWhole) = (.fromZero, true)
    return .wait(seconds: Double(rest), told: trouble.message, isNewRound: true)
  }

  /// Returns the first source from this one on that did not fail for good; `nil` when there is none.
  private func usableSource(from first: Int) -> Int? {
    (first..<entry.sources.count).first { source in
      troubles.allSatisfy { $0.source != source || $0.isTransient }
    }
  }

  /// The failures, source by source; empty when there was none.
  var troubleText: String {
    guard troubles.count > 1, entry.sources.count > 1 else { return troubles.last?.message ?? "" }
    return troubles.suffix(3).map(\.message).joined(separator: "; ")
  }
}
