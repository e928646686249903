import TarnCore
import TarnRuntime

/// The parts that all receivers of a submission share.
struct FileReceiverContext: Sendable {
  let client: TransferClient
  let lanes: Lanes
  let checkpoints: Checkpoints
  let blocks: BlockPool
  let space: SpaceBudget
  let post: @Sendable (JobMessage) -> Void

  /// Writes the row of a partial file.
  ///
  /// - Parameter isDurable: true when an older row must not come back.
  func record(_ row: PartialRow, isDurable: Bool) {
    do throws(LedgerFailure) {
      if isDurable {
        try client.ledger.apply([.partial(row)])
      } else {
        try client.ledger.applyVolatile([.partial(row)])
      }
    } catch {
      post(.ledgerFailed(error))
    }
  }

  /// Drops the row of a partial file that is gone. The next file may have its name and no row of its own, and a kill would leave it
  /// under this one.
  func dropRow(of path: RelativePath) {
    do throws(LedgerFailure) {
      try client.ledger.apply([.dropPartial(path)])
    } catch {
      post(.ledgerFailed(error))
    }
  }
}

/// Receives the bytes of one exchange: collects them on the network's thread, and writes and hashes them on a lane. The bytes of
/// one turn of the network go there together, for a small file all of them.
final class FileReceiver: DownloadReceiver {
  /// The most bytes of one transfer that wait for the lane. Beyond it the transfer pauses. A kill loses them, and with them the
  /// chunk that exceeds the limit (CURL_MAX_WRITE_SIZE: 16 KiB). It also loses the buffer of a paused libcurl and the kernel's
  /// buffer for a near peer, 256 KiB each. Together these are 912 KiB of the 1 MiB that may be lost (I3).
  static let most = 384 << 10
  /// The bytes that go to the lane before the turn is over, so that both threads have work. Half as many would cost a twentieth of
  /// a large file's time, because the threads would switch twice as often.
  static let handful = 256 << 10
  /// The largest known size of files that start anew after a crash: they get a row only when their exchange is interrupted.
  static let rowless: UInt64 = 1 << 20

  private struct State {
    var verdict: ResumeLadder.Verdict?
    /// The end that the response head alone decides: no byte is wanted.
    var end: JobEnd?
    /// The reserved space for a size that only the response told. It is given back at the end.
    var reserved: UInt64 = 0
    /// True when the body is the file, whatever the response says.
    var isTaken = false
    /// The bytes until free space is checked again, for a response without a size.
    var unchecked: UInt64 = 0
    var head: ResponseHead?
    var partial: (any PartialFile)?
    private(set) var failure: FolderFailure?
    /// The bytes that are not written yet: those of `gathered`, and those on the lane.
    var queued = 0
    /// The bytes that were accepted.
    var received: UInt64 = 0
    /// The bytes that come next and are at hand already.
    var toPassOver: UInt64 = 0
    var gathered: ByteBlock?
    /// True when the lane is about to take what was gathered.
    var isScheduled = false
    /// True while its bytes are wanted and no file has been opened for them.
    var isToOpen = false
    var isPaused = false
    var download: DownloadID?
    var known: ResumeLadder.Known?
    /// The knowledge before the request, when the response may be the rest of the file without saying so.
    var before: ResumeLadder.Known?
    var mark: Checkpoints.Mark?
    /// The beginning of a body that is no file, for the observer of responses.
    var refused: [UInt8]?
    /// The first bytes of the file, when they may be doubtful and this exchange brings them.
    var opening: [UInt8] = []

    /// Keeps the first failure. Nothing is written after it, because its bytes would be missing.
    mutating func fail(_ failure: FolderFailure?) { self.failure = self.failure ?? failure }
  }

  private let job: UInt64
  private let lane: Int
  /// True when its file is made on one lane and filled on the next.
  private let isSmall: Bool
  /// True when making a name costs more than the bytes, and it replaces no file.
  private let mayBeUnnamed: Bool
  private let entry: Entry
  /// The record of the file that this one is to replace; `nil` when none is in place as Tarn left it.
  private let recorded: Row?
  private let check: ContentCheck
  private let doubt: ContentDoubt?
  private let url: String
  private let rung: ResumeLadder.Rung
  private let context: FileReceiverContext
  private let state: Locked<State>

