import TarnCore
import TarnRuntime

/// Finds the file of the ledger for each enclosure: by guid, then by URL, then by title and date. Each rule is applied to the whole
/// feed before the next one, and takes no row that a stronger rule has claimed. Feeds name the newest item first, and a weak match
/// must not take the row of an item further down.
struct Recognition {
  private let ports: PassPorts
  private let policy: PassPolicy
  private let feedTitle: [UInt8]
  /// The guids that several items of this feed carry, which identify nothing.
  private var commonGuids: Set<[UInt8]> = []
  /// All guids of this feed.
  private var guids: Set<[UInt8]> = []
  /// The URLs that differ only in the query, which therefore counts.
  private var commonPlaces: Set<[UInt8]> = []
  /// The titles and dates of all items, which identify items without a guid besides their URLs.
  private var titles: Set<Title> = []
  /// The rows that were found, by the number of the enclosure.
  private var found: [Int: (row: NameRow, rule: NameRow.Rule)] = [:]
  private var taken: Set<RelativePath> = []
  /// The portable names that are taken, folded for file systems that ignore case. `nil` until one is needed.
  private var takenInAnyCase: Set<String>?
  /// The enclosures that `name` took for known and that may be others.
  private(set) var doubts: [WindowCatalog.Doubt] = []

  private struct Title: Hashable {
    var text: [UInt8]
    var date: Timestamp?
  }

  enum Answer {
    case known(NameRow, isChanged: Bool)
    case new(NameRow)
    case refused(Refusal)
  }

