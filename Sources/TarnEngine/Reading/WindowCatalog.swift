import TarnCore

/// The files of a window: known again or named, and held to `--keep` and `--max-age`. A window is short, so it is held
/// in memory, up to a limit. On the pass's thread.
final class WindowCatalog {
  private let ports: PassPorts
  private let policy: PassPolicy
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

  init(ports: PassPorts, policy: PassPolicy) {
    self.ports = ports
    self.policy = policy
  }

  func take(_ enclosure: Enclosure) throws(FeedFailure) {
    guard enclosures.count < Self.most else {
      throw FeedFailure(
        code: "feed-too-many-entries", message: "the feed names more than \(Self.most) files")
    }
    enclosures.append(enclosure)
  }

  func resolve() throws -> Resolution {
    var recognition = Recognition(ports: ports, policy: policy, enclosures: enclosures)
    var resolution = Resolution()
    var found: [(enclosure: Enclosure, name: NameRow, isNew: Bool)] = []
    for enclosure in enclosures {
      switch try recognition.name(of: enclosure) {
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
      sources: enclosure.sources, listing: Array("enclosure".utf8))
  }
}

/// Which file of the ledger an enclosure is: by guid, then by URL, then by title and date (feeds.md 4).
private struct Recognition {
  private let ports: PassPorts
  private let policy: PassPolicy
  /// Guids that several items of this feed carry say nothing.
  private var commonGuids: Set<[UInt8]> = []
  /// URLs that differ in the query only: there the query counts.
  private var commonPlaces: Set<[UInt8]> = []
  private var taken: Set<RelativePath> = []

  enum Answer {
    case known(NameRow, isChanged: Bool)
    case new(NameRow)
    case refused(Refusal)
  }

  init(ports: PassPorts, policy: PassPolicy, enclosures: [Enclosure]) {
    self.ports = ports
    self.policy = policy
    var positions: [[UInt8]: Int] = [:]
    var places: Set<[UInt8]> = []
    for enclosure in enclosures {
      if let guid = enclosure.guid, let known = positions.updateValue(enclosure.position, forKey: guid),
        known != enclosure.position
      {
        commonGuids.insert(guid)
      }
      if !places.insert(enclosure.place).inserted { commonPlaces.insert(enclosure.place) }
    }
  }

  mutating func name(of enclosure: Enclosure) throws -> Answer {
    guard let (known, rule) = try find(enclosure) else { return try make(enclosure) }
    taken.insert(known.path)
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

  private func find(_ enclosure: Enclosure) throws -> (NameRow, NameRow.Rule)? {
    if let guid = guid(enclosure) {
      let rows = try free(ports.ledger.names(guid: guid))
      let row = rows.first { $0.place == enclosure.place } ?? rows.first { $0.ordinal == enclosure.ordinal }
      if let row { return (row, .guid) }
    }
    let rows = try free(ports.ledger.names(place: enclosure.place))
    if let row = rows.first(where: { $0.url == enclosure.url }) { return (row, .url) }
    if rows.count == 1, !commonPlaces.contains(enclosure.place) { return (rows[0], .url) }
    if !enclosure.title.isEmpty, let date = enclosure.date {
      let rows = try free(ports.ledger.names(title: enclosure.title, date: date))
      let row = rows.first { $0.ordinal == enclosure.ordinal } ?? (rows.count == 1 ? rows[0] : nil)
      if let row { return (row, .titleDate) }
    }
    return nil
  }

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