  init(_ job: Job, context: FileReceiverContext) {
    self.job = job.id
    lane = job.lane
    isSmall = Job.isForFirstLane(job.entry)
    mayBeUnnamed = isSmall && job.action.present == nil
    entry = job.entry
    recorded = [.update, .revalidate].contains(job.action.kind) ? job.action.row : nil
    check = job.check
    doubt = job.doubt
    url = job.attempts.url
    rung = job.attempts.rung
    self.context = context
    state = Locked(State(partial: job.partial, known: job.attempts.known))
  }

  /// Sets the id of the exchange, so that a paused one can be resumed.
  func started(_ id: DownloadID) {
    let isWaiting = state.withLock { state -> Bool in
      state.download = id
      return Self.mayGoOn(&state)
    }
    if isWaiting { context.client.downloader.resume(id) }
  }

  /// Returns true when the transfer is paused and there is room again. The caller must resume it.
  private static func mayGoOn(_ state: inout State) -> Bool {
    guard state.isPaused, state.download != nil, state.queued < most / 2 else { return false }
    state.isPaused = false
    return true
  }

  // MARK: On the network's thread

  func placed() { context.client.progress.place(job) }

  func begin(_ head: ResponseHead) -> HeadVerdict {
    let heard = context.client.responses?.responded(entry.path, head) ?? .usual
    let (verdict, isWanted) = state.withLock { state in
      // What the feed says goes before what the server has said of the version in place.
      let isSaid = check.digest != nil || check.size != nil
      let known = state.known ?? (isSaid ? nil : ResumeLadder.known(of: recorded, head, url: url))
      var verdict = ResumeLadder.judge(head, rung: rung, known: known, url: url)
      if case .take = heard {
        state.isTaken = true
        if case .status = verdict { verdict = .takeFromZero }
        if verdict == .contradiction, state.known == nil { verdict = .takeFromZero }
      }
      // A rest in another coding belongs to other bytes.
      if verdict == .append, isInOtherCoding(head) { verdict = .askFromZero }
      if verdict == .passOver {
        state.toPassOver = state.known?.kept ?? 0
        verdict = .append
      }
      state.head = head
      state.verdict = verdict
      if rung != .fromZero, verdict == .takeFromZero { state.before = state.known }
      if entry.mayBeDirectory, (200..<300).contains(head.status), Self.isSlashAdded(head.url, to: url) {
        state.end = .isDirectory
        return (verdict, false)
      }
      if case .end(let failure) = heard {
        state.fail(failure)
        return (verdict, false)
      }
      if context.client.responses != nil, case .status(let status) = verdict, status.code >= 400 {
        state.refused = []
        return (verdict, true)
      }
      let said = Self.announced(head, verdict)
      if let said, let size = check.size {
        if said != size { state.end = .wrongSize(said: said, note: Self.encodingNote(head)) }
      } else if let said {
        // The kept bytes are already on the disk.
        let more = verdict == .append ? said - min(said, state.known?.kept ?? 0) : said
        if context.space.reserve(told: more) {
          state.reserved = more
        } else {
          state.fail(FolderFailure(.noSpace, context.space.refusal(more)))
        }
      }
      state.isToOpen =
        state.end == nil && state.failure == nil && (verdict == .append || verdict == .takeFromZero)
      return (verdict, state.isToOpen)
    }
    guard isWanted else { return .headOnly }
    if check.size == nil, let said = Self.announced(head, verdict) {
      context.client.progress.learn(job, total: said)
    }
    return .accept
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> ByteVerdict {
    let (verdict, isDue) = state.withLock { state -> (ByteVerdict, Bool) in
      if let refused = state.refused {
        state.refused = refused + bytes.prefix(Self.mostRefused - refused.count)
        return (refused.count + bytes.count <= Self.mostRefused ? .taken : .abort, false)
      }
      doubtOpening(bytes, &state)
      if state.failure != nil { return (.abort, false) }
      guard state.queued < Self.most else {
        state.isPaused = true
        return (.full, false)
      }
      let passed = min(state.toPassOver, UInt64(bytes.count))
      state.toPassOver -= passed
      let rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(Int(passed)))
      if !rest.isEmpty { gather(rest, &state) }
      return (.taken, (state.gathered?.count ?? 0) >= Self.handful && Self.schedule(&state))
    }
    if isDue { submit { $0.takeGathered() } }
    // Those that are passed over count as well: the progress of a whole begins at zero.
    if verdict == .taken, state.withLock({ $0.refused == nil }) {
      context.client.progress.receive(job, bytes: bytes.count)
    }
    return verdict
  }

