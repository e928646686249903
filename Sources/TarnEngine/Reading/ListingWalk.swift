import TarnCore

/// Walks the listings below a recursive index, several at a time, with limits on depth and number and a check
/// for endless directories (a link to a directory above it). On the pass's thread.
final class ListingWalk {
  private let reader: FeedReader
  private let sink: (FeedItem) throws -> Void
  private var queue: [Listing] = []
  private var next = 0
  /// What was not read, and why: then the manifest is not complete.
  private(set) var failures: [Problem] = []
  private(set) var listings = 0
  /// There were directories that a filter leaves out.
  private(set) var hasSkipped = false
  /// Pages that were read beyond the first of each list.
  private(set) var pages = 0

  private struct Listing {
    var url: String
    var place: RelativePath
    /// Sums of the listings above it: one that equals an ancestor's is the same directory again.
    var above: [UInt64]
  }

  static let mostDepth = 64
  /// Of one list.
  static let mostPages = 10_000
  /// Items of a listing that are held until its sum is known.
  private static let mostHeld = 10_000
  static let mostListings = 1_000_000
  /// Listings asked for at a time.
  private static let window = 8

  init(reader: FeedReader, sink: @escaping (FeedItem) throws -> Void) {
    self.reader = reader
    self.sink = sink
  }

  /// Parses the feed's own document, and its further pages; directories that they name are queued.
  ///
  /// - Parameter wantsMore: whether another page is to be read, by what the first one says of the whole.
  func root(
    _ document: FeedReader.Document, while wantsMore: (FeedEnd) throws -> Bool = { _ in true }
  ) throws -> FeedEnd {
    var sum = ListingSum()
    var found: [(String, RelativePath)] = []
    func take(_ item: FeedItem) throws {
      sum.add(item, below: 0)
      if case .directory(let url, let path) = item { found.append((url, path)) } else { try sink(item) }
    }
    let end = try reader.parse(document, place: nil, sink: take)
    try readOn(behind: end, document, place: nil, while: { try wantsMore(end) }, take)
    for (url, path) in found { add(url: url, place: path, above: [sum.value]) }
    return end
  }

  /// Reads the pages behind a document, one after the other: each names the next. A page that cannot be read ends them, and is told.
  private func readOn(
    behind first: FeedEnd, _ document: FeedReader.Document, place: RelativePath?,
    while wantsMore: () throws -> Bool, _ take: (FeedItem) throws -> Void
  ) throws {
    guard first.next != nil else { return }
    let kind = try reader.kind(of: document)
    var (end, known) = (first, Set([document.url]))
    while let next = end.next, try wantsMore() {
      do {
        guard known.count <= Self.mostPages else {
          throw FeedFailure(
            code: "too-many-pages", message: "the list has more than \(Units.grouped(Self.mostPages)) pages")
        }
        guard known.insert(next).inserted else { throw Self.pagesLoop }
        let document = try reader.finish(reader.start(next, limit: FeedReader.mostListingBytes))
        guard try reader.kind(of: document) == kind else {
          throw FeedFailure(code: "page-of-another-kind", message: "this page is no page of the same list")
        }
        // It may have led elsewhere.
        guard document.url == next || known.insert(document.url).inserted else { throw Self.pagesLoop }
        end = try reader.parse(document, place: place, sink: take)
        pages += 1
        if let notice = end.notice, notice.code == .readInPart {
          return fail(next, code: notice.code.rawValue, message: notice.message)
        }
      } catch let failure as FeedFailure {
        return fail(next, code: failure.code, message: failure.message)
      } catch let failure as PassFailure {
        if failure.kind == .stopped { throw failure }
        return fail(next, code: failure.code, message: failure.message)
      }
    }
  }

  private static let pagesLoop = FeedFailure(
    code: "pages-loop", message: "the pages of this list lead back to one of them")

  /// Reads everything queued, and what that queues in turn.
  func run() throws {
    var started: [(Listing, FeedReader.Pending)] = []
    while next < queue.count || !started.isEmpty {
      while started.count < Self.window, next < queue.count {
        let listing = queue[next]
        next += 1
        started.append((listing, reader.start(listing.url, limit: FeedReader.mostListingBytes)))
      }
      if next > 4096 {
        queue.removeFirst(next)
        next = 0
      }
      let (listing, pending) = started.removeFirst()
      try read(listing, pending)
    }
  }

