import TarnCore
import TarnRuntime

/// The files of a window, which are recognised or named, and limited by `--keep` and `--max-age`. A window is short, so it is held
/// in memory, up to a limit. Used on the pass's thread.
final class WindowCatalog {
  private let pass: Pass
  private let policy: PassPolicy
  private let isAnotherFeed: Bool
  private var enclosures: [Enclosure] = []
  /// Identifies enclosures by all that they say, so that verbatim repetitions are skipped.
  private var seen: Set<[UInt8]> = []
  /// The number of the first enclosure of each guid and URL.
  private var firsts: [[UInt8]: Int] = [:]
  /// The titles of further items of the same guid and URL, with the number of the first one.
  private var repeats: [(enclosure: Enclosure, first: Int)] = []

  /// The most files of a window.
  static let most = 100_000

  struct Resolution {
    /// The wanted entries, sorted by path.
    var entries: [Entry] = []
    /// The items for which no free name can be made.
    var refused: [Refusal] = []
    /// The files that were placed earlier and are now older than what is kept.
    var expired: Set<RelativePath> = []
    /// The files that `keep` asks for; `nil` without `keep`.
    var newest: Newest?
    /// The names that the ledger gets once the feed is accepted.
    var names: [NameRow] = []
    /// The number of items in the window that are older than what is kept.
    var tooOld = 0
    /// The items without a file of their own that may be others.
    var doubts: [Doubt] = []
  }

  /// The files that `keep` asks for, and those that make way for them. The latter stay while new files are missing, so that no
  /// folder is emptied.
  struct Newest {
    /// The number of files to keep.
    let most: Int
    let wanted: [RelativePath]
    /// The files that were placed earlier and expired by their number alone, the newest first.
    let expired: [RelativePath]

    /// Returns the expired files that stay, because too few of the wanted ones have come.
    ///
    /// - Parameter placed: all files that have a row. A file that the user deleted has one, too, so it does not count as missing.
    func spared(_ placed: Set<RelativePath>) -> Set<RelativePath> {
      let missing = most - wanted.count { placed.contains($0) }
      return Set(expired.lazy.filter(placed.contains).prefix(max(0, missing)))
    }
  }

  /// An item that is taken for an existing file although two of its title, date and address differ. Or one that has guid and URL of
  /// an item above it, and another title or date.
  struct Doubt {
    static let mostShown = 3

    var title: [UInt8]
    var path: RelativePath
    /// Its address, and its date.
    var item: [UInt8]

    init(_ enclosure: Enclosure, path: RelativePath) {
      (title, self.path) = (enclosure.title, path)
      item = enclosure.url + [0] + Array((enclosure.date.map { "\($0.nanoseconds)" } ?? "").utf8)
    }
  }

  /// - Parameter isAnotherFeed: true when the mirror followed a feed at another address so far.
  init(_ pass: Pass, isAnotherFeed: Bool) {
    self.pass = pass
    policy = pass.request.policy
    self.isAnotherFeed = isAnotherFeed
  }

  /// The number of files that the earlier pages named, and of the wanted ones among them; `nil` before the first page.
  private var before: (named: Int, wanted: Int)?

  /// The number of pages in a row without any file, or without any new one.
  private var pagesWithoutNews = 0
  private static let mostPagesWithoutNews = 8

  /// True when the pages continued and were not all read.
  var hasGivenUp: Bool { pagesWithoutNews > Self.mostPagesWithoutNews }

  /// Returns whether another page is to be read: those read so far name fewer wanted files than are to be kept. Pages of text alone
  /// may come between. A page that is too old ends the reading. So does one without new wanted files when older existing files make
  /// up the number.
  func wantsMore(title: [UInt8]) throws -> Bool {
    guard let keep = policy.window.keep else { return false }
    pagesWithoutNews = enclosures.count > before?.named ?? -1 ? 0 : pagesWithoutNews + 1
    guard !hasGivenUp else { return false }
    let resolution = try resolve(title: title)
    let wanted = resolution.entries.count { !policy.filter.excludes($0.path) }
    let isNews = wanted > before?.wanted ?? -1
    before = (enclosures.count, wanted)
    guard wanted < keep, isNews || resolution.newest?.wanted.count ?? 0 < keep else { return false }
    return policy.window.maxAge == nil || resolution.tooOld == 0
  }

  func add(_ enclosure: Enclosure) throws(FeedFailure) {
    guard enclosures.count + repeats.count < Self.most else {
      throw FeedFailure(
        code: "feed-too-many-entries", message: "the feed names more than \(Self.most) files")
    }
    let place = enclosure.url + [0] + (enclosure.guid ?? [])
    let date = enclosure.date.map { " \($0.nanoseconds)" } ?? ""
    // Some feeds list an item twice.
    guard seen.insert(place + [0] + enclosure.title + Array(date.utf8)).inserted else { return }
    if enclosure.guid != nil {
      if let first = firsts[place] { return repeats.append((enclosure, first)) }
      firsts[place] = enclosures.count
    }
    enclosures.append(enclosure)
  }