  func turnEnded() {
    if state.withLock({ Self.schedule(&$0) }) { submit { $0.takeGathered() } }
  }

  func end(_ outcome: DownloadOutcome) {
    context.client.progress.end(job)
    if let body = state.withLock({ $0.refused }), !body.isEmpty {
      context.client.responses?.refused(entry.path, body: body)
    }
    guard isSmall else {
      if !submit({ $0.close(outcome) }) { giveBackSpace() }
      return
    }
    // Making a file takes as long as filling it, so both happen side by side.
    let isTaken = submit { receiver in
      receiver.open()
      let isTaken = receiver.context.lanes.submit(lane: receiver.lane + 1) { receiver.close(outcome) }
      if !isTaken { receiver.giveBackSpace() }
    }
    if !isTaken { giveBackSpace() }
  }

  /// Gives back the space that only the response told. The engine has failed, and its lanes take no work.
  private func giveBackSpace() {
    context.space.giveBack(
      state.withLock { state in
        defer { state.reserved = 0 }
        return state.reserved
      })
  }

  /// Checks the first bytes of the file at once: a doubtful file need not be fetched.
  private func doubtOpening(_ bytes: UnsafeRawBufferPointer, _ state: inout State) {
    guard let doubt, state.verdict == .takeFromZero, let head = state.head,
      state.opening.count < ContentDoubt.opening
    else { return }
    state.opening += bytes.prefix(ContentDoubt.opening - state.opening.count)
    state.fail(
      doubt.doubt(opening: state.opening, contentType: head.contentType, coding: head.contentEncoding))
  }

  private func gather(_ bytes: UnsafeRawBufferPointer, _ state: inout State) {
    if state.gathered == nil {
      state.gathered = context.blocks.borrow(max(bytes.count, Self.gathering(check.size, state.head)))
    }
    state.gathered?.append(bytes)
    state.queued += bytes.count
    state.received += UInt64(bytes.count)
  }

  /// The capacity of the block that collects bytes. Hundreds of small files may wait for a lane at a time, and lists tell no sizes.
  static func gathering(_ size: UInt64?, _ head: ResponseHead?) -> Int {
    Int(min(size ?? head?.contentLength ?? .max, UInt64(handful)))
  }

  /// - Returns: whether the lane must be notified.
  private static func schedule(_ state: inout State) -> Bool {
    guard state.gathered != nil, !state.isScheduled else { return false }
    state.isScheduled = true
    return true
  }

  /// Returns true when redirects only added the slash of a directory. They may lead to another scheme or host.
  private static func isSlashAdded(_ end: String, to start: String) -> Bool {
    func path(_ url: String) -> Substring.UTF8View {
      let rest = url.utf8.split(separator: 0x3F, maxSplits: 1, omittingEmptySubsequences: false)[0]
      let parts = rest.split(separator: 0x2F, maxSplits: 3, omittingEmptySubsequences: false)
      return parts.count == 4 ? parts[3] : rest.suffix(0)
    }
    return path(end).elementsEqual(Array(path(start)) + [0x2F])
  }

  /// Returns whether the body has a coding that is not the file's own, and neither digest nor size shows what it makes of it.
  private func isInOtherCoding(_ head: ResponseHead) -> Bool {
    guard let coding = head.contentEncoding, check.digest == nil, check.size == nil else { return false }
    return !FileSignature.isOwn(coding: coding, of: entry)
  }

  private static func announced(_ head: ResponseHead, _ verdict: ResumeLadder.Verdict) -> UInt64? {
    switch verdict {
    case .append: head.contentRange?.total ?? head.contentLength
    case .takeFromZero: head.statedTotal ?? head.contentLength
    default: nil
    }
  }

  /// - Returns: false when the engine has failed; then the work is dropped.
  @discardableResult
  private func submit(_ work: @escaping @Sendable (FileReceiver) -> Void) -> Bool {
    context.lanes.submit(lane: lane) { work(self) }
  }

  // MARK: On the lane

