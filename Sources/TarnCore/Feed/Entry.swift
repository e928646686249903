/// One wanted file, as a feed names it. A value type whose contents lie in one object, since entries are passed on a dozen times
/// between the feed and the ledger.
package struct Entry: Sendable, Equatable {
  private struct Fields: Equatable {
    var path: RelativePath
    var size: UInt64?
    var modified: Timestamp?
    var modifiedIsExact: Bool
    var digests: [Digest]
    var sources: [Source]
    var pieces: Pieces?
    var listing: [UInt8]
    var mayBeDirectory: Bool
    var mayBeCut = false
    var hint: ContentHint
    var isList: Bool
    var voucher: RelativePath?
  }

  private final class Contents: Sendable {
    let fields: Fields

    init(_ fields: Fields) {
      self.fields = fields
    }
  }

  private var contents: Contents

  private mutating func change(_ body: (inout Fields) -> Void) {
    var fields = contents.fields
    body(&fields)
    contents = Contents(fields)
  }

  package var path: RelativePath {
    get { contents.fields.path }
    set { change { $0.path = newValue } }
  }

  /// The size in bytes. A size that the feed only rounds or hints at is in `hint`.
  package var size: UInt64? {
    get { contents.fields.size }
    set { change { $0.size = newValue } }
  }

  /// The time that the file is to have on disk.
  package var modified: Timestamp? {
    get { contents.fields.modified }
    set { change { $0.modified = newValue } }
  }

  /// False when the listing shows only minutes or hides its time zone. Then the time of the download's Last-Modified is preferred.
  package var modifiedIsExact: Bool {
    get { contents.fields.modifiedIsExact }
    set { change { $0.modifiedIsExact = newValue } }
  }

  /// Every digest that the feed gives and Tarn can check, the strongest first. The strongest decides.
  package var digests: [Digest] {
    get { contents.fields.digests }
    set { change { $0.digests = newValue } }
  }

  /// The places to fetch the file from, best first. Empty only in an entry that stands for a refused name, or in a voucher.
  package var sources: [Source] {
    get { contents.fields.sources }
    set { change { $0.sources = newValue } }
  }

  package var pieces: Pieces? {
    get { contents.fields.pieces }
    set { change { $0.pieces = newValue } }
  }

  /// The text of the listing that may tell one version from the next: a rounded size, an ETag, a time as printed. Compared with an
  /// earlier listing when there is no digest; empty when there was no such text.
  package var listing: [UInt8] {
    get { contents.fields.listing }
    set { change { $0.listing = newValue } }
  }

  /// True when the listing does not tell files from directories. When the URL then leads to one with a slash at its end, the entry
  /// is not a file.
  package var mayBeDirectory: Bool {
    get { contents.fields.mayBeDirectory }
    set { change { $0.mayBeDirectory = newValue } }
  }

  /// True when nothing ends the name in the list, so that it may be the beginning of another one. Only its server, not a file with the
  /// same digest, shows that there is such a file.
  package var mayBeCut: Bool {
    get { contents.fields.mayBeCut }
    set { change { $0.mayBeCut = newValue } }
  }

  /// What the feed says of the contents without vouching for it.
  package var hint: ContentHint {
    get { contents.fields.hint }
    set { change { $0.hint = newValue } }
  }

  /// True for the feed's own document, kept beside the files that it names. It is published after all of them.
  package var isList: Bool { contents.fields.isList }

  /// The checksum list that `digest` comes from, beside the file; `nil` where the feed gives the digest itself.
  package var voucher: RelativePath? { contents.fields.voucher }

  package init(
    path: RelativePath, size: UInt64? = nil, modified: Timestamp? = nil, modifiedIsExact: Bool = true,
    digests: [Digest] = [], sources: [Source] = [], pieces: Pieces? = nil, listing: [UInt8] = [],
    mayBeDirectory: Bool = false, hint: ContentHint = ContentHint(), isList: Bool = false,
    voucher: RelativePath? = nil
  ) {
    contents = Contents(
      Fields(
        path: path, size: size, modified: modified, modifiedIsExact: modifiedIsExact,
        digests: digests.count > 1 ? digests.sorted { $0.algorithm > $1.algorithm } : digests,
        sources: sources, pieces: pieces, listing: listing, mayBeDirectory: mayBeDirectory, hint: hint,
        isList: isList, voucher: voucher))
  }

  /// Makes an entry that stands for a refused name: it protects what is at the path, and below it, from deletion.
  package init(refused path: RelativePath) {
    self.init(path: path)
  }

  /// Makes an entry from the line of a checksum list beside a directory index. The index need not have the path.
  package init(vouchingFor path: RelativePath, digests: [Digest], list: RelativePath) {
    self.init(path: path, digests: digests, sources: [], voucher: list)
  }

  /// True for an entry that only gives digests to the entry of its path.
  package var isVoucher: Bool { contents.fields.sources.isEmpty && contents.fields.voucher != nil }

  /// Returns the entry with the digests of a checksum list added. The feed's own digests decide, and of two lists the one read
  /// first.
  package func vouched(by other: Entry) -> Entry {
    guard !isRefused, digests.isEmpty || voucher != nil else { return self }
    let added = other.digests.filter { new in !digests.contains { $0.algorithm == new.algorithm } }
    guard !added.isEmpty else { return self }
    var fields = contents.fields
    fields.digests = (digests + added).sorted { $0.algorithm > $1.algorithm }
    if fields.digests.first != digest { fields.voucher = other.voucher }
    fields.mayBeCut = mayBeCut || other.mayBeCut
    var vouched = self
    vouched.contents = Contents(fields)
    return vouched
  }

  /// True for an entry that stands for a refused name. It is not wanted, and no other entry is refused because of it.
  package var isRefused: Bool { contents.fields.sources.isEmpty && contents.fields.voucher == nil }

  /// The digest that decides; nil when the feed gives none.
  package var digest: Digest? { contents.fields.digests.first }

  /// True when `fingerprint` is not empty.
  package var hasFingerprint: Bool {
    contents.fields.size != nil || contents.fields.modified != nil || !contents.fields.listing.isEmpty
      || contents.fields.digests.isEmpty && contents.fields.pieces != nil
  }

  /// Returns whether another version may still get the time that the listing gives in minutes or whole seconds. The listing could
  /// not tell the two apart.
  ///
  /// - Parameter moment: when the server sent the file.
  package func isUnsettled(at moment: Timestamp) -> Bool {
    guard let modified = contents.fields.modified, contents.fields.digests.isEmpty else { return false }
    let showsMinutes = !contents.fields.modifiedIsExact && modified.seconds % 60 == 0
    // A time of another zone, or of a clock that is ahead, does not matter here.
    return (-5..<(showsMinutes ? 60 : 1)).contains(moment.seconds - modified.seconds)
  }

  /// The size, the time and the text of the listing, which tell this version from the next when there is no digest.
  package var fingerprint: [UInt8] {
    guard hasFingerprint else { return [] }
    let contents = contents.fields
    var bytes: [UInt8] = []
    // Room for both numbers at their longest.
    bytes.reserveCapacity(42 + contents.listing.count)
    Self.append(contents.size.map { (false, $0) }, to: &bytes)
    bytes.append(0x20)
    let time = contents.modified?.nanoseconds
    Self.append(time.map { ($0 < 0, $0.magnitude) }, to: &bytes)
    bytes.append(0x20)
    bytes += contents.listing
    if contents.digests.isEmpty, let pieces = contents.pieces { bytes += Array(" \(Self.sum(pieces))".utf8) }
    return bytes
  }

  /// Returns a sum over the digests of the pieces.
  private static func sum(_ pieces: Pieces) -> UInt64 {
    var sum = FNV1a()
    for digest in pieces.digests { for byte in digest.bytes { sum.add(byte) } }
    return sum.value
  }

  /// Appends a decimal number, or a dash for none.
  private static func append(_ number: (isNegative: Bool, magnitude: UInt64)?, to bytes: inout [UInt8]) {
    guard let number, number.magnitude > 0 else { return bytes.append(number == nil ? 0x2D : 0x30) }
    if number.isNegative { bytes.append(0x2D) }
    var power: UInt64 = 1
    while number.magnitude / power >= 10 { power *= 10 }
    while power > 0 {
      bytes.append(0x30 + UInt8(truncatingIfNeeded: number.magnitude / power % 10))
      power /= 10
    }
  }
}

