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
    /// By its name it is no text: an archive, an image of a disk, media.
    case binaryName
    case nothing
  }

  private let declared: Declared
  private let hint: ContentHint

  /// - Returns: nil where nothing has to be doubted: a digest or an exact size decides, or nothing is declared.
  package init?(_ entry: Entry) {
    guard entry.digest == nil, entry.size == nil else { return nil }
    var hint = entry.hint
    let ending = Self.ending(entry)
    if Self.madeEndings.contains(ending) { hint.sizes = nil }
    self.hint = hint
    declared = Self.declared(entry, ending)
    if case .nothing = declared, hint.isEmpty { return nil }
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
    case .binaryName:
      guard isMarkup, Self.isHTML(contentType) else { return nil }
      return "a web page came (\(Self.shown(contentType))), which the file's name does not fit"
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
      return size == 0 && hint.length != nil ? nothingCame : nil
    }
    if size == 0 { return nothingCame }
    guard let length = hint.length, size < length / 2, Self.isText(contentType) else { return nil }
    return "\(Self.came(contentType)) of \(Units.count(size, "byte")) came where the feed says \(type) of "
      + Units.grouped(length)
  }

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
    if let type = entry.hint.mediaType {
      let text = Printable.escape(type)
      let isMedia = ["audio/", "video/", "image/"].contains { text.hasPrefix($0) }
      // Playlists and SVG are text.
      let isText = text.hasSuffix("mpegurl") || text.hasSuffix("xml") || text.hasSuffix("scpls")
      return isMedia && !isText ? .media(text) : .nothing
    }
    return binaryEndings.contains(ending) ? .binaryName : .nothing
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
    isHTML(contentType) ? "a web page (\(shown(contentType)))" : "a text (\(shown(contentType)))"
  }

  private static func shown(_ contentType: String?) -> String {
    let type = mediaType(contentType)
    return type.isEmpty ? "of no declared type" : Printable.escape(type)
  }
}
