/// What is known of one folder that an agent keeps: whether it is seen, what of it has to be looked at, and when. A value,
/// which is told news and the time.
package struct WatchState: Sendable {
  /// How far apart the looks at everything are, in seconds.
  package struct Pace: Sendable, Equatable {
    /// While the folder is seen: against what inotify does not tell.
    package var rescan: Int64 = 86_400
    /// While it is not.
    package var poll: Int64 = 300

    package init() {}
  }

  private enum Visibility: Equatable {
    case off
    case starting
    case watching(since: Instant)
    case blind(WatchBlindness)
  }

  /// Something that the journal has to be told: `watch-lost` or `watch-restored`.
  package struct Note: Sendable, Equatable {
    package var code: String
    package var detail: String
  }

  private var sight: Visibility
  private var pace: Pace
  private var dirt = DirtySet()
  /// Since when all of it has to be looked at, whatever was told; nil when nothing asks for that.
  private var allSince: Instant? {
    didSet { if allSince == nil { allAfter = Instant() } }
  }
  /// And not before.
  private var allAfter = Instant()
  /// What repairs had looked at in vain, and when it is looked at again: nothing else waits for that.
  private var resting = DirtySet()
  private var restsUntil = Instant()
  /// What a repair looks at now.
  private var taken: [Region] = []
  /// Repairs that have looked, and bring what they found to be missing.
  private var bringing = 0
  /// Ends in a row of those that had looked and were not done.
  private var interrupted = 0
  /// When all of it is to be looked at in any case.
  private var nextLook: Instant
  /// When it is to be counted what is in place; nil when that is known.
  private var nextCount: Instant?
  /// What a repair looks at now it only counts.
  package private(set) var onlyCounts = false
  /// No repair begins before: the last one took its time, or failed.
  private var notBefore = Instant()
  /// What the last look at everything took; nil before there was one.
  private var lastWhole: Duration?
  /// When it ended.
  private var lastCount = Instant()
  private var failures = 0
  /// Paths that were looked at again and again: when last, and how often within a minute of the time before.
  private var repeats: [RelativePath: (last: Instant, count: Int)] = [:]
  /// Of these, the ones that somebody changes all the time, and when they are to be looked at.
  private var held: [RelativePath: Instant] = [:]
  private var notes: [Note] = []
  /// Nobody was told of the blindness.
  private var isSilent = false
  /// The mirror has a journal that stays. Until its first pass has read a feed Tarn makes and removes the folder itself.
  package private(set) var hasJournal: Bool

  /// Seconds: the pause after repairs that failed in a row.
  private static let backOff = BackOff(base: 1, most: 300)

  /// - Parameters:
  ///   - isWatched: false for a folder that nobody watches: its passes look.
  ///   - hasJournal: false until `begunJournal`.
  ///   - random: in 0..<1.
  package init(isWatched: Bool, hasJournal: Bool = true, pace: Pace, now: Instant, random: Double) {
    sight = isWatched ? .starting : .off
    self.hasJournal = hasJournal
    self.pace = pace
    nextLook = Self.moment(now, seconds: pace.poll, random: random)
  }

  // MARK: - News

  package mutating func receive(_ event: WatchNews.Event, now: Instant, random: Double) {
    guard sight != .off else { return }
    switch event {
    case .dirty(let path): note(path, now: now)
    case .tree(let path):
      dirt.add(tree: path, at: now)
      // What kept repairs out may be over with the folder's mode: the next one waits a moment, not as long as those before.
      if path == nil, failures > 0 {
        failures = 1
        notBefore = min(notBefore, now + .seconds(Self.backOff.ceiling(failures)))
      }
    case .ready(let directories):
      if case .blind(let blindness) = sight, !isSilent {
        note(
          "watch-restored", "\(Units.count(directories, "directory")) watched again after: \(blindness.text)")
      }
      sight = .watching(since: now)
      isSilent = false
      allSince = now
      allAfter = now
      // What kept repairs from looking may be over with it.
      if failures > 0 { (failures, notBefore) = (0, now) }
    case .blind(let blindness):
      if case .blind(let before) = sight, before.code == blindness.code {
        sight = .blind(blindness)
        return
      }
      isSilent = isNoLoss(blindness)
      if !isSilent { note("watch-lost", "\(blindness.code.rawValue): \(blindness.text)") }
      sight = .blind(blindness)
      // Who is blinded again and again is not put off by it.
      nextLook = min(nextLook, Self.moment(now, seconds: pace.poll, random: random))
    }
  }

  /// A folder that was not there yet was not lost, nor one that a first pass made and took back.
  private func isNoLoss(_ blindness: WatchBlindness) -> Bool {
    switch blindness.code {
    case .gone: sight == .starting || !hasJournal
    case .replaced: !hasJournal
    default: false
    }
  }

  /// The mirror follows a feed: what its journal is told stays there.
  package mutating func begunJournal() { hasJournal = true }

  private mutating func note(_ code: String, _ detail: String) {
    notes.append(Note(code: code, detail: detail))
  }

  /// What the journal has to be told since the last call.
  package mutating func takeNotes() -> [Note] {
    defer { notes = [] }
    return notes
  }

  // MARK: - Repairs

  /// No directory was found in its place: worth asking for as soon as a pass has been there.
  package var isMissing: Bool {
    guard case .blind(let blindness) = sight else { return false }
    return blindness.code == .gone || isSilent
  }

  /// Nothing changed since the last look at it, as far as anybody can tell.
  package var isAsLeft: Bool {
    guard case .watching = sight else { return false }
    return dirt.isEmpty && held.isEmpty && allSince == nil && taken.isEmpty && bringing == 0
      && resting.isEmpty
  }

  /// Until a repair is due, zero when it is; nil while one looks at the folder, and for a folder that nobody watches.
  ///
  /// - Parameter isReading: a pass is at work that has not looked at the folder so far, and will.
  package func wait(now: Instant, isReading: Bool = false) -> Duration? {
    guard sight != .off, taken.isEmpty else { return nil }
    var due = Instant.distantFuture
    if looksAtAll(beside: isReading) {
      due = min(nextLook, allSince == nil ? nextCount ?? .distantFuture : allAfter)
    }
    if let dirty = dirt.dueAt { due = min(due, dirty) }
    if let released = held.values.min() { due = min(due, released) }
    if !resting.isEmpty { due = min(due, restsUntil) }
    due = max(due, notBefore)
    return due.remaining(at: now)
  }

  /// Two looks at everything at a time are one too many, unless they are short.
  private func looksAtAll(beside isReading: Bool) -> Bool {
    !isReading || lastWhole.map { $0 <= Self.shortLook } ?? false
  }

  private static let shortLook = Duration.seconds(1)

  /// A repair begins.
  ///
  /// - Parameter isReading: a pass is at work that has not looked at the folder so far, and will.
  /// - Returns: what it has to look at; empty when nothing is due.
  package mutating func begin(now: Instant, isReading: Bool = false) -> [Region] {
    guard wait(now: now, isReading: isReading) == .zero else { return [] }
    release(now: now)
    let scope = dirt.takeAll()
    let mayBeWhole = looksAtAll(beside: isReading)
    if !mayBeWhole, scope == .everything || scope == nil {
      if scope != nil { allSince = allSince ?? now }
      return []
    }
    let isWhole = mayBeWhole && (allSince != nil && now >= allAfter || now >= nextLook)
    // What changed goes first, and counts once it is done.
    onlyCounts = !isWhole && scope == nil
    taken = isWhole || onlyCounts ? [.everything] : scope?.regions ?? []
    if taken == [.everything] { (allSince, nextCount) = (nil, nil) }
    count(taken, now: now)
    return taken
  }

  // MARK: Paths that change all the time

  /// So many looks at one path within a minute of each other, and it has to wait: who keeps writing into a mirrored file
  /// would fill the trash.
  private static let mostRepeats = 32
  private static let repeatSpan = Duration.seconds(60)
  /// Seconds.
  private static let holding = BackOff(base: 5, most: 300)
  private static let mostCounted = 4096

  private mutating func note(_ path: RelativePath, now: Instant) {
    guard held[path] == nil else { return }
    guard let repeated = repeats[path], repeated.count >= Self.mostRepeats,
      now < repeated.last + Self.span(after: repeated.count)
    else { return dirt.add(path: path, at: now) }
    held[path] = repeated.last + Self.pause(after: repeated.count)
  }

  private mutating func release(now: Instant) {
    for (path, until) in held where until <= now {
      held[path] = nil
      dirt.add(path: path, at: now)
    }
    guard restsUntil <= now else { return }
    for region in resting.takeAll()?.regions ?? [] { Self.add(region, to: &dirt, at: now) }
  }

  private mutating func count(_ regions: [Region], now: Instant) {
    if repeats.count > Self.mostCounted {
      repeats = repeats.filter { now < $0.value.last + Self.span(after: $0.value.count) }
      if repeats.count > Self.mostCounted { repeats = [:] }
    }
    for region in regions where region.extent == .itself {
      guard let path = region.path else { continue }
      let before = repeats[path]
      let isAgain = before.map { now < $0.last + Self.span(after: $0.count) } ?? false
      repeats[path] = (now, isAgain ? (before?.count ?? 0) + 1 : 1)
    }
  }

  /// How long a path waits that was looked at so often.
  private static func pause(after count: Int) -> Duration {
    .seconds(holding.ceiling(count - mostRepeats + 1))
  }

  /// How long after it a look counts as the first one again.
  private static func span(after count: Int) -> Duration {
    count < mostRepeats ? repeatSpan : repeatSpan + pause(after: count)
  }

  // MARK: The end of a repair

  /// It has ended.
  ///
  /// - Parameters:
  ///   - isDone: it looked at all that it was to look at. Otherwise that is still to be done, after a pause.
  ///   - isBusy: somebody else holds the folder, or it was stopped: the pauses do not grow.
  ///   - wantsCount: what is in place has to be counted anew, by a look at everything.
  ///   - looked: what the look took; transfers, which may take hours, are none of it.
  ///   - random: in 0..<1.
  package mutating func end(
    isDone: Bool, isBusy: Bool = false, wantsCount: Bool = false, looked duration: Duration = .zero,
    now: Instant,
    random: Double
  ) {
    guard !taken.isEmpty else { return }
    let isWhole = taken.contains(.everything)
    guard isDone else {
      failures = isBusy ? 1 : failures + 1
      if isWhole, onlyCounts { nextCount = now } else if isWhole { allSince = allSince ?? now }
      for region in taken where !isWhole { giveBack(region, now: now) }
      taken = []
      notBefore = now + .seconds(Self.backOff.ceiling(failures))
      return
    }
    endLook(took: duration, now: now, random: random)
    if wantsCount { wantCount(now: now) }
  }

  private mutating func endLook(took duration: Duration, now: Instant, random: Double) {
    let isWhole = taken.contains(.everything)
    failures = 0
    taken = []
    // Half of the time at most, whatever somebody does to the folder.
    notBefore = now + duration
    guard isWhole else { return }
    (lastWhole, lastCount) = (duration, now)
    looked(now: now, random: random)
  }

  private mutating func wantCount(now: Instant) {
    let pause = max(Self.leastCount, (lastWhole ?? .zero) * 20)
    nextCount = min(nextCount ?? .distantFuture, max(now, lastCount + pause))
  }

  /// The repair at work has looked at all of its regions, and brings what is missing there: another one may look meanwhile.
  /// `brought` tells its end.
  ///
  /// - Parameter duration: what the look took.
  package mutating func beginBringing(looked duration: Duration, now: Instant, random: Double) {
    guard !taken.isEmpty else { return }
    bringing += 1
    endLook(took: duration, now: now, random: random)
  }

  /// A repair that had looked has ended.
  ///
  /// - Parameters:
  ///   - regions: that it was about.
  ///   - isDone: otherwise they are to be looked at again, after a moment; after a longer one each time.
  ///   - wantsCount: as for `end`.
  package mutating func brought(_ regions: [Region], isDone: Bool, wantsCount: Bool, now: Instant) {
    bringing = max(0, bringing - 1)
    guard !isDone else {
      // Others say nothing of what rests.
      if resting.isEmpty, allSince == nil { interrupted = 0 }
      if wantsCount { wantCount(now: now) }
      return
    }
    interrupted += 1
    rest(regions, until: now + .seconds(Self.backOff.ceiling(interrupted)), now: now)
  }

  private mutating func rest(_ regions: [Region], until: Instant, now: Instant) {
    guard regions != [.everything] else {
      if allSince == nil { (allSince, allAfter) = (now, until) }
      return
    }
    restsUntil = resting.isEmpty ? until : min(restsUntil, until)
    for region in regions { Self.add(region, to: &resting, at: now) }
  }

  private static func add(_ region: Region, to dirt: inout DirtySet, at now: Instant) {
    if let path = region.path, region.extent == .itself {
      dirt.add(path: path, at: now)
    } else {
      dirt.add(tree: region.path, at: now)
    }
  }

  /// Between two countings at least.
  private static let leastCount = Duration.seconds(1)

  /// A pass has looked at everything.
  ///
  /// - Parameter since: when it began to.
  package mutating func looked(since: Instant, now: Instant, random: Double) {
    if case .watching(let ready) = sight, ready > since { return }
    // What it found missing it brings.
    interrupted = 0
    // What asks for it since then was not seen by that pass.
    if let allSince, allSince > since { return }
    allSince = nil
    looked(now: now, random: random)
  }

  private mutating func looked(now: Instant, random: Double) {
    var seconds = pace.poll
    if case .watching = sight { seconds = pace.rescan }
    nextCount = nil
    nextLook = Self.moment(now, seconds: seconds, random: random)
  }

  private mutating func giveBack(_ region: Region, now: Instant) {
    switch region.extent {
    case .itself: if let path = region.path { note(path, now: now) }
    case .children, .tree: dirt.add(tree: region.path, at: now)
    }
  }

  // MARK: - Status

  /// The reason of who has not begun to watch so far.
  package static let starting = "starting to watch"

  /// The words of the status document.
  package var status: (mode: String, reason: String) {
    switch sight {
    case .off: ("off", "the next pass finds local changes")
    case .starting: ("polling", Self.starting)
    case .blind where isSilent: ("polling", "the folder is not there so far")
    case .watching where held.isEmpty: ("watching", "")
    case .watching:
      (
        "watching",
        "\(Units.count(held.count, "path")) that changed again and again: looked at a little later"
      )
    case .blind(let blindness): ("polling", "\(blindness.code.rawValue): \(blindness.text)")
    }
  }

  // MARK: - Time

  /// Three to five quarters of a period on, so that mirrors do not look all at once.
  private static func moment(_ now: Instant, seconds: Int64, random: Double) -> Instant {
    now + .seconds(Double(seconds) * (0.75 + random / 2))
  }
}

extension DirtyScope {
  /// None lies in another one.
  package var regions: [Region] {
    switch self {
    case .everything: [.everything]
    case .parts(let paths, let directories, let trees):
      paths.map { Region($0, .itself) } + directories.map { Region($0, .children) }
        + trees.map { Region($0, .tree) }
    }
  }
}