  /// Opens the file before the first byte is written, or at the end when there was none.
  private func open() {
    let (isDue, verdict, head, kept) = state.withLock { state in
      defer { state.isToOpen = false }
      // A file whose first bytes are doubtful must not overwrite earlier ones.
      return (state.isToOpen && state.failure == nil, state.verdict, state.head, state.partial)
    }
    guard isDue else { return }
    guard let head, verdict == .takeFromZero else { return markOpened(kept) }
    attempt { () throws(FolderFailure) in
      let partial =
        if let kept { kept } else {
          try context.client.folder.makePartial(for: entry.path, mayBeUnnamed: mayBeUnnamed)
        }
      state.withLock { $0.partial = partial }
      _ = try partial.begin(keeping: 0, check: check)
      let told = state.withLock { ResumeLadder.total(head, known: $0.known, url: url) }
      let total = check.size ?? told ?? head.contentLength
      let known = ResumeLadder.Known(
        kept: 0, url: url, answered: head.url, etag: head.strongETag,
        lastModified: head.strongLastModified, weakDate: head.weakLastModified, total: total,
        digestDecides: check.digest != nil)
      state.withLock { $0.known = known }
      markOpened(partial)
    }
    recordPartial(isFirst: kept == nil)
  }

  private func markOpened(_ partial: (any PartialFile)?) {
    // A file that fits between two checkpoints needs no mark.
    guard let partial, check.size.map({ $0 >= Checkpoints.step }) ?? true else { return }
    let durable = state.withLock { $0.known?.durable ?? 0 }
    let mark = Checkpoints.Mark(
      partial, path: entry.path, durable: durable, ledger: context.client.ledger)
    state.withLock { $0.mark = mark }
  }

  /// Writes the row from which another process can continue, before the first byte. A power cut may lose the row together with the
  /// bytes; the first checkpoint makes it durable too. For a file that was begun earlier, an older durable row may describe bytes
  /// that are now overwritten. That row must not come back.
  private func recordPartial(isFirst: Bool) {
    let (known, partial, failure) = state.withLock { ($0.known, $0.partial, $0.failure) }
    guard failure == nil, let known, let partial, !isFirst || known.total.map({ $0 > Self.rowless }) ?? true
    else { return }
    context.record(row(partial, known), isDurable: !isFirst)
  }

  private func row(_ partial: any PartialFile, _ known: ResumeLadder.Known) -> PartialRow {
    PartialRow(
      path: entry.path, name: partial.name, url: known.url, etag: known.etag,
      lastModified: known.lastModified, total: known.total, digest: check.digest,
      fingerprint: entry.fingerprint, durable: known.durable, bootID: context.client.bootID,
      answered: known.answered, weakDate: known.weakDate)
  }

  /// Writes the row of a small file whose exchange was interrupted, so that another pass or process can continue it. A file that may
  /// have no name begins anew.
  private func recordInterrupted(_ end: JobEnd) {
    guard !mayBeUnnamed else { return }
    switch end {
    case .network(_, let partial?, let known?), .short(let partial, let known?, total: _):
      guard let total = known.total, total <= Self.rowless else { return }
      context.record(row(partial, known), isDurable: false)
    default: return
    }
  }

  private func takeGathered() {
    let block = state.withLock { state in
      state.isScheduled = false
      return state.gathered.take()
    }
    guard let block else { return }
    open()
    let count = block.count
    checkRoom(UInt64(count))
    if let partial = state.withLock({ $0.failure == nil ? $0.partial : nil }) {
      // The bytes may stay with the folder for as long as it exists, so the closure must keep nothing else.
      let blocks = context.blocks
      attempt { () throws(FolderFailure) in try partial.append(lent: block.bytes) { blocks.give(block) } }
      if let mark = state.withLock({ $0.mark }) { context.checkpoints.wrote(mark, upTo: partial.length) }
    }
    let paused = state.withLock { state -> DownloadID? in
      state.queued -= count
      return Self.mayGoOn(&state) ? state.download : nil
    }
    if let paused { context.client.downloader.resume(paused) }
  }

