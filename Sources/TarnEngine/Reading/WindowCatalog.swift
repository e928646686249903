import TarnCore
import TarnRuntime

/// The files of a window: known again or named, and held to `--keep` and `--max-age`. A window is short, so it is held
/// in memory, up to a limit. On the pass's thread.
final class WindowCatalog {
  private let ports: PassPorts
  private let policy: PassPolicy
  private let stop: StopFlag
  private var enclosures: [Enclosure] = []

  /// More files are no window.
  static let most = 100_000

  struct Resolution {
    /// By path.
    var entries: [Entry] = []
    /// No name that is taken can be made.
    var refused: [Refusal] = []
    /// Placed earlier, and now older than what is kept.
    var expired: Set<RelativePath> = []
    /// What the ledger has to learn once the feed is accepted.
    var names: [NameRow] = []
    /// In the window, and older than what is kept.
    var tooOld = 0
  }

  init(ports: PassPorts, policy: PassPolicy, stop: StopFlag) {
    self.ports = ports
    self.policy = policy
    self.stop = stop
  }

  func take(_ enclosure: Enclosure) throws(FeedFailure) {
    guard enclosures.count < Self.most else {
      throw FeedFailure(
        code: "feed-too-many-entries", message: "the feed names more than \(Self.most) files")
    }
    enclosures.append(enclosure)
  }

  func resolve() throws -> Resolution {
    var recognition = try Recognition(ports: ports, policy: policy, enclosures: enclosures, stop: stop)
    var resolution = Resolution()
    var found: [(enclosure: Enclosure, name: NameRow, isNew: Bool)] = []
    for (index, enclosure) in enclosures.enumerated() {
      switch try recognition.name(of: enclosure, at: index) {
      case .known(let name, let isChanged):
        found.append((enclosure, name, false))
        if isChanged { resolution.names.append(name) }
      case .new(let name): found.append((enclosure, name, true))
      case .refused(let refusal): resolution.refused.append(refusal)
      }
    }
    let kept = try retain(found.map(\.name), into: &resolution)
    for (enclosure, name, isNew) in found {
      guard kept.contains(name.path) else {
        resolution.tooOld += 1
        continue
      }
      if isNew { resolution.names.append(name) }
      resolution.entries.append(Self.entry(enclosure, name))
    }
    resolution.entries.sort { $0.path < $1.path }
    return resolution
  }

  /// Which paths are young enough, those included that the feed has dropped.
  private func retain(_ names: [NameRow], into resolution: inout Resolution) throws -> Set<RelativePath> {
    let listed = Set(names.map(\.path))
    guard policy.window.keep != nil || policy.window.maxAge != nil else { return listed }
    let placed = try ports.ledger.placedNames()
    var all = names.map { (path: $0.path, age: $0.age) }
    all += placed.filter { !listed.contains($0.path) }
    // The feed's own order decides between files of one moment.
    var young = all.enumerated().sorted {
      $0.element.age == $1.element.age ? $0.offset < $1.offset : $0.element.age > $1.element.age
    }.map(\.element)
    if let maxAge = policy.window.maxAge {
      let limit = ports.now.adding(seconds: -maxAge)
      young.removeAll { $0.age < limit }
    }
    let kept = Set(young.prefix(policy.window.keep ?? .max).map(\.path))
    resolution.expired = Set(placed.map(\.path)).subtracting(kept)
    return kept
  }

  /// Time and text are those of first sight: an item that was edited, or whose URL is signed anew each time, is the
  /// same version. Only a digest tells another.
  private static func entry(_ enclosure: Enclosure, _ name: NameRow) -> Entry {
    Entry(
      path: name.path, modified: name.date, digests: enclosure.digest.map { [$0] } ?? [],
      sources: enclosure.sources, listing: Array("enclosure".utf8),
      hint: ContentHint(mediaType: enclosure.mediaType, length: enclosure.length))
  }
}

/// Which file of the ledger an enclosure is: by guid, then by URL, then by title and date (feeds.md 4). Each rule goes
/// over the whole feed before the next one, and takes no row that a stronger rule has claimed: feeds name the newest item
/// first, and a weak likeness must not take the row of an item that is named further down.
private struct Recognition {
  private let ports: PassPorts
  private let policy: PassPolicy
  /// Guids that several items of this feed carry say nothing.
  private var commonGuids: Set<[UInt8]> = []
  /// All that this feed carries.
  private var guids: Set<[UInt8]> = []
  /// URLs that differ in the query only: there the query counts.
  private var commonPlaces: Set<[UInt8]> = []
  /// By the number of the enclosure.
  private var found: [Int: (row: NameRow, rule: NameRow.Rule)] = [:]
  private var taken: Set<RelativePath> = []

  enum Answer {
    case known(NameRow, isChanged: Bool)
    case new(NameRow)
    case refused(Refusal)
  }

  init(ports: PassPorts, policy: PassPolicy, enclosures: [Enclosure], stop: StopFlag) throws {
    self.ports = ports
    self.policy = policy
    survey(enclosures)
    for rule in [NameRow.Rule.guid, .url, .titleDate] {
      for (index, enclosure) in enclosures.enumerated() where found[index] == nil {
        if index & 63 == 0, stop.isSet {
          throw PassFailure(.stopped, code: "stopped", "ended on request")
        }
        guard let row = try find(enclosure, by: rule), taken.insert(row.path).inserted else { continue }
        found[index] = (row, rule)
      }
    }
  }