  init(_ pass: Pass, feedTitle: [UInt8], enclosures: [Enclosure]) throws {
    ports = pass.ports
    policy = pass.request.policy
    self.feedTitle = feedTitle
    survey(enclosures)
    for rule in [NameRow.Rule.guid, .url, .titleDate] {
      for (index, enclosure) in enclosures.enumerated() where found[index] == nil {
        if index & 63 == 0 { try pass.stop.throwIfSet() }
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
      titles.insert(Title(text: enclosure.title, date: enclosure.date))
    }
  }

  /// Returns the name of an enclosure.
  ///
  /// - Parameter now: the time of first sight, for a new one.
  mutating func name(of enclosure: Enclosure, at index: Int, now: Timestamp) throws -> Answer {
    guard let (known, rule) = found[index] else { return try make(enclosure, now: now) }
    if mayBeAnother(known, enclosure) {
      doubts.append(WindowCatalog.Doubt(enclosure, path: known.path))
    }
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
    case .new, .earlierFeed: return nil
    case .guid:
      guard let guid = guid(enclosure) else { return nil }
      let rows = try free(ports.ledger.names(guid: guid)).filter { !differs($0, enclosure) }
      return rows.first { $0.place == enclosure.place } ?? rows.first { $0.ordinal == enclosure.ordinal }
    case .url:
      let same = try free(ports.ledger.names(url: enclosure.url))
      if let row = same.first(where: { !contradicts($0, enclosure) }) { return row }
      let rows = try free(ports.ledger.names(place: enclosure.place, limit: Self.mostLikely)).filter {
        !contradicts($0, enclosure)
      }
      // Without its query the URL must be unique, both in the feed and in the ledger.
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

  /// Returns whether a row belongs to another item. It does when its own item is still in the feed, or when title, date and guid
  /// differ. It also does when title and date differ and neither has a guid, or when everything but the guid differs.
  private func contradicts(_ row: NameRow, _ enclosure: Enclosure) -> Bool {
    let guid = guid(enclosure)
    guard row.guid != nil || guid != nil else {
      if hasOtherTitle(row, enclosure), hasOtherDate(row, enclosure) { return true }
      // Some feeds use one address for all items, so the row's own item may be named further down.
      return (row.title != enclosure.title || row.date != enclosure.date)
        && titles.contains(Title(text: row.title, date: row.date))
    }
    guard let known = row.guid, let guid else { return false }
    guard known != guid else { return differs(row, enclosure) }
    return guids.contains(known) || (row.title != enclosure.title && row.date != enclosure.date)
  }

  /// Returns whether the enclosure is another item with the same guid: title, date and URL all differ.
  private func differs(_ row: NameRow, _ enclosure: Enclosure) -> Bool {
    hasOtherTitle(row, enclosure) && hasOtherDate(row, enclosure) && row.url != enclosure.url
  }

  /// Returns whether a match is doubtful: two of title, date and URL differ, or nothing but the URL matches.
  private func mayBeAnother(_ row: NameRow, _ enclosure: Enclosure) -> Bool {
    let (hasOtherDate, hasOtherURL) = (hasOtherDate(row, enclosure), row.url != enclosure.url)
    guard hasOtherTitle(row, enclosure) else { return hasOtherDate && (hasOtherURL || row.guid == nil) }
    return hasOtherDate || hasOtherURL || (row.guid == nil && row.date == nil)
  }

  private func hasOtherTitle(_ row: NameRow, _ enclosure: Enclosure) -> Bool {
    !row.title.isEmpty && !enclosure.title.isEmpty && row.title != enclosure.title
  }

  private func hasOtherDate(_ row: NameRow, _ enclosure: Enclosure) -> Bool {
    guard let known = row.date, let date = enclosure.date else { return false }
    return known != date
  }

  /// Returns whether the rest matches. When only the query differs, the guid or title and date must match.
  private func isLike(_ row: NameRow, _ enclosure: Enclosure) -> Bool {
    if row.url == enclosure.url || row.url == row.place || enclosure.url == enclosure.place { return true }
    if let known = row.guid, known == guid(enclosure) { return true }
    return row.title == enclosure.title && row.date == enclosure.date
  }

  /// The most rows that are examined for one URL without its query: one program may serve all files of a feed.
  private static let mostLikely = 64

  private func free(_ rows: [NameRow]) -> [NameRow] {
    rows.filter { !taken.contains($0.path) }
  }

  private mutating func isTakenInAnyCase(_ path: RelativePath) throws -> Bool {
    let known =
      try takenInAnyCase ?? Set((Array(taken) + ports.ledger.placedNames().map(\.path)).map(Self.folded))
    takenInAnyCase = known
    return known.contains(Self.folded(path))
  }

  private static func folded(_ path: RelativePath) -> String {
    String(decoding: path.bytes, as: UTF8.self).lowercased()
  }

  private mutating func make(_ enclosure: Enclosure, now: Timestamp) throws -> Answer {
    let identity = guid(enclosure).map { $0 + [UInt8(ascii: "#")] + Array(String(enclosure.ordinal).utf8) }
    let hex = Array(ports.hashing.digest(.sha256, of: identity ?? enclosure.url).hex.utf8.prefix(8))
    let naming = FileNaming(
      enclosure, identity: hex, feed: feedTitle, rule: PathRule(portable: policy.window.namesArePortable))
    for mark in [nil, hex] + (2...99).map({ hex + Array("-\($0)".utf8) }) {
      let bytes = policy.window.template.path(naming, mark: mark)
      let path: RelativePath
      do {
        path = try RelativePath(bytes, rule: policy.pathRule)
      } catch {
        return .refused(Refusal(name: bytes, error))
      }
      if taken.contains(path) { continue }
      if policy.window.namesArePortable, try isTakenInAnyCase(path) { continue }
      if try ports.ledger.name(path) != nil || ports.ledger.row(path) != nil { continue }
      taken.insert(path)
      takenInAnyCase?.insert(Self.folded(path))
      return .new(
        NameRow(
          path: path, guid: guid(enclosure), ordinal: enclosure.ordinal, place: enclosure.place,
          url: enclosure.url, title: enclosure.title, date: enclosure.date, first: now, rule: .new))
    }
    return .refused(
      Refusal(name: enclosure.title, code: "name-taken", reason: "a hundred files have this name already"))
  }
}

extension Enclosure {
  var url: [UInt8] { Array((sources.first?.url ?? "").utf8) }

  /// The URL without query and fragment.
  fileprivate var place: [UInt8] {
    Array(url.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
  }
}
