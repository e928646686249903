import DequeModule
import TarnCore

/// Walks the listings below a recursive index, several at a time. It limits their depth and number, and detects endless directories
/// (links to a directory above). Used on the pass's thread.
final class ListingWalk {
  private let reader: FeedReader
  private let sink: (FeedItem) throws -> Void
  private var queue: Deque<Listing> = []
  /// What was not read, and why. With a failure the manifest is not complete.
  private(set) var failures: [Problem] = []
  private(set) var listings = 0
  /// The formats of the listings below the feed's own document.
  private(set) var formats: Set<String> = []
  /// True when a filter excluded directories.
  private(set) var hasSkipped = false
  /// The number of pages that were read beyond the first of each list.
  private(set) var pages = 0
  private var unread = UnreadChecksums()
  /// The files of all checksum lists.
  private var vouched = NamesOfChecksums()

  private struct Listing {
    var url: String
    var place: RelativePath
    /// The sums of the listings above it. One that equals an ancestor's sum is the same directory again.
    var above: [UInt64]
    /// The checksum file, when this is one instead of a listing.
    var checksums: ChecksumFile?

    var name: [UInt8] { place.bytes + Array("/".utf8) }
  }

  static let mostDepth = 64
  /// The most pages of one list.
  static let mostPages = 10_000
  /// The most items of a listing that are held until its sum is known.
  private static let mostHeld = 10_000
  static let mostListings = 1_000_000
  /// The number of listings that are requested at a time.
  private static let window = 8

  init(reader: FeedReader, sink: @escaping (FeedItem) throws -> Void) {
    self.reader = reader
    self.sink = sink
  }

  /// Parses the feed's own document and its further pages, and queues the directories that they name.
  ///
  /// - Parameter wantsMore: returns whether another page is to be read. It gets the end of the first page.
  func root(
    _ document: FeedReader.Document, while wantsMore: (FeedEnd) throws -> Bool = { _ in true }
  ) throws -> FeedEnd {
    var sum = ListingSum()
    var found: [(String, RelativePath)] = []
    var checksums = ListedChecksums(filter: reader.policy.filter)
    func forward(_ item: FeedItem) throws {
      sum.add(item, below: 0)
      checksums.note(item)
      if case .directory(let url, let path) = item { found.append((url, path)) } else { try sink(item) }
    }
    var end = try reader.parse(document, place: nil, sink: forward)
    try readOn(behind: end, document, place: nil, while: { try wantsMore(end) }, forward)
    for (url, path) in found { add(url: url, place: path, above: [sum.value]) }
    if end.isIndex { try add(checksums) }
    if let broken = end.notice, broken.code == .readInPart {
      // The entries after the broken part are not known, so no pass over this feed is complete.
      fail(reader.feedName, code: broken.code.rawValue, message: broken.message)
      end.notice = nil
    }
    return end
  }

