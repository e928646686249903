/// The values of a template's fields for one file, each safe as part of a name.
package struct FileNaming: Sendable {
  private let values: [NameTemplate.Field: [UInt8]]
  private let rule: PathRule

  /// - Parameters:
  ///   - identity: eight hexadecimal digits that identify the item.
  ///   - feed: the title of the feed.
  ///   - rule: the path rule; with `portable`, what other systems refuse is replaced, too.
  package init(_ enclosure: Enclosure, identity: [UInt8], feed: [UInt8] = [], rule: PathRule) {
    self.rule = rule
    let last = Self.lastSegment(enclosure.sources.first?.url ?? "")
    let ext = Self.ext(last, mediaType: enclosure.mediaType)
    let dot = last.lastIndex(of: UInt8(ascii: "."))
    let name = Self.safe(dot.map { Array(last[..<$0]) } ?? last, rule)
    let title = Self.safe(enclosure.title, rule)
    var values: [NameTemplate.Field: [UInt8]] = [
      .date: enclosure.date.map { Array($0.rfc3339.utf8.prefix(10)) } ?? [],
      .title: title.isEmpty ? (name.isEmpty ? identity : name) : title,
      .ext: ext, .id8: identity, .name: name.isEmpty ? identity : name,
      .season: Self.safe(enclosure.season ?? [], rule), .episode: Self.safe(enclosure.episode ?? [], rule),
      .feed: Self.safe(feed, rule),
    ]
    let guid = Self.safe(enclosure.guid ?? [], rule)
    values[.guid] = guid.isEmpty ? identity : guid
    self.values = values
  }

  package subscript(field: NameTemplate.Field) -> [UInt8] { values[field] ?? [] }

  /// Returns a segment, also of the template's own text, in the form that every system accepts, where the rule asks for it. The
  /// name of a Windows device gets an underscore, and so does what begins like an option.
  func portable(_ segment: [UInt8]) -> [UInt8] {
    guard rule.portable else { return segment }
    var named = Self.safe(segment, rule)
    if let first = named.first, first == UInt8(ascii: "~") || first == UInt8(ascii: "-") {
      named[0] = UInt8(ascii: "_")
    }
    do throws(PathRefusal) {
      try rule.check(named)
    } catch {
      if error == .notPortable { named.insert(UInt8(ascii: "_"), at: 0) }
    }
    return named
  }

  /// Returns the last segment of a URL's path, percent-decoded once; empty when there is none.
  static func lastSegment(_ url: String) -> [UInt8] {
    let afterScheme = url.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      .dropFirst(3)
    guard let last = afterScheme.last else { return [] }
    return Percent.decode(last.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
  }

  /// Returns the extension of the URL unless it names a program on the server, else that of the media type, else `bin`.
  private static func ext(_ name: [UInt8], mediaType: [UInt8]?) -> [UInt8] {
    let typed = mediaType.flatMap { extensions[String(decoding: $0, as: UTF8.self)] }
    guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > name.startIndex else {
      return Array((typed ?? "bin").utf8)
    }
    let text = String(decoding: name[(dot + 1)...], as: UTF8.self).lowercased()
    let isPlain =
      (1...7).contains(text.utf8.count)
      && text.utf8.allSatisfy { $0.isASCIIDigit || $0.isASCIILetter }
    guard isPlain, !programs.contains(text), !text.utf8.allSatisfy(\.isASCIIDigit) else {
      return Array((typed ?? "bin").utf8)
    }
    return Array(text.utf8)
  }

  private static let programs: Set<String> = ["php", "asp", "aspx", "cgi", "jsp", "ashx", "do", "pl", "py"]

  private static let extensions = [
    "audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/mp4": "m4a", "audio/x-m4a": "m4a", "audio/m4a": "m4a",
    "audio/aac": "aac", "audio/ogg": "ogg", "audio/opus": "opus", "audio/flac": "flac",
    "audio/x-flac": "flac", "audio/wav": "wav", "audio/x-wav": "wav", "audio/webm": "weba",
    "audio/x-mpegurl": "m3u", "application/ogg": "ogg", "video/mp4": "mp4", "video/x-m4v": "m4v",
    "video/quicktime": "mov", "video/webm": "webm", "video/mpeg": "mpg", "video/ogg": "ogv",
    "video/x-matroska": "mkv", "image/jpeg": "jpg", "image/png": "png", "image/gif": "gif",
    "image/webp": "webp", "image/svg+xml": "svg", "application/pdf": "pdf", "application/epub+zip": "epub",
    "application/zip": "zip", "application/gzip": "gz", "application/x-tar": "tar",
    "application/x-bittorrent": "torrent", "application/json": "json", "application/xml": "xml",
    "text/html": "html", "text/plain": "txt", "text/csv": "csv", "text/vtt": "vtt",
    "application/srt": "srt", "application/x-subrip": "srt", "application/x-netcdf": "nc",
  ]

  private static let unportable = Set("\\:*?\"<>|".unicodeScalars)

  /// Replaces slashes by hyphens, and removes control and bidi characters and what is not UTF-8.
  private static func safe(_ bytes: [UInt8], _ rule: PathRule) -> [UInt8] {
    var text: [UInt8] = []
    for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
      switch scalar.value {
      case 0x2F, 0x2044, 0x2215: text.append(UInt8(ascii: "-"))
      case 0..<0x20, 0x7F, 0x85, 0xA0, 0x2028, 0x2029: text.append(0x20)
      case 0x80..<0xA0, 0x200B, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069, 0xFEFF, 0xFFFD: continue
      case _ where rule.portable && unportable.contains(scalar): text.append(UInt8(ascii: "-"))
      default: text += Array(String(scalar).utf8)
      }
    }
    return tidy(text)
  }

  /// Merges runs of blanks, and removes blanks and dots at both ends.
  static func tidy(_ bytes: some Collection<UInt8>) -> [UInt8] {
    var text: [UInt8] = []
    for byte in bytes where byte != 0x20 || (text.last ?? 0x20) != 0x20 { text.append(byte) }
    let dot = UInt8(ascii: ".")
    var middle = text.drop { $0 == 0x20 || $0 == dot }
    while let last = middle.last, last == 0x20 || last == dot { middle.removeLast() }
    return Array(middle)
  }

  /// Returns at most so many bytes, cut between characters.
  static func cut(_ bytes: [UInt8], to count: Int) -> [UInt8] {
    guard bytes.count > count else { return bytes }
    var end = max(0, count)
    while end > 0, bytes[end] & 0xC0 == 0x80 { end -= 1 }
    return tidy(bytes[..<end])
  }
}