extension Entry {
  package static func == (left: Entry, right: Entry) -> Bool {
    left.contents === right.contents || left.contents.fields == right.contents.fields
  }
}

/// A place to fetch an entry from.
package struct Source: Sendable, Hashable {
  /// The absolute URL in ASCII, ready to be sent: `http`, `https` or `file`.
  package var url: String
  /// The priority: 1 is the best, 999999 the worst (RFC 5854 4.2.16.2).
  package var priority: Int

  package init(url: String, priority: Int = 1) {
    self.url = url
    self.priority = priority
  }
}

/// Digests of the consecutive parts of a file.
package struct Pieces: Sendable, Equatable {
  /// The bytes of every piece but the last, at least 1.
  package var length: UInt64
  /// The digests in order, all of one algorithm.
  package var digests: [Digest]

  package init(length: UInt64, digests: [Digest]) {
    self.length = length
    self.digests = digests
  }
}

/// A name of the feed that is not accepted.
package struct Refusal: Sendable, Equatable {
  /// The most bytes of a name that are shown when it is not a path.
  package static let mostShown = 255

  /// The path below the feed's root that the name stands for. Nothing there is deleted because of a bad feed. `nil` when no path
  /// can be meant.
  package var path: RelativePath?
  /// The name for people: the path, or else what the feed gave.
  package var name: [UInt8]
  /// A stable code such as `path-dot-segment`.
  package var code: String
  package var reason: String

  package init(path: RelativePath, code: String, reason: String) {
    self.path = path
    name = path.bytes
    self.code = code
    self.reason = reason
  }

  /// Refuses a name, which may be no path.
  ///
  /// - Parameter place: the path of the listing that holds the name, with its slash.
  package init(name: [UInt8], below place: [UInt8] = [], code: String, reason: String) {
    // The rule of `--portable-names` is left out: a file from before that option may stand there.
    path = try? RelativePath(place + name)
    self.name = path?.bytes ?? place + Self.shown(name)
    self.code = code
    self.reason = reason
  }

  package init(name: [UInt8], below place: [UInt8] = [], _ refusal: PathRefusal) {
    self.init(name: name, below: place, code: refusal.rawValue, reason: refusal.reason)
  }

  /// Refuses a text that names no path: a line that is not understood, or a title.
  package init(text: [UInt8], below place: [UInt8] = [], code: String, reason: String) {
    path = nil
    name = place + Self.shown(text)
    self.code = code
    self.reason = reason
  }

  /// Encodes the blanks of a URL, so that its query can be hidden up to its end.
  private static func shown(_ text: [UInt8]) -> [UInt8] {
    let begin = text.prefix(mostShown)
    let scheme = text.prefix { $0 != UInt8(ascii: ":") && $0 > 0x20 }
    guard !scheme.isEmpty, text[scheme.endIndex...].starts(with: "://".utf8) else { return Array(begin) }
    return begin.flatMap { $0 == UInt8(ascii: " ") ? Array("%20".utf8) : [$0] }
  }
}
