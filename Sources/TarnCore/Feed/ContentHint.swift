/// What a feed says of a file's contents without vouching for it: it may be a little off. It never tells one version
/// from another; it tells the file from a login page or an error that came in its place.
package struct ContentHint: Sendable, Equatable {
  /// `audio/mpeg`: lower case, without parameters.
  package var mediaType: [UInt8]?
  /// Bytes, above 0; often wrong.
  package var length: UInt64?
  /// The sizes that a rounded one, such as `2.9M`, can stand for.
  package var sizes: ClosedRange<UInt64>?

  package init(mediaType: [UInt8]? = nil, length: UInt64? = nil, sizes: ClosedRange<UInt64>? = nil) {
    self.mediaType = mediaType
    self.length = length
    self.sizes = sizes
  }

  package var isEmpty: Bool { mediaType == nil && length == nil && sizes == nil }
}

/// Doubts an answer by what the feed declares, where neither a digest nor an exact size decides. Pure.
package struct ContentDoubt: Sendable {
  /// So many of the first bytes are looked at.
  package static let opening = 64

  private enum Declared {
    /// Audio, video or an image, by the feed's words.
    case media(String)
    /// By its name, or by the feed's words, it is no text: an archive, an image of a disk, a document.
    case binary
    case nothing
  }

  private let declared: Declared
  private let hint: ContentHint
  /// Of a window: no later pass asks again by itself.
  private let isEnclosure: Bool

  /// - Returns: nil where nothing has to be doubted: a digest or an exact size decides, or nothing is declared.
  package init?(_ entry: Entry) {
    guard entry.digest == nil, entry.size == nil else { return nil }
    var hint = entry.hint
    let ending = Self.ending(entry)
    if Self.madeEndings.contains(ending) { hint.sizes = nil }
    self.hint = hint
    declared = Self.declared(entry, ending)
    isEnclosure = entry.listing.elementsEqual(Self.enclosure)
    if case .nothing = declared, hint.isEmpty, !isEnclosure { return nil }
  }

  /// Why these are not the file's first bytes; nil when they may be.
  ///
  /// - Parameters:
  ///   - opening: the first bytes, at most `opening` of them are looked at.
  ///   - contentType: as the server sent it.
  package func doubt(opening: some Collection<UInt8>, contentType: String?) -> FolderFailure? {
    doubt(ofOpening: opening, contentType).map {
      FolderFailure(
        .contentMismatch, "\($0): a login page, or an error of the server? The next pass asks again")
    }
  }

  private func doubt(ofOpening opening: some Collection<UInt8>, _ contentType: String?) -> String? {
    let text = opening.prefix(Self.opening).drop { $0 <= 0x20 || [0xEF, 0xBB, 0xBF].contains($0) }
    let isMarkup = text.first == UInt8(ascii: "<") && text.dropFirst().first.map(Self.beginsTag) == true
    switch declared {
    case .media(let type):
      guard isMarkup || Self.beginsJSON(text) else { return nil }
      return "\(Self.came(contentType)) came where the feed says \(type)"
    case .binary:
      guard isMarkup, Self.isHTML(contentType) else { return nil }
      return
        "a web page came (\(Self.shown(contentType))), which the file's name or its declared type does not fit"
    case .nothing: return nil
    }
  }

  /// Why a body of so many bytes is not the file; nil when it may be.
  package func doubt(size: UInt64, contentType: String?) -> FolderFailure? {
    if let sizes = hint.sizes, !sizes.contains(size) {
      return FolderFailure(
        .sizeMismatch,
        "it has \(Units.count(size, "byte")), and the listing's size stands for "
          + "\(Units.grouped(sizes.lowerBound)) to \(Units.grouped(sizes.upperBound))")
    }
    return doubt(ofDeclared: size, contentType).map { FolderFailure(.contentMismatch, $0) }
  }

  private func doubt(ofDeclared size: UInt64, _ contentType: String?) -> String? {
    guard case .media(let type) = declared else {
      return size == 0 && (hint.length != nil || isEnclosure) ? nothingCame : nil
    }
    if size == 0 { return nothingCame }
    let isTiny = size < Self.leastMedia
    let isText = Self.isText(contentType)
    let isShort = hint.length.map { size < $0 / 2 } ?? false
    guard isText ? isTiny || isShort : isTiny && isShort && !Self.isMedia(contentType) else { return nil }
    return "\(Self.came(contentType)) of \(Units.count(size, "byte")) came where the feed says \(type)"
      + (hint.length.map { " of \(Units.grouped($0))" } ?? "")
  }

  /// Bytes: no recording is smaller, and few pictures are.
  private static let leastMedia: UInt64 = 1024
  /// What `WindowCatalog` writes into the listing.
  package static let enclosure = Array("enclosure".utf8)

  private var nothingCame: String {
    let length = hint.length.map { " of \(Units.count($0, "byte"))" } ?? ""
    return "nothing came (0 bytes) where the feed has a file\(length)"
  }

  /// Of pages that a server makes as it is asked: an index shows the size of the program.
  private static let madeEndings: Set<String> = [
    "php", "phtml", "shtml", "shtm", "html", "htm", "xhtml", "cgi", "pl", "py", "asp", "aspx", "jsp",
  ]

  /// In lower case, without its dot; empty when there is none.
  private static func ending(_ entry: Entry) -> String {
    let name = entry.path.bytes.split(separator: UInt8(ascii: "/")).last ?? []
    guard let dot = name.lastIndex(of: UInt8(ascii: ".")) else { return "" }
    return String(decoding: name[(dot + 1)...], as: UTF8.self).lowercased()
  }

  private static func declared(_ entry: Entry, _ ending: String) -> Declared {
    let text = entry.hint.mediaType.map { Printable.escape($0) } ?? ""
    if !text.isEmpty, !saysNothing.contains(text) {
      if isOfText(text) || madeEndings.contains(ending) { return .nothing }
      return isMedia(text) ? .media(text) : .binary
    }
    return binaryEndings.contains(ending) ? .binary : .nothing
  }

  /// What stands for any bytes.
  private static let saysNothing: Set<String> = [
    "application/octet-stream", "binary/octet-stream", "application/force-download", "application/x-download",
    "application/download", "application/unknown",
  ]

  /// Types whose files are markup or another text; playlists, manifests of streams and SVG among them.
  private static func isOfText(_ type: String) -> Bool {
    let ends = ["xml", "json", "mpegurl", "scpls", "svg", ".mpd", "ms-asf", "ms-asx", "javascript", "yaml"]
    return type.hasPrefix("text/") || ends.contains { type.hasSuffix($0) }
  }

  private static func isMedia(_ contentType: String?) -> Bool {
    ["audio/", "video/", "image/"].contains { mediaType(contentType).hasPrefix($0) }
  }

  private static let binaryEndings: Set<String> = [
    "mp3", "m4a", "m4b", "aac", "ogg", "oga", "ogv", "opus", "flac", "wav", "mp4", "m4v", "mov", "mkv",
    "webm", "avi",
    "jpg", "jpeg", "png", "gif", "webp", "avif", "heic", "ico", "bmp", "tif", "tiff", "pdf", "epub",
    "zip", "gz", "tgz", "bz2", "xz", "txz", "zst", "lz4", "lzma", "7z", "rar", "tar", "iso", "img", "qcow2",
    "vmdk",
    "deb", "rpm", "apk", "exe", "msi", "dmg", "jar", "whl", "bin", "parquet",
  ]

  /// What may stand behind the `<` of a document.
  private static func beginsTag(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "!") || byte == UInt8(ascii: "?") || (0x61...0x7A).contains(byte | 0x20)
  }

  /// An object or a list of them.
  private static func beginsJSON(_ text: some Collection<UInt8>) -> Bool {
    let solid = text.filter { $0 > 0x20 }.prefix(2)
    return solid.elementsEqual("{\"".utf8) || solid.elementsEqual("[{".utf8) || solid.elementsEqual("{}".utf8)
  }

  private static func mediaType(_ contentType: String?) -> String {
    let type = (contentType ?? "").prefix { $0 != ";" }.lowercased()
    return String(type.filter { $0 != " " && $0 != "\t" })
  }

  private static func isHTML(_ contentType: String?) -> Bool {
    ["text/html", "application/xhtml+xml"].contains(mediaType(contentType))
  }

  private static func isText(_ contentType: String?) -> Bool {
    let type = mediaType(contentType)
    return type.hasPrefix("text/") || type.hasSuffix("json") || type.hasSuffix("xml")
  }

  private static func came(_ contentType: String?) -> String {
    isHTML(contentType)
      ? "a web page (\(shown(contentType)))"
      : "\(isText(contentType) ? "a text" : "something") (\(shown(contentType)))"
  }

  private static func shown(_ contentType: String?) -> String {
    let type = mediaType(contentType)
    return type.isEmpty ? "of no declared type" : Printable.escape(type)
  }
}