  /// For a response without a size: checks free space every few MiB, so that the reserve stays. The observer of responses is asked
  /// before any bytes are written.
  private func checkRoom(_ count: UInt64) {
    let due = state.withLock { state -> (length: UInt64, isStep: Bool)? in
      guard check.size == nil, state.reserved == 0, state.failure == nil else { return nil }
      let isStep = state.unchecked < count
      if !isStep { state.unchecked -= count }
      return (state.partial?.length ?? 0, isStep)
    }
    guard let (length, isStep) = due else { return }
    let room = isStep ? context.space.room : .max
    let failure =
      room < count
      ? FolderFailure(.noSpace, context.space.refusal(nil))
      : context.client.responses?.grew(entry.path, to: length + count)
    state.withLock { state in
      if isStep { state.unchecked = min(Self.roomStep, room - min(room, count)) }
      state.fail(failure)
    }
  }

  private static let mostRefused = 64 << 10
  private static let roomStep: UInt64 = 4 << 20

  private func close(_ outcome: DownloadOutcome) {
    takeGathered()
    open()
    // A wrong piece is this source's fault, and not that of the next one, which continues after it.
    if let partial = self.state.withLock(\.partial) {
      attempt { () throws(FolderFailure) in try partial.settle() }
    }
    var state = self.state.withLock { $0 }
    context.space.giveBack(state.reserved)
    if let mark = state.mark {
      context.checkpoints.forget(mark)
      state.known?.durable = mark.durable
    }
    let end = verdict(on: outcome, state)
    recordInterrupted(end)
    context.post(.ended(job, end, received: state.received))
  }

  private func verdict(on outcome: DownloadOutcome, _ state: State) -> JobEnd {
    let known = Self.known(state.known, of: state.partial)
    if let failure = state.failure {
      // A doubtful response leaves nothing, but earlier bytes are kept.
      let isKept = failure.code != .contentMismatch || state.known?.kept ?? 0 > 0
      return .folder(
        blamed(failure, state.verdict), state.partial,
        isKept ? known : nil)
    }
    if let end = state.end { return end }
    if state.refused != nil, let verdict = state.verdict, let head = state.head {
      return .verdict(verdict, head)
    }
    switch outcome {
    case .failed(let failure):
      return .network(failure, state.partial, known)
    case .complete(let head):
      guard let verdict = state.verdict, verdict == .append || verdict == .takeFromZero,
        let partial = state.partial
      else { return .verdict(state.verdict ?? .status(HTTPStatus(head.status)), head) }
      // Its end came before that of the bytes at hand.
      if state.toPassOver > 0 { return .verdict(.contradiction, head) }
      if let end = cutCouldNotBeTold(head, partial, state) { return end }
      if let before = state.before, ResumeLadder.isTail(partial.length, head, before) {
        return .verdict(.askFromZero, head)
      }
      // The feed's own size is checked when the file is sealed.
      let told = check.size == nil ? state.known?.total : nil
      let ofRange = verdict == .append ? head.contentRange?.total : nil
      if let total = ofRange ?? told, partial.length != total {
        if partial.length < total { return .short(partial, known, total: total) }
        // There are more bytes than the named range has, so none of them can be trusted.
        guard verdict == .takeFromZero else { return .verdict(.askFromZero, head) }
        let message =
          "it has \(Units.count(partial.length, "byte")), and its header says \(Units.grouped(total))"
        return .folder(FolderFailure(.sizeMismatch, message), partial, nil)
      }
      let folder = context.client.folder
      if let failure = doubt?.doubt(partial, opening: state.opening, entry, in: folder, head, state.known) {
        return .folder(failure, partial, nil)
      }
      let end = Self.seal(partial, entry, head: head, known: state.known)
      guard case .folder(let failure, let partial, let known) = end else { return end }
      return .folder(Self.explained(blamed(failure, verdict), head), partial, known)
    }
  }

  /// Returns the end of a response that ends with its connection, so that only a digest or size could show that it is whole.
  private func cutCouldNotBeTold(
    _ head: ResponseHead, _ partial: any PartialFile, _ state: State
  ) -> JobEnd? {
    guard !head.isFramed, head.contentRange?.last == nil, check.size == nil, check.digest == nil,
      !state.isTaken
    else { return nil }
    // A feed may be wrong about the length of a file. To the byte it is not wrong by accident.
    if entry.hint.length == partial.length { return nil }
    guard let expected = context.client.requestOptions.expectedBytes else {
      let failure = DownloadFailure(
        .lengthUnknown, "nothing marks where its answer ends, so a truncated one would look whole",
        isTransient: false)
      return .network(failure, partial, nil)
    }
    if partial.length == expected { return nil }
    let message =
      "it ended after \(Units.count(partial.length, "byte")), and \(Units.grouped(expected)) are expected"
    // A connection that breaks makes an answer shorter, never longer.
    guard partial.length < expected else {
      return .folder(FolderFailure(.sizeMismatch, message), partial, nil)
    }
    return .network(DownloadFailure(.truncated, message, isTransient: false), partial, nil)
  }

