/// The state of one folder that an agent keeps: whether it is watched, which parts have to be looked at, and when. A value that is
/// given events and the time.
package struct WatchState: Sendable {
  /// The time between two looks at everything, in seconds.
  package struct Pace: Sendable, Equatable {
    /// While the folder is watched, for changes that inotify does not report.
    package var rescan: Int64 = 86_400
    /// While the folder is not watched.
    package var poll: Int64 = 300

    package init() {}
  }

  private enum Visibility: Equatable {
    case off
    case starting
    case watching(since: Instant)
    case blind(WatchBlindness)
  }

  /// A note for the journal: `watch-lost` or `watch-restored`.
  package struct Note: Sendable, Equatable {
    package var code: String
    package var detail: String
  }

  private struct WholeLook {
    /// When the need arose.
    var since: Instant
    /// The earliest time of the look.
    var after = Instant()
  }

  private var sight: Visibility
  private var pace: Pace
  private var dirt = DirtySet()
  /// The need to look at the whole folder, whatever was reported; `nil` when there is none.
  private var wholeLook: WholeLook?
  /// The regions of repairs that could not finish, and when they are looked at again. Nothing else waits for that.
  private var resting = (regions: DirtySet(), until: Instant())
  /// The regions that a repair looks at now.
  private var taken: [Region] = []
  /// The number of repairs that have looked and are fetching what was missing.
  private var bringing = 0
  /// The number of repairs in a row that looked, and ended without finishing.
  private var interrupted = 0
  /// When the whole folder is looked at in any case.
  private var nextLook: Instant
  /// When what is in place is to be counted; `nil` when the count is known.
  private var nextCount: Instant?
  /// True while the repair at work only counts.
  package private(set) var onlyCounts = false
  /// The earliest time of the next repair, because the last one took long or failed.
  private var notBefore = Instant()
  /// The duration of the last look at everything; `nil` before the first.
  private var lastWhole: Duration?
  /// When the last look at everything ended.
  private var lastCount = Instant()
  private var failures = 0
  /// Paths that were looked at again and again: the time of the last look, and the number of looks within a minute of the previous
  /// one.
  private var repeats: [RelativePath: (last: Instant, count: Int)] = [:]
  /// The paths that change all the time, and when they are to be looked at.
  private var held: [RelativePath: Instant] = [:]
  private var notes: [Note] = []
  /// True when nobody was told of the blindness.
  private var isSilent = false
  /// True when the mirror has a permanent journal. Until the first pass has read a feed, Tarn creates and removes the folder
  /// itself.
  package private(set) var hasJournal: Bool

  /// The pause in seconds after failed repairs in a row.
  private static let backOff = BackOff(base: 1, most: 300)

  /// - Parameters:
  ///   - isWatched: false for a folder that is not watched, whose passes find changes.
  ///   - hasJournal: false until `begunJournal`.
  ///   - random: a number in 0..<1.
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
      // The obstacle may be gone with a change of the folder's mode: the next repair waits a moment, not as long as those before.
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
      wholeLook = WholeLook(since: now, after: now)
      // The reason for failed repairs may be gone as well.
      if failures > 0 { (failures, notBefore) = (0, now) }
    case .blind(let blindness):
      if case .blind(let before) = sight, before.code == blindness.code {
        sight = .blind(blindness)
        return
      }
      isSilent = isNoLoss(blindness)
      if !isSilent { note("watch-lost", "\(blindness.code.rawValue): \(blindness.text)") }
      sight = .blind(blindness)
      // A folder that is blinded again and again must not postpone the next look.
      nextLook = min(nextLook, Self.moment(now, seconds: pace.poll, random: random))
    }
  }

  /// True for a folder that did not exist yet, or that a first pass created and removed.
  private func isNoLoss(_ blindness: WatchBlindness) -> Bool {
    switch blindness.code {
    case .gone: sight == .starting || !hasJournal
    case .replaced: !hasJournal
    default: false
    }
  }

  /// Tells that the mirror follows a feed: what its journal is told stays there.
  package mutating func begunJournal() { hasJournal = true }

  private mutating func note(_ code: String, _ detail: String) {
    notes.append(Note(code: code, detail: detail))
  }

  /// Returns the notes for the journal since the last call.
  package mutating func takeNotes() -> [Note] {
    defer { notes = [] }
    return notes
  }

  /// A path that waits because it changes all the time, and how many there are. What is there is not known to be right.
  package var contested: (path: RelativePath, count: Int)? {
    held.keys.min().map { ($0, held.count) }
  }

  // MARK: - Repairs

  /// True when no directory was found at its path. The folder is worth asking for as soon as a pass has been there.
  package var isMissing: Bool {
    guard case .blind(let blindness) = sight else { return false }
    return blindness.code == .gone || isSilent
  }

  /// True when nothing has changed since the last look, as far as is known.
  package var isAsLeft: Bool {
    guard case .watching = sight else { return false }
    return dirt.isEmpty && held.isEmpty && wholeLook == nil && taken.isEmpty && bringing == 0
      && resting.regions.isEmpty
  }

  /// Returns the time until a repair is due, zero when it is. `nil` while one looks at the folder, and for a folder that is not
  /// watched.
  ///
  /// - Parameter isReading: true while a pass is at work that has not looked at the folder yet, and will.
  package func wait(now: Instant, isReading: Bool = false) -> Duration? {
    guard sight != .off, taken.isEmpty else { return nil }
    var due = Instant.distantFuture
    if looksAtAll(beside: isReading) {
      due = min(nextLook, wholeLook?.after ?? nextCount ?? .distantFuture)
    }
    if let dirty = dirt.dueAt { due = min(due, dirty) }
    if let released = held.values.min() { due = min(due, released) }
    if !resting.regions.isEmpty { due = min(due, resting.until) }
    due = max(due, notBefore)
    return due.remaining(at: now)
  }

  /// Returns whether everything may be looked at now. Two such looks at a time are one too many, unless they are short.
  private func looksAtAll(beside isReading: Bool) -> Bool {
    !isReading || lastWhole.map { $0 <= Self.shortLook } ?? false
  }

  private static let shortLook = Duration.seconds(1)

  /// Begins a repair.
  ///
  /// - Parameter isReading: true while a pass is at work that has not looked at the folder yet, and will.
  /// - Returns: the regions that the repair has to look at; empty when nothing is due.
  package mutating func begin(now: Instant, isReading: Bool = false) -> [Region] {
    guard wait(now: now, isReading: isReading) == .zero else { return [] }
    release(now: now)
    let scope = dirt.takeAll()
    let mayBeWhole = looksAtAll(beside: isReading)
    if !mayBeWhole, scope == .everything || scope == nil {
      if scope != nil { wantWholeLook(now: now) }
      return []
    }
    let isWhole = mayBeWhole && (wholeLook.map { now >= $0.after } ?? false || now >= nextLook)
    // Changes go first; the count comes when they are done.
    onlyCounts = !isWhole && scope == nil
    taken = isWhole || onlyCounts ? [.everything] : scope?.regions ?? []
    if taken == [.everything] { (wholeLook, nextCount) = (nil, nil) }
    count(taken, now: now)
    return taken
  }

  // MARK: Paths that change all the time

  /// The most looks at one path within a minute of each other before it has to wait. A program that keeps writing into a mirrored
  /// file would fill the trash.
  private static let mostRepeats = 32
  private static let repeatSpan = Duration.seconds(60)
  /// The pauses of a path that changes all the time, in seconds.
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
    guard resting.until <= now else { return }
    for region in resting.regions.takeAll()?.regions ?? [] { Self.add(region, to: &dirt, at: now) }
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

  /// Returns how long a path waits after so many looks.
  private static func pause(after count: Int) -> Duration {
    .seconds(holding.ceiling(count - mostRepeats + 1))
  }

  /// Returns the time after which a look counts as the first one again.
  private static func span(after count: Int) -> Duration {
    count < mostRepeats ? repeatSpan : repeatSpan + pause(after: count)
  }

  // MARK: The end of a repair

  /// Ends a repair.
  ///
  /// - Parameters:
  ///   - isDone: true when it looked at everything it was to look at. Otherwise that remains to be done, after a pause.
  ///   - isBusy: true when another process holds the folder, or the repair was stopped: the pauses do not grow.
  ///   - wantsCount: true when what is in place has to be counted anew, by a look at everything.
  ///   - looked: the duration of the look, without transfers, which may take hours.
  ///   - random: a number in 0..<1.
  package mutating func end(
    isDone: Bool, isBusy: Bool = false, wantsCount: Bool = false, looked duration: Duration = .zero,
    now: Instant,
    random: Double
  ) {
    guard !taken.isEmpty else { return }
    let isWhole = taken.contains(.everything)
    guard isDone else {
      failures = isBusy ? 1 : failures + 1
      if isWhole, onlyCounts { nextCount = now } else if isWhole { wantWholeLook(now: now) }
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
    // Looks take at most half of the time, whatever happens in the folder.
    notBefore = now + duration
    guard isWhole else { return }
    (lastWhole, lastCount) = (duration, now)
    looked(now: now, random: random)
  }

  /// Tells that what is in place has to be counted anew, by a look at everything.
  package mutating func wantCount(now: Instant) {
    let pause = max(Self.leastCount, (lastWhole ?? .zero) * 20)
    nextCount = min(nextCount ?? .distantFuture, max(now, lastCount + pause))
  }

  /// Tells that the repair at work has looked at all of its regions and fetches what is missing there. Another one may look
  /// meanwhile. `brought` ends it.
  ///
  /// - Parameter duration: the duration of the look.
  package mutating func beginBringing(looked duration: Duration, now: Instant, random: Double) {
    guard !taken.isEmpty else { return }
    bringing += 1
    endLook(took: duration, now: now, random: random)
  }

  /// Ends a repair that had looked.
  ///
  /// - Parameters:
  ///   - regions: the regions of the repair.
  ///   - isDone: false to look at them again after a pause, which grows each time.
  ///   - wantsCount: as for `end`.
  package mutating func brought(_ regions: [Region], isDone: Bool, wantsCount: Bool, now: Instant) {
    bringing = max(0, bringing - 1)
    guard !isDone else {
      // Other repairs say nothing about the regions that rest.
      if resting.regions.isEmpty, wholeLook == nil { interrupted = 0 }
      if wantsCount { wantCount(now: now) }
      return
    }
    interrupted += 1
    rest(regions, until: now + .seconds(Self.backOff.ceiling(interrupted)), now: now)
  }

  private mutating func rest(_ regions: [Region], until: Instant, now: Instant) {
    guard regions != [.everything] else {
      wantWholeLook(now: now, after: until)
      return
    }
    resting.until = resting.regions.isEmpty ? until : min(resting.until, until)
    for region in regions { Self.add(region, to: &resting.regions, at: now) }
  }

  /// A need that there is stays as it is.
  private mutating func wantWholeLook(now: Instant, after: Instant = Instant()) {
    if wholeLook == nil { wholeLook = WholeLook(since: now, after: after) }
  }

  private static func add(_ region: Region, to dirt: inout DirtySet, at now: Instant) {
    if let path = region.path, region.extent == .itself {
      dirt.add(path: path, at: now)
    } else {
      dirt.add(tree: region.path, at: now)
    }
  }

  /// The shortest time between two counts.
  private static let leastCount = Duration.seconds(1)

  /// Tells that a pass has looked at everything.
  ///
  /// - Parameter since: when it began to look.
  package mutating func looked(since: Instant, now: Instant, random: Double) {
    if case .watching(let ready) = sight, ready > since { return }
    // The pass itself fetches what it found missing.
    interrupted = 0
    // A request made since then was not seen by that pass.
    if let wholeLook, wholeLook.since > since { return }
    wholeLook = nil
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

  /// The reason shown until watching has begun.
  package static let starting = "starting to watch"

  /// The words for the status document.
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

  /// Returns a moment after three to five quarters of a period, so that mirrors do not all look at once.
  private static func moment(_ now: Instant, seconds: Int64, random: Double) -> Instant {
    now + .seconds(Double(seconds) * (0.75 + random / 2))
  }
}

extension DirtyScope {
  /// The regions of the scope; none lies in another one.
  package var regions: [Region] {
    switch self {
    case .everything: [.everything]
    case .parts(let paths, let directories, let trees):
      paths.map { Region($0, .itself) } + directories.map { Region($0, .children) }
        + trees.map { Region($0, .tree) }
    }
  }
}
