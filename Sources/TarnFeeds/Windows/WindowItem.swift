import TarnCore

/// What an item of a window says, collected up to its end.
struct WindowItem {
  /// The most files of one item; more are refused.
  static let maximumFiles = 1000

  /// A file as the item names it.
  struct File {
    var url: URLReference
    /// The URL as it is written, for people.
    var shown: [UInt8]
    var length: UInt64?
    var mediaType: [UInt8]?
    var digest: Digest?
    /// Other places of the same bytes.
    var alternates: [URLReference] = []

    /// Adds what another element says about the same file.
    mutating func complete(by other: File) {
      length = length ?? other.length
      mediaType = mediaType ?? other.mediaType
      digest = digest ?? other.digest
      for url in other.alternates + [other.url] where url != self.url && !alternates.contains(url) {
        alternates.append(url)
      }
    }
  }

  /// Renditions of one thing (Media RSS). The default one, or else the first, stands for all of them.
  struct Group {
    var files: [File] = []
    var defaultIndex: Int?
    var digest: Digest?

    var main: File? { defaultIndex.map { files[$0] } ?? files.first }
  }

  /// A rendition with its sources (podcast:alternateEnclosure).
  struct Rendition {
    var file: File?
    var sources: [URLReference] = []
    var length: UInt64?
    var mediaType: [UInt8]?
    var digest: Digest?
    var isDefault = false
  }

  let position: Int
  var guid: [UInt8]?
  /// The titles that were found, by rank; the lowest rank wins: title, itunes:title, dc:title, media:title.
  var titles: [Int: [UInt8]] = [:]
  /// The times that were found, by rank.
  var dates: [Int: Timestamp] = [:]
  /// The numbers that were found, by rank.
  var seasons: [Int: [UInt8]] = [:]
  var episodes: [Int: [UInt8]] = [:]
  /// The enclosures in the order of the document.
  var files: [File] = []
  var groups: [Group] = []
  var renditions: [Rendition] = []
  /// The media:hash of the item itself.
  var digest: Digest?
  /// The number of elements that should name a file and name none.
  var nameless = 0
  private var count = 0

  init(position: Int) {
    self.position = position
  }

  /// Counts one more element that names a file; false when there are too many to keep.
  mutating func admits() -> Bool {
    count += 1
    return count <= Self.maximumFiles
  }

  /// Returns the item's files, or why they are refused; empty for an item without any.
  func items(in context: FeedContext) -> [FeedItem] {
    var items: [FeedItem] = []
    for (ordinal, file) in merged(context).enumerated() { items.append(item(file, ordinal, context)) }
    if nameless > 0 {
      let reason = "an enclosure of the item '\(Printable.escape(label))' has no URL"
      items.append(Refusal.of(text: label, code: "enclosure-without-url", reason: reason))
    }
    if count > Self.maximumFiles {
      let reason = "the item names more than \(Self.maximumFiles) files; the others are not taken"
      items.append(Refusal.of(text: label, code: "item-too-many-files", reason: reason))
    }
    return items
  }

  private var title: [UInt8] { titles.min { $0.key < $1.key }?.value ?? [] }

  /// The name by which people know the item.
  private var label: [UInt8] { title.isEmpty ? guid ?? Array("item \(position + 1)".utf8) : title }

  private func item(_ file: File, _ ordinal: Int, _ context: FeedContext) -> FeedItem {
    let shown = file.shown.isEmpty ? label : file.shown
    guard file.url.isRemote || file.url.isLocal && context.url.isLocal else {
      let scheme = file.url.scheme.map { ", not by '\(Printable.escape($0)):'" } ?? ""
      return Refusal.of(
        text: shown, code: "scheme-not-supported",
        reason: "Tarn fetches the files of a feed over \(URLScheme.remote) only\(scheme)")
    }
    guard context.isUsable(file.url) else { return context.withoutSource(text: shown, urls: [file.url]) }
    var sources = [Source(url: file.url.text)]
    for url in file.alternates where context.isUsable(url) {
      sources.append(Source(url: url.text, priority: 2))
    }
    return .enclosure(
      Enclosure(
        guid: guid, title: title, date: dates.min { $0.key < $1.key }?.value, sources: sources,
        length: file.length, mediaType: file.mediaType, digest: file.digest,
        season: seasons.min { $0.key < $1.key }?.value, episode: episodes.min { $0.key < $1.key }?.value,
        position: position, ordinal: ordinal))
  }

  /// Returns each file once: enclosures, then what only Media RSS names, then renditions of an item without either.
  private func merged(_ context: FeedContext) -> [File] {
    var result: [File] = []
    for file in files {
      if let index = result.firstIndex(where: { $0.url == file.url }) {
        result[index].complete(by: file)
      } else {
        result.append(file)
      }
    }
    let contents = groups.reduce(0) { $0 + $1.files.count }
    for var group in groups {
      if group.files.count == 1, let digest = group.digest ?? (contents == 1 ? digest : nil) {
        group.files[0].digest = group.files[0].digest ?? digest
      }
      var isThere = false
      for file in group.files {
        guard let index = result.firstIndex(where: { $0.url == file.url }) else { continue }
        result[index].complete(by: file)
        isThere = true
      }
      if !isThere, let main = group.main { result.append(main) }
    }
    return withRenditions(result, context)
  }