  private mutating func survey(_ enclosures: [Enclosure]) {
    var positions: [[UInt8]: Int] = [:]
    var places: Set<[UInt8]> = []
    for enclosure in enclosures {
      if let guid = enclosure.guid {
        guids.insert(guid)
        if let known = positions.updateValue(enclosure.position, forKey: guid), known != enclosure.position {
          commonGuids.insert(guid)
        }
      }
      if !places.insert(enclosure.place).inserted { commonPlaces.insert(enclosure.place) }
    }
  }

  mutating func name(of enclosure: Enclosure, at index: Int) throws -> Answer {
    guard let (known, rule) = found[index] else { return try make(enclosure) }
    var name = known
    name.guid = guid(enclosure) ?? known.guid
    name.ordinal = enclosure.ordinal
    if known.place != enclosure.place || commonPlaces.contains(enclosure.place) {
      name.place = enclosure.place
      name.url = enclosure.url
    }
    name.rule = rule
    return .known(name, isChanged: name != known)
  }

  private func guid(_ enclosure: Enclosure) -> [UInt8]? {
    enclosure.guid.flatMap { commonGuids.contains($0) ? nil : $0 }
  }

  private func find(_ enclosure: Enclosure, by rule: NameRow.Rule) throws -> NameRow? {
    switch rule {
    case .new: return nil
    case .guid:
      guard let guid = guid(enclosure) else { return nil }
      let rows = try free(ports.ledger.names(guid: guid))
      return rows.first { $0.place == enclosure.place } ?? rows.first { $0.ordinal == enclosure.ordinal }
    case .url:
      let same = try free(ports.ledger.names(url: enclosure.url))
      if let row = same.first(where: { !contradicts($0, enclosure) }) { return row }
      let rows = try free(ports.ledger.names(place: enclosure.place, limit: Self.mostLikely)).filter {
        !contradicts($0, enclosure)
      }
      // Without its query the URL has to be the only one of its kind, here and in the ledger.
      let isOnly = rows.count == 1 && !commonPlaces.contains(enclosure.place)
      return isOnly && isLike(rows[0], enclosure) ? rows[0] : nil
    case .titleDate:
      guard !enclosure.title.isEmpty, let date = enclosure.date else { return nil }
      let rows = try free(ports.ledger.names(title: enclosure.title, date: date)).filter {
        !contradicts($0, enclosure)
      }
      return rows.first { $0.ordinal == enclosure.ordinal } ?? (rows.count == 1 ? rows[0] : nil)
    }
  }

  /// Another item, for the feed still names the one that the row is of; or both its title and its date are others
  /// and its guid, too.
  private func contradicts(_ row: NameRow, _ enclosure: Enclosure) -> Bool {
    guard let known = row.guid, let guid = guid(enclosure), known != guid else { return false }
    return guids.contains(known) || (row.title != enclosure.title && row.date != enclosure.date)
  }

  /// Where only the query differs, the guid or title and date have to agree.
  private func isLike(_ row: NameRow, _ enclosure: Enclosure) -> Bool {
    if row.url == enclosure.url || row.url == row.place || enclosure.url == enclosure.place { return true }
    if let known = row.guid, known == guid(enclosure) { return true }
    return row.title == enclosure.title && row.date == enclosure.date
  }

  /// Rows of one URL without its query that are looked at: one program may serve all files of a feed.
  private static let mostLikely = 64

  private func free(_ rows: [NameRow]) -> [NameRow] {
    rows.filter { !taken.contains($0.path) }
  }

  private mutating func make(_ enclosure: Enclosure) throws -> Answer {
    let identity = guid(enclosure).map { $0 + [UInt8(ascii: "#")] + Array(String(enclosure.ordinal).utf8) }
    let hex = Array(ports.hashing.digest(.sha256, of: identity ?? enclosure.url).hex.utf8.prefix(8))
    let naming = FileNaming(enclosure, identity: hex, rule: policy.pathRule)
    for mark in [nil, hex] + (2...99).map({ hex + Array("-\($0)".utf8) }) {
      let bytes = policy.window.template.path(naming, mark: mark)
      let path: RelativePath
      do {
        path = try RelativePath(bytes, rule: policy.pathRule)
      } catch {
        return .refused(Refusal(name: bytes, error))
      }
      if taken.contains(path) { continue }
      if try ports.ledger.name(path) != nil || ports.ledger.row(path) != nil { continue }
      taken.insert(path)
      return .new(
        NameRow(
          path: path, guid: guid(enclosure), ordinal: enclosure.ordinal, place: enclosure.place,
          url: enclosure.url, title: enclosure.title, date: enclosure.date, first: ports.now, rule: .new))
    }
    return .refused(
      Refusal(name: enclosure.title, code: "name-taken", reason: "a hundred files have this name already"))
  }
}

extension Enclosure {
  fileprivate var url: [UInt8] { Array((sources.first?.url ?? "").utf8) }

  /// The URL without query and fragment.
  fileprivate var place: [UInt8] {
    Array(url.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
  }
}