  private func read(_ listing: Listing, _ pending: FeedReader.Pending) throws {
    listings += 1
    do {
      try parse(listing, reader.finish(pending))
    } catch let failure as FeedFailure {
      fail(listing, code: failure.code, message: failure.message)
    } catch let failure as PassFailure {
      if failure.kind == .stopped { throw failure }
      fail(listing, code: failure.code, message: failure.message)
    }
  }

  /// Nothing of a directory that holds itself is handed on: its items are held until its sum is known. A very long listing is read
  /// twice for that.
  private func parse(_ listing: Listing, _ document: FeedReader.Document) throws {
    var sum = ListingSum()
    var items: [FeedItem] = []
    var isHeld = true
    let end = try reader.parse(document, place: listing.place) { item in
      sum.add(item, below: listing.place.bytes.count + 1)
      isHeld = isHeld && items.count < Self.mostHeld
      if isHeld { items.append(item) } else { items = [] }
    }
    guard !isLoop(sum, above: listing.above) else {
      return fail(
        listing, code: "directory-loop",
        message: "this directory seems to hold itself (a link on the server?); it is not entered")
    }
    func take(_ item: FeedItem) throws {
      guard case .directory(let url, let path) = item else { return try sink(item) }
      add(url: url, place: path, above: listing.above + [sum.value])
    }
    if isHeld {
      for item in items { try take(item) }
    } else {
      _ = try reader.parse(document, place: listing.place, sink: take)
    }
    try readOn(behind: end, document, place: listing.place, while: { true }, take)
    // Links are never known to be all, which the feed itself says already.
    if !end.isComplete, reader.policy.format != .links {
      fail(listing, code: "listing-incomplete", message: end.incompleteReason)
    }
  }

  /// The same files as in a directory above, or the same directories and no file so many times on end. It stays a
  /// guess, so nothing is deleted on it: the listing counts as not read.
  private func isLoop(_ sum: ListingSum, above: [UInt64]) -> Bool {
    let repeats = above.count { $0 == sum.value }
    return sum.hasFiles ? repeats > 0 : !sum.isEmpty && repeats >= Self.mostEmptyRepeats
  }

  private static let mostEmptyRepeats = 8

  private func add(url: String, place: RelativePath, above: [UInt64]) {
    // Nothing below it is wanted.
    guard !reader.policy.filter.exclude.matches(directory: place) else {
      hasSkipped = true
      return
    }
    let listing = Listing(url: url, place: place, above: above)
    if above.count > Self.mostDepth {
      fail(listing, code: "listing-too-deep", message: "deeper than \(Self.mostDepth) directories")
    } else if listings + queue.count - next >= Self.mostListings {
      fail(listing, code: "too-many-listings", message: "more than \(Self.mostListings) directories")
    } else {
      queue.append(listing)
    }
  }

  private func fail(_ listing: Listing, code: String, message: String) {
    fail(name: listing.place.bytes + Array("/".utf8), code: code, message: message)
  }

  /// - Parameter page: its address.
  private func fail(_ page: String, code: String, message: String) {
    fail(name: Array(Redaction.address(page).utf8), code: code, message: message)
  }

  private func fail(name: [UInt8], code: String, message: String) {
    let problem = Problem(name: name, kind: .failed, code: code, message: message, seen: reader.ports.now)
    failures.append(problem)
    reader.observer.pass(.problem(problem))
  }
}

/// A sum over what a listing says, in any order (FNV-1a of each item, added up).
private struct ListingSum {
  private(set) var value: UInt64 = 0
  private(set) var isEmpty = true
  private(set) var hasFiles = false

  mutating func add(_ item: FeedItem, below skip: Int) {
    switch item {
    case .entry(let entry):
      hasFiles = true
      add(entry.path.bytes.dropFirst(skip), entry.fingerprint)
    case .directory(_, let path): add(path.bytes.dropFirst(skip), [1])
    case .refused(let refusal): add(refusal.name.dropFirst(skip), Array(refusal.code.utf8))
    case .deleted(let path): add(path.bytes.dropFirst(skip), [2])
    case .enclosure(let enclosure): add([], Array((enclosure.sources.first?.url ?? "").utf8))
    }
  }

  private mutating func add(_ name: ArraySlice<UInt8>, _ rest: [UInt8]) {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in name { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    hash = hash &* 0x100_0000_01b3
    for byte in rest { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    value = value &+ hash
    isEmpty = false
  }
}