  private func withRenditions(_ files: [File], _ context: FeedContext) -> [File] {
    var result = files
    for rendition in renditions {
      let usable = rendition.sources.filter { context.isUsable($0) }
      guard var file = rendition.file, let first = usable.first else { continue }
      file.url = first
      file.alternates = Array(usable.dropFirst())
      let same = result.firstIndex { usable.contains($0.url) }
      let index =
        same ?? (rendition.isDefault && result.first.map { Self.mayBeSame($0, file) } == true ? 0 : nil)
      if let index { result[index].complete(by: file) }
    }
    guard result.isEmpty else { return result }
    let main = renditions.first { $0.isDefault && $0.file != nil } ?? renditions.first { $0.file != nil }
    guard let main, var file = main.file else { return [] }
    let usable = main.sources.filter { context.isUsable($0) }
    if let first = usable.first {
      file.url = first
      file.alternates = Array(usable.dropFirst())
    }
    return [file]
  }

  /// Returns whether a rendition may be the enclosure that it claims to be: length and type must not differ.
  private static func mayBeSame(_ file: File, _ other: File) -> Bool {
    (file.length == nil || other.length == nil || file.length == other.length)
      && (file.mediaType == nil || other.mediaType == nil || file.mediaType == other.mediaType)
  }
}

/// Reads values about files as feeds write them.
enum WindowValue {
  /// Reads a length in bytes; `nil` for 0 and for anything but a whole number up to 2^63-1.
  static func length(_ text: [UInt8]?) -> UInt64? {
    guard let text = text.map({ trimmed($0) }), !text.isEmpty, text.allSatisfy(\.isASCIIDigit),
      let length = UInt64(String(decoding: text, as: UTF8.self)), (1...UInt64(Int64.max)).contains(length)
    else { return nil }
    return length
  }

  /// Reads the number of a season or an episode: a line with a digit in it, short enough to be a number.
  static func number(_ text: [UInt8]) -> [UInt8]? {
    let line = PlainText.line(text)
    return (1...32).contains(line.count) && line.contains(where: \.isASCIIDigit) ? line : nil
  }

  /// Returns `audio/mpeg` for ` Audio/MPEG; charset=x`; `nil` for a text that is not a media type.
  static func mediaType(_ text: [UInt8]?) -> [UInt8]? {
    guard let text else { return nil }
    let essence = lowercased(trimmed(Array(text.prefix { $0 != UInt8(ascii: ";") })))
    let halves = essence.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    let isToken = halves.allSatisfy { half in
      !half.isEmpty
        && half.allSatisfy {
          $0.isASCIILetter || $0.isASCIIDigit || Array("!#$&-^_.+".utf8).contains($0)
        }
    }
    return halves.count == 2 && isToken && essence.count <= 255 ? essence : nil
  }

  /// Returns a reference as browsers read it: without blanks at its ends, and without line breaks and tabs inside.
  static func reference(_ text: [UInt8]?) -> [UInt8]? {
    guard let text else { return nil }
    let kept = trimmed(text).filter { $0 != 0x09 && $0 != 0x0A && $0 != 0x0D }
    return kept.isEmpty ? nil : kept
  }

  /// Reads a media:hash: hexadecimal digits, MD5 when no algorithm is given.
  static func digest(_ text: [UInt8], algorithm: [UInt8]?) -> Digest? {
    let name = algorithm.map { String(decoding: trimmed($0), as: UTF8.self) } ?? "md5"
    return DigestAlgorithm(name: name).flatMap { Digest($0, hex: trimmed(text)) }
  }

  /// Reads Subresource Integrity (W3C SRI 3.5): the strongest of values such as `sha384-BASE64?options`.
  static func integrity(_ text: [UInt8]) -> Digest? {
    let found = text.split(whereSeparator: isBlank).compactMap { word -> Digest? in
      let value = word.prefix { $0 != UInt8(ascii: "?") }
      guard let dash = value.firstIndex(of: UInt8(ascii: "-")) else { return nil }
      let algorithm: DigestAlgorithm
      switch String(decoding: lowercased(value[..<dash]), as: UTF8.self) {
      case "sha256": algorithm = .sha256
      case "sha384": algorithm = .sha384
      case "sha512": algorithm = .sha512
      default: return nil
      }
      return Base64.decode(Array(value[(dash + 1)...])).flatMap { Digest(algorithm, bytes: $0) }
    }
    return found.max { $0.algorithm < $1.algorithm }
  }
}