  /// Resolves all enclosures.
  ///
  /// - Parameter title: the title of the feed, for templates that use it.
  func resolve(title: [UInt8]) throws -> Resolution {
    // All get the same time. Otherwise the files that are read last would be the newest.
    let now = pass.ports.now
    let order = WindowOrder(
      dates: enclosures.map { enclosure in enclosure.date.flatMap { $0 <= now ? $0 : nil } })
    var recognition = try Recognition(pass, feedTitle: title, enclosures: enclosures)
    var resolution = Resolution()
    var found: [(index: Int, name: NameRow)] = []
    var new: [(index: Int, name: NameRow)] = []
    var known = [Timestamp?](repeating: nil, count: enclosures.count)
    for (index, enclosure) in enclosures.enumerated() {
      switch try recognition.name(of: enclosure, at: index, now: now) {
      case .known(let name, let isChanged):
        if !name.hasDate(by: now) { known[index] = name.first }
        found.append((index, name))
        if isChanged { resolution.names.append(name) }
      case .new(let name): new.append((index, name))
      case .refused(let refusal): resolution.refused.append(refusal)
      }
    }
    let firstSights = order.firstSights(known: known, now: now)
    for (index, var name) in new {
      if !name.hasDate(by: now) { name.first = firstSights[index] }
      found.append((index, name))
      // This includes files that are not kept: with a later first sight they would be the newest of all.
      resolution.names.append(name)
    }
    resolution.doubts = recognition.doubts + repeated(found)
    let listed = Set(found.map(\.name.path))
    let hasLimits = policy.window.keep != nil || policy.window.maxAge != nil
    let placed = hasLimits || isAnotherFeed ? try pass.ports.ledger.placedNames() : []
    var dropped = placed.filter { !listed.contains($0.path) }
    if isAnotherFeed {
      for index in dropped.indices where dropped[index].rule != .earlierFeed {
        dropped[index].rule = .earlierFeed
        resolution.names.append(dropped[index])
      }
    }
    let kept =
      hasLimits
      ? retain(
        found.map { ($0.name, order.rank(of: $0.index)) }, dropped: dropped, placed: Set(placed.map(\.path)),
        now: now,
        into: &resolution)
      : listed
    for (index, name) in found {
      guard kept.contains(name.path) else {
        resolution.tooOld += 1
        continue
      }
      resolution.entries.append(Self.entry(enclosures[index], name))
    }
    resolution.entries.sort { $0.path < $1.path }
    return resolution
  }

  /// Returns the items for which the file of another item of the same guid and URL stands.
  private func repeated(_ found: [(index: Int, name: NameRow)]) -> [Doubt] {
    guard !repeats.isEmpty else { return [] }
    let paths = Dictionary(uniqueKeysWithValues: found.map { ($0.index, $0.name.path) })
    return repeats.compactMap { item in paths[item.first].map { Doubt(item.enclosure, path: $0) } }
  }

  /// Returns the paths that are young enough, including those that the feed has dropped. `keep` retains files of an earlier feed
  /// only as far as this feed's own leave room.
  private func retain(
    _ names: [(row: NameRow, rank: Int)], dropped: [NameRow], placed: Set<RelativePath>, now: Timestamp,
    into resolution: inout Resolution
  ) -> Set<RelativePath> {
    var all = Self.aged(names, now: now)
    for name in dropped {
      let age = NameRow.age(date: name.date, first: name.first, now: now)
      all.append((name.path, age, age, all.count))
    }
    if let maxAge = policy.window.maxAge {
      let limit = now.adding(seconds: -maxAge)
      all.removeAll { $0.age < limit }
    }
    // Unwanted files take no place among those that are kept.
    let unwanted = all.filter { policy.filter.excludes($0.path) }.map(\.path)
    all.removeAll { policy.filter.excludes($0.path) }
    let earlier = Set(dropped.lazy.filter { $0.rule == .earlierFeed }.map(\.path))
    // Feeds give whole seconds, so the order in the feed decides between files of the same second.
    all.sort {
      let areEarlier = (earlier.contains($0.path), earlier.contains($1.path))
      guard areEarlier.0 == areEarlier.1 else { return areEarlier.1 }
      let (left, right) = ($0.order.seconds, $1.order.seconds)
      return left == right ? $0.rank < $1.rank : left > right
    }
    let most = policy.window.keep ?? .max
    let wanted = all.prefix(most).map(\.path)
    let kept = Set(wanted + unwanted)
    resolution.expired = placed.subtracting(kept)
    if policy.window.keep != nil {
      resolution.newest = Newest(
        most: most, wanted: wanted, expired: all.dropFirst(most).map(\.path).filter(placed.contains))
    }
    return kept
  }

  /// Returns the age of the feed's files, and the value by which `keep` orders them. An item with a date above undated ones counts
  /// as no older than these were at first sight. This does not apply when newer dates are below it, as below a pinned item.
  private static func aged(
    _ names: [(row: NameRow, rank: Int)], now: Timestamp
  ) -> [(path: RelativePath, age: Timestamp, order: Timestamp, rank: Int)] {
    var (dated, undated) = (Timestamp(nanoseconds: .min), Timestamp(nanoseconds: .min))
    return names.sorted { $0.rank > $1.rank }.map { name in
      let age = NameRow.age(date: name.row.date, first: name.row.first, now: now)
      var order = age
      if name.row.hasDate(by: now) {
        if age >= dated { order = max(age, undated) }
        dated = max(dated, age)
      } else {
        undated = max(undated, age)
      }
      return (name.row.path, age, order, name.rank)
    }
  }

  /// Makes an entry. Time and text are those of first sight: an item that was edited, or whose URL is signed anew each time, is the
  /// same version. Only a digest shows another one.
  private static func entry(_ enclosure: Enclosure, _ name: NameRow) -> Entry {
    Entry(
      path: name.path, modified: name.date, digests: enclosure.digest.map { [$0] } ?? [],
      sources: enclosure.sources, listing: ContentDoubt.enclosure,
      hint: ContentHint(mediaType: enclosure.mediaType, length: enclosure.length))
  }
}