  /// Adds a note on the encoding: the author of the list may have looked at the decoded bytes.
  private static func explained(_ failure: FolderFailure, _ head: ResponseHead) -> FolderFailure {
    guard [.digestMismatch, .sizeMismatch, .pieceMismatch].contains(failure.code) else { return failure }
    var failure = failure
    failure.message += encodingNote(head)
    return failure
  }

  private static func encodingNote(_ head: ResponseHead) -> String {
    guard let encoding = head.contentEncoding else { return "" }
    return "; the server sent it with the encoding \(Printable.escape(encoding)), which was not asked for"
  }

  /// Removes the good prefix when all bytes came from this exchange, so that no earlier one is blamed.
  private func blamed(_ failure: FolderFailure, _ verdict: ResumeLadder.Verdict?) -> FolderFailure {
    var failure = failure
    if verdict == .takeFromZero { failure.goodPrefix = nil }
    return failure
  }

  /// Returns the knowledge about the bytes in the partial file.
  private static func known(
    _ known: ResumeLadder.Known?, of partial: (any PartialFile)?
  ) -> ResumeLadder.Known? {
    guard var known, let partial, partial.length > 0 else { return nil }
    known.kept = partial.length
    known.durable = min(known.durable, known.kept)
    return known
  }

  private func attempt(_ work: () throws(FolderFailure) -> Void) {
    do throws(FolderFailure) {
      try work()
    } catch {
      state.withLock { $0.fail(error) }
    }
  }

  static func seal(
    _ partial: any PartialFile, _ entry: Entry, head: ResponseHead?
  ) throws(FolderFailure) -> Sealed {
    let modified = entry.modifiedIsExact ? entry.modified ?? head?.modified : head?.modified ?? entry.modified
    return try partial.seal(modified: modified)
  }

  /// Returns the check of a file whose bytes are all at hand, to be run on a lane; `nil` where there is no such file.
  static func check(of job: Job) -> (@Sendable () -> JobEnd)? {
    guard let partial = job.partial else { return nil }
    let (entry, doubt, known) = (job.entry, job.doubt, job.attempts.known)
    let folder = job.submission.client.folder
    return {
      if let failure = doubt?.doubt(partial, opening: [], entry, in: folder, nil, known) {
        return .folder(failure, partial, nil)
      }
      return seal(partial, entry, head: nil, known: known)
    }
  }

  /// Checks a file that has all of its bytes. Runs on a lane.
  ///
  /// - Parameter known: the knowledge about the bytes. Those before a wrong piece are good.
  static func seal(
    _ partial: any PartialFile, _ entry: Entry, head: ResponseHead?, known: ResumeLadder.Known?
  ) -> JobEnd {
    do throws(FolderFailure) {
      return .sealed(partial, try seal(partial, entry, head: head), head)
    } catch {
      var error = error
      if error.code == .digestMismatch, let list = entry.voucher {
        error.message += "; so says \(list.printable), the checksum list beside it"
      }
      return .folder(error, partial, error.code == .pieceMismatch ? Self.known(known, of: partial) : nil)
    }
  }
}

extension ContentDoubt {
  /// Returns why a file that has all of its bytes is not that of the feed; `nil` when it may be.
  ///
  /// - Parameters:
  ///   - opening: the first bytes; empty where this exchange did not bring them, and they are read from the file.
  ///   - head: the head of the answer that brought the last bytes; `nil` when they were at hand.
  ///   - known: the knowledge about the bytes.
  fileprivate func doubt(
    _ partial: any PartialFile, opening: [UInt8], _ entry: Entry, in folder: any TransferFolder,
    _ head: ResponseHead?, _ known: ResumeLadder.Known?
  ) -> FolderFailure? {
    doubt(
      size: partial.length, opening: opening.isEmpty ? partial.opening(most: Self.opening) : opening,
      contentType: head?.contentType, coding: head?.contentEncoding,
      isStored: known?.etag != nil || known?.lastModified != nil,
      before: { folder.opening(of: entry.path, most: Self.opening) })
  }
}