  /// Reads the pages after a document one by one: each names the next. A page that cannot be read ends the sequence, and is
  /// reported.
  private func readOn(
    behind first: FeedEnd, _ document: FeedReader.Document, place: RelativePath?,
    while wantsMore: () throws -> Bool, _ forward: (FeedItem) throws -> Void
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
          throw FeedFailure(code: "page-of-another-kind", message: "this page is not part of the same list")
        }
        // A redirect may have led to a page that is known.
        guard document.url == next || known.insert(document.url).inserted else { throw Self.pagesLoop }
        end = try reader.parse(document, place: place, sink: forward)
        pages += 1
        if let notice = end.notice, notice.code == .readInPart {
          throw FeedFailure(code: notice.code.rawValue, message: notice.message)
        }
      } catch {
        return try fail(FeedReader.problemName(next), error)
      }
    }
  }

  private static let pagesLoop = FeedFailure(
    code: "pages-loop", message: "the pages of this list lead back to one of them")

  /// Reads all queued listings, and those that they queue in turn.
  func run() throws {
    var started: Deque<(Listing, FeedReader.Pending)> = []
    while true {
      while started.count < Self.window, let listing = queue.popFirst() {
        started.append((listing, reader.start(listing.url, limit: FeedReader.mostListingBytes)))
      }
      guard let (listing, pending) = started.popFirst() else { return tellUnread() }
      listings += 1
      do {
        let document = try reader.finish(pending)
        if let list = listing.checksums { try read(list, document) } else { try parse(listing, document) }
      } catch {
        if let list = listing.checksums { try leave(list, error) } else { try fail(listing.name, error) }
      }
    }
  }

  // MARK: Checksums beside the files

  private func add(_ found: ListedChecksums) throws {
    for list in found.wanted() {
      if let file = list.file, let digest = try found.known(list, reader.ports.ledger) {
        try sink(.entry(Entry(vouchingFor: file, digests: [digest], list: list.entry.path)))
      } else if let url = list.entry.sources.first?.url {
        queue.append(Listing(url: url, place: list.entry.path, above: [], checksums: list))
      }
    }
  }

  /// Reads a checksum file. One that is cut off must not be used, so it is parsed to its end before anything is passed on. Where it
  /// contradicts itself or a list before it about a file, it says nothing of that file.
  private func read(_ list: ChecksumFile, _ document: FeedReader.Document) throws {
    guard document.isWhole else {
      throw FeedFailure(
        code: "feed-truncated", message: "nothing marks where it ends, so a truncated one would look whole")
    }
    var names = NamesOfChecksums()
    guard try !reader.parseChecksums(document, sink: { names.note($0) }).isCut else {
      throw FeedFailure(code: "feed-truncated", message: "the end of its PGP signature is missing")
    }
    let path = list.entry.path.bytes
    let place = path.lastIndex(of: UInt8(ascii: "/")).map { Array(path[...$0]) } ?? []
    var isOfFile = list.file == nil || list.isGuess
    var disputed: RelativePath?
    _ = try reader.parseChecksums(document) { item in
      guard case .entry(let entry) = item, !entry.digests.isEmpty, !names.isContradicted(entry.path),
        let below = try? RelativePath(place + entry.path.bytes, rule: reader.policy.pathRule)
      else { return }
      let file = names.isOne ? list.file(named: below) : below
      isOfFile = isOfFile || file == list.file
      var voucher = Entry(vouchingFor: file, digests: entry.digests, list: list.entry.path)
      voucher.mayBeCut = entry.mayBeCut && file != list.file
      vouched.note(.entry(voucher))
      if vouched.isContradicted(file) { disputed = disputed ?? file } else { try sink(.entry(voucher)) }
    }
    if let name = names.contradicted {
      unread.add(list, "it has two digests of \(name)")
    } else if let disputed {
      unread.add(list, "another list has another digest of \(disputed.printable)")
    } else if !isOfFile, let file = list.file {
      unread.add(list, "it does not name \(file.printable)")
    }
  }

  /// Handles a checksum file that could not be read: its files come without its digests, which is reported.
  private func leave(_ list: ChecksumFile, _ error: any Error) throws {
    switch error {
    case let failure as FeedFailure:
      if failure.code != "feed-not-recognised" || !list.isGuess { unread.add(list, failure.message) }
    case let failure as PassFailure where failure.kind == .feedUnreachable || failure.kind == .feedMalformed:
      unread.add(list, FeedReader.reason(failure))
    default: throw error
    }
  }

  /// Reports the checksum files that could not be read.
  private func tellUnread() {
    if let message = unread.message { reader.pass.observer.notice("checksums-not-read", message) }
  }

  /// Parses a listing. Items of a directory that contains itself must not be passed on, so they are held until the sum is known. A
  /// very long listing is parsed twice instead.
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
      throw FeedFailure(
        code: "directory-loop",
        message: "this directory seems to hold itself (a link on the server?); it is not entered")
    }
    formats.insert(end.format)
    var checksums = ListedChecksums(filter: reader.policy.filter)
    func forward(_ item: FeedItem) throws {
      checksums.note(item)
      guard case .directory(let url, let path) = item else { return try sink(item) }
      add(url: url, place: path, above: listing.above + [sum.value])
    }
    if isHeld {
      for item in items { try forward(item) }
    } else {
      _ = try reader.parse(document, place: listing.place, sink: forward)
    }
    try readOn(behind: end, document, place: listing.place, while: { true }, forward)
    try add(checksums)
    // A list of links is never known to be complete, which the feed itself says already.
    if !end.isComplete, reader.policy.format != .links {
      throw FeedFailure(code: "listing-incomplete", message: end.incompleteReason)
    }
  }

  /// Returns whether the listing has the same files as a directory above it, or the same directories and no file many times in a
  /// row. This is a guess, so nothing is deleted because of it: the listing counts as not read.
  private func isLoop(_ sum: ListingSum, above: [UInt64]) -> Bool {
    let repeats = above.count { $0 == sum.value }
    return sum.hasFiles ? repeats > 0 : !sum.isEmpty && repeats >= Self.mostEmptyRepeats
  }

  private static let mostEmptyRepeats = 8

  private func add(url: String, place: RelativePath, above: [UInt64]) {
    // The filter excludes everything below it.
    guard !reader.policy.filter.exclude.matches(directory: place) else {
      hasSkipped = true
      return
    }
    let listing = Listing(url: url, place: place, above: above)
    if above.count > Self.mostDepth {
      fail(listing.name, code: "listing-too-deep", message: "deeper than \(Self.mostDepth) directories")
    } else if listings + queue.count >= Self.mostListings {
      fail(listing.name, code: "too-many-listings", message: "more than \(Self.mostListings) directories")
    } else {
      queue.append(listing)
    }
  }

  /// Reports a failure.
  ///
  /// - Parameter name: the name of a listing, or the address of a page.
  /// - Throws: errors that end the whole walk.
  private func fail(_ name: [UInt8], _ error: any Error) throws {
    switch error {
    case let failure as FeedFailure: fail(name, code: failure.code, message: failure.message)
    case let failure as PassFailure where failure.kind != .stopped:
      fail(name, code: failure.code, message: failure.message)
    default: throw error
    }
  }

  private func fail(_ name: [UInt8], code: String, message: String) {
    let problem = Problem(name: name, kind: .failed, code: code, message: message, seen: reader.ports.now)
    failures.append(problem)
    reader.pass.observer.pass(.problem(problem))
  }
}

/// A sum over the items of a listing, in any order.
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
    var hasher = Swift.Hasher()
    hasher.combine(name)
    hasher.combine(rest)
    value &+= UInt64(bitPattern: Int64(hasher.finalize()))
    isEmpty = false
  }
}
