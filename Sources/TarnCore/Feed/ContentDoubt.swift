/// What a feed says of a file's contents without vouching for it; it may be a little off. It never tells two versions apart, only
/// the file from a login page or an error that came in its place.
package struct ContentHint: Sendable, Equatable {
  /// The media type, such as `audio/mpeg`: in lower case, without parameters.
  package var mediaType: [UInt8]?
  /// The length in bytes, above 0; often wrong.
  package var length: UInt64?
  /// The sizes that a rounded size, such as `2.9M`, can stand for.
  package var sizes: ClosedRange<UInt64>?

  package init(mediaType: [UInt8]? = nil, length: UInt64? = nil, sizes: ClosedRange<UInt64>? = nil) {
    self.mediaType = mediaType
    self.length = length
    self.sizes = sizes
  }

  package var isEmpty: Bool { mediaType == nil && length == nil && sizes == nil }
}

/// Judges an answer by what the feed declares, where neither a digest nor an exact size decides. Pure.
package struct ContentDoubt: Sendable {
  /// The number of first bytes that are looked at.
  package static let opening = 1024

  /// The kind of file, by the feed's words and by the file's name.
  private enum Declared {
    /// Audio, video or an image.
    case media(String)
    /// An archive, a disk image, a document or a recording: never markup. The feed's words say so, or the name alone.
    case binary
    /// No web page, but perhaps a text: a compressed file, which some servers unpack on the way, or a type that is not known.
    case other
    /// A digest: letters and digits, never markup.
    case digest
    /// A signature: never markup.
    case signature
    /// Markup, another text, or what a program creates on request.
    case text
    case nothing
  }

  private let declared: Declared
  private let hint: ContentHint
  /// True when a web page may be what is wanted.
  private let mayBePage: Bool
  /// True for an item of a window: no later pass asks again by itself.
  private let isEnclosure: Bool
  /// True for a compressed file, which is a text only where a server unpacks it.
  private let isPacked: Bool
  /// The parts of the file's name behind its dots, the last one first.
  private let endings: [String]
  /// The ending of the file's name.
  private let ending: String
  /// The same of the name that the file has at its server.
  private let sent: [String]
  /// The size of the file that is replaced; `nil` where there is none.
  private let earlier: UInt64?

  /// - Parameter earlier: the size of the file that it replaces.
  /// - Returns: `nil` where there is nothing to doubt: a digest or an exact size decides, or nothing is declared.
  package init?(_ entry: Entry, replacing earlier: UInt64? = nil) {
    guard entry.digest == nil, entry.size == nil else { return nil }
    var hint = entry.hint
    endings = Self.endings(entry)
    ending = endings.first ?? ""
    sent = FileSignature.sentEndings(entry)
    self.earlier = earlier
    declared = Self.declared(entry, ending)
    if Self.programEndings.contains(ending) { hint.sizes = nil }
    // Feeds of torrents give the size of what the torrent leads to.
    if ending == "torrent"
      || hint.mediaType.map({ $0.elementsEqual("application/x-bittorrent".utf8) }) == true
    {
      hint.length = nil
    }
    self.hint = hint
    mayBePage = Self.mayBePage(entry, ending, hint)
    isPacked =
      Self.packedEndings.contains(ending) || hint.mediaType.map(Self.isPackedType) == true
    isEnclosure = entry.listing.elementsEqual(Self.enclosure)
    switch declared {
    case .text, .nothing:
      let isPlain = hint.isEmpty && !isEnclosure && mayBePage && !FileSignature.isPacked([endings, sent])
      if isPlain, earlier ?? 0 == 0 { return nil }
    default: break
    }
  }

  /// Returns whether it is a page that is taken only because its ending is not known. Nothing in a window tells another version, so the
  /// next pass asks again.
  ///
  /// - Parameter contentType: the header as the server sent it.
  package static func isUnsure(_ entry: Entry, _ contentType: String?) -> Bool {
    guard isHTML(contentType), entry.listing.elementsEqual(enclosure), let doubt = ContentDoubt(entry) else {
      return false
    }
    return doubt.isOfUnknownEnding
  }

  /// Returns why these are not the file's first bytes; `nil` when they may be.
  ///
  /// - Parameters:
  ///   - opening: the first bytes, of which at most `opening` are looked at; more may follow.
  ///   - contentType: the header as the server sent it.
  ///   - coding: the content coding that the server names. The bytes come as they are.
  package func doubt(
    opening: some Collection<UInt8>, contentType: String?, coding: String? = nil
  ) -> FolderFailure? {
    let came = Opening(opening)
    if opening.count >= Self.opening, let failure = doubt(beginning: opening, contentType, coding, size: nil)
    {
      return failure
    }
    guard !isWantedDrawing(came, contentType), !hasMagic(came) else { return nil }
    let why: String?
    switch declared {
    case .media(let type) where came.isMarkup || came.isJSON || came.isPointer:
      why = "\(Self.came(contentType, as: came)) came where the feed says \(type)"
    case .other where isAgreed(contentType):
      // Feed and server agree, as for an Excel table that is a web page.
      why = nil
    // A length of the feed may vouch at the end.
    case _
    where isForeignPage(came, contentType) && (hint.length == nil || !Self.plainEndings.contains(ending)),
      .binary where came.isMarkup || came.isJSON || came.isPointer,
      .digest where came.isMarkup || came.isJSON || Self.isHTML(contentType) && !came.hasDigest,
      .signature where came.isMarkup,
      .other
    where came.isPage || came.isErrorDocument || came.isPointer || came.isMarkup && Self.isHTML(contentType):
      why = Self.mismatch(contentType, as: came)
    // A shorter text is judged at its end.
    case _ where opening.count >= Self.opening && isUnvouchedText(came, contentType, size: nil):
      why = textCame(contentType)
    default: why = nil
    }
    return why.map {
      FolderFailure(
        .contentMismatch, "\($0): a login page, or an error of the server? The next pass asks again")
    }
  }

  /// Returns whether a web page came for what is none by its name. XHTML is XML, too.
  private func isForeignPage(_ came: Opening, _ contentType: String?) -> Bool {
    guard !mayBePage, came.isPage, Self.isHTML(contentType) else { return false }
    return ending != "xml" || Self.mediaType(contentType) == "text/html"
  }

  /// Returns whether a page or an error came, by its first bytes, where neither the name nor the type stands for such a text.
  private func isForeignAnswer(_ came: Opening, isTiny: Bool) -> Bool {
    switch declared {
    case .nothing, .other: break
    case .text where Self.lineEndings.contains(ending): break
    case .text, .digest, .signature, .media, .binary: return false
    }
    let type = hint.mediaType.map { String(decoding: $0, as: UTF8.self) } ?? ""
    guard !Self.madeEndings.contains(ending),
      !Self.isOfText(type) || ["text/plain", "text/csv"].contains(type)
    else {
      return false
    }
    return came.isPage || came.isErrorDocument || came.isJSON && isTiny
  }

  /// Returns whether feed and server name the same type, and it says something.
  private func isAgreed(_ contentType: String?) -> Bool {
    let type = Self.mediaType(contentType)
    return !Self.saysNothing.contains(type) && hint.mediaType.map { type.utf8.elementsEqual($0) } == true
  }

  /// Returns why the first bytes are not those of such a file: the coding is another one, or the name tells how it begins.
  ///
  /// - Parameter size: the size of the body; `nil` while more may follow.
  private func doubt(
    beginning opening: some Collection<UInt8>, _ contentType: String?, _ coding: String?, size: UInt64?
  ) -> FolderFailure? {
    let bytes = Array(opening.prefix(Self.opening))
    guard !bytes.isEmpty else { return nil }
    if let coding {
      let isPage = !mayBePage && Self.isHTML(contentType)
      guard !isPage, isOwn(coding, bytes, size: size) else {
        return FolderFailure(
          .contentMismatch,
          "\(Self.came(contentType)) in the coding \(Printable.escape(coding)) came, which is not the file's own"
        )
      }
    }
    // An exact length vouches, and a rounded size does. A length may be told only at the end.
    guard hint.sizes == nil, size.map({ $0 != hint.length }) ?? (hint.length == nil),
      let isFitting = FileSignature.fits(bytes, endings[...])
    else { return nil }
    let isPackedPage = Self.isHTML(contentType) && FileSignature.isForeignGzip(bytes, ending)
    guard !isFitting || isPackedPage else { return nil }
    let came = Opening(bytes)
    // The last part of a split archive has the plain name, and begins with any bytes, whatever the server calls it.
    let isUnknown = !came.isText && came.kind == nil && size.map { $0 >= Self.leastMedia } ?? true
    guard isPackedPage || !isUnknown || Self.isHTML(contentType) else { return nil }
    let what =
      came.kind.map { "\($0.rawValue) (\(Self.shown(contentType)))" }
      ?? Self.came(contentType, isText: came.isText)
    return FolderFailure(
      .contentMismatch, "\(what) came, and no .\(Printable.escape(ending)) file begins so")
  }

  /// Returns whether a body in this coding is the file as it is. Servers that label `a.gz` so label each name with such a part.
  ///
  /// - Parameter size: the size of the body; `nil` while more may follow.
  private func isOwn(_ coding: String, _ bytes: [UInt8], size: UInt64?) -> Bool {
    // No part of a name explains the coding: the body was compressed on the way.
    guard FileSignature.fits(coding: coding, bytes, [endings, sent]) else { return false }
    // `bin` may be Tarn's own word.
    let ending = isEnclosure && ending == "bin" ? sent.first ?? ending : ending
    // `a.tar.gz` is compressed.
    if FileSignature.isPacked([[ending]]) { return true }
    // The author of the feed counted the bytes as they are. That is told at the end.
    if let length = hint.length, size ?? length == length { return true }
    // `a.tar.gz.sha256` and `a.gz.html` are texts.
    let isOfText =
      Self.digestEndings.contains(ending) || Self.textEndings.contains(ending)
      || Self.madeEndings.contains(ending) || Self.plainEndings.contains(ending) && ending != "torrent"
    if isOfText { return Opening(bytes).isText }
    // `a.tar.gz.sig` and `a.gz.pdf` are not compressed.
    let isNeverPacked =
      Self.binaryEndings.contains(ending) || Self.plainEndings.contains(ending)
      || Self.signatureEndings.contains(ending) || Self.besideEndings.contains(ending)
    // `a.tar.gz.001` and `initrd.gz.img` may be.
    return !isNeverPacked || !FileSignature.isPacked(bytes: bytes)
  }

  /// Returns why a body of this size is not the file; `nil` when it may be.
  ///
  /// - Parameters:
  ///   - opening: the first bytes of the body; empty where they cannot be read.
  ///   - isStored: true where the answer has a strong ETag or Last-Modified, which programs seldom make.
  ///   - before: returns the first bytes of the file that it replaces; `nil` where they are not known. Called only where a text, or
  ///     nothing, came that is not stored.
  package func doubt(
    size: UInt64, opening: some Collection<UInt8>, contentType: String?, coding: String? = nil,
    isStored: Bool = false, before: () -> [UInt8]? = { nil }
  ) -> FolderFailure? {
    if let sizes = hint.sizes, !sizes.contains(size) {
      return FolderFailure(
        .sizeMismatch,
        "it has \(Units.count(size, "byte")), and the listing's size stands for "
          + "\(Units.grouped(sizes.lowerBound)) to \(Units.grouped(sizes.upperBound))")
    }
    return doubt(beginning: opening, contentType, coding, size: size)
      ?? (doubt(ofDeclared: size, opening, contentType)
      ?? (isStored ? nil : doubt(replacing: size, opening, contentType, before)))
      .map { FolderFailure(.contentMismatch, $0) }
  }

  private func doubt(
    ofDeclared size: UInt64, _ opening: some Collection<UInt8>, _ contentType: String?
  ) -> String? {
    guard size > 0 else { return mayBeEmpty ? nil : nothingCame }
    // The author of the feed counted these bytes.
    guard size != hint.length else { return nil }
    let isTiny = size < Self.leastMedia
    let isShort = hint.length.map { size < $0 / 2 } ?? false
    let came = Opening(opening)
    if let kind = came.kind, !fits(kind) {
      return
        "\(kind.rawValue) (\(Self.shown(contentType))) of \(Units.count(size, "byte")) came, which the file's name or "
        + "its declared type does not fit"
    }
    guard !isWantedDrawing(came, contentType) else { return nil }
    if isForeignPage(came, contentType) { return Self.mismatch(contentType, as: came) }
    if isShort, isForeignAnswer(came, isTiny: isTiny) { return tooShort(size, came, contentType) }
    // This holds whatever the body begins with.
    if isTiny, isShort, isMediaOrBinary, !isPicture, !came.isMIDI { return tooShort(size) }
    if isTiny, !opening.isEmpty, let few = doubt(ofFew: size, opening, contentType) { return few }
    // The first bytes of some pictures look like letters.
    guard !hasMagic(came), came.kind != .picture else { return nil }
    let looksLikeText = opening.isEmpty ? isTiny || isShort : came.isText
    // A longer body counts as text only where the server calls it text as well.
    let isText = looksLikeText && Self.isText(contentType)
    // The body is far shorter than the feed says, and its first bytes are text, whatever the server calls it.
    let isAnotherText = !opening.isEmpty && came.isText && isShort
    // A feed may give the size of what a file leads to, as for an NZB. For unknown types the server must call it a text, too.
    let isDoubted =
      switch declared {
      case .media, .binary:
        isText || isAnotherText || looksLikeText && isTiny && isShort
          || !opening.isEmpty && isUnvouchedText(came, contentType, size: size)
      // A file that was unpacked on the way is not taken for a page, and is not shorter.
      case .other:
        !opening.isEmpty && isUnvouchedText(came, contentType, size: size)
          || isAnotherText && (isPacked || isNamedBinary)
          || isText
            && (isShort || Self.isHTML(contentType)
              || hint.length == nil && isTiny && Self.isAnswer(contentType))
      case .nothing: isText && isShort
      case .text, .digest, .signature: false
      }
    guard isDoubted else { return nil }
    let words = Self.came(contentType, isText: !opening.isEmpty && came.isText)
    let what = "\(words) of \(Units.count(size, "byte")) came where the feed "
    guard case .media(let type) = declared else {
      return what + (hint.length.map { "says \(Units.count($0, "byte"))" } ?? "names another kind of file")
    }
    return what + "says \(type)" + (hint.length.map { " of \(Units.grouped($0))" } ?? "")
  }

  /// Returns whether a text came in the place of what is none, and no length of the feed vouches for it: a length may be off, but
  /// hardly by half. A name such as `a.m3u` stands for a text, whatever its type.
  ///
  /// - Parameter size: the size of the body; `nil` while more may follow.
  private func isUnvouchedText(_ came: Opening, _ contentType: String?, size: UInt64?) -> Bool {
    guard isMediaOrBinary || isPackedByType(contentType) || isBytesOfWindow && !came.isRecords, came.isText,
      hint.sizes == nil
    else { return false }
    guard !Self.plainEndings.contains(ending), !Self.textEndings.contains(ending) else { return false }
    guard let length = hint.length else { return true }
    return size.map { $0 / 2 > length } ?? false
  }

  /// Returns why a few bytes are not a recording, or a picture of more than twice their size.
  private func doubt(ofFew size: UInt64, _ opening: some Collection<UInt8>, _ contentType: String?) -> String?
  {
    let bytes = Array(opening)
    if isPicture, isMediaOrBinary, let length = hint.length, size < length / 2 {
      let isPixel = bytes.starts(with: "GIF8".utf8) && ending != "gif" && !namesType("gif")
      let isAnswer = Self.isHTML(contentType) && FileSignature.kind(of: bytes) != .picture
      return isPixel || isAnswer ? tooShort(size) : nil
    }
    guard isRecording, hint.length == nil, hint.sizes == nil, !FileSignature.mayBe(.recording, bytes) else {
      return nil
    }
    let what = Self.came(contentType, isText: Opening(bytes).isText)
    return "\(what) of \(Units.count(size, "byte")) came, which is no recording"
  }

  /// True for a recording by its name, or by its type where the name tells nothing.
  private var isRecording: Bool {
    if Self.recordingEndings.contains(ending) { return true }
    let isUnknown = !isPicture && !Self.plainEndings.contains(ending) && !Self.textEndings.contains(ending)
    return isUnknown && ["mpeg", "mp3", "mp4", "x-m4a", "x-m4v"].contains(where: namesType)
  }

  /// Returns whether the feed's type ends with these letters: `audio/mpeg`, or `mpeg` alone.
  private func namesType(_ name: String) -> Bool {
    let type = hint.mediaType.map { String(decoding: $0, as: UTF8.self) } ?? ""
    return type == name || type.hasSuffix("/\(name)")
  }

  /// True for a name that stands for bytes of some kind, and for no text that a feed would give the length of another file for.
  private var isNamedBinary: Bool {
    Self.otherEndings.contains(ending) && !Self.mixedEndings.contains(ending)
      && hint.mediaType.map(Self.tells) != true
  }

  /// True for an enclosure that is no text by the name that it has at its server. No later pass asks again by itself.
  private var isBytesOfWindow: Bool {
    guard isEnclosure, sent.first == ending, case .other = declared else { return false }
    // Some servers unpack a file on the way, so what is packed tells.
    guard let inner = endings.first(where: { !Self.packedEndings.contains($0) }) else { return false }
    return Self.isOfBytes(inner) && !Self.mixedEndings.contains(inner)
  }

  private var isOfUnknownEnding: Bool {
    guard case .nothing = declared, mayBePage else { return false }
    return !ending.isEmpty && !Self.madeEndings.contains(ending)
  }

  /// Returns why a text, or nothing, does not replace a larger file whose bytes are no text. Where those are not known, the name tells.
  /// A server makes its errors as it is asked, without a strong ETag and Last-Modified. A file that it stores has one of them.
  private func doubt(
    replacing size: UInt64, _ opening: some Collection<UInt8>, _ contentType: String?,
    _ before: () -> [UInt8]?
  ) -> String? {
    guard let earlier, size != hint.length, hint.sizes == nil else { return nil }
    switch declared {
    case .other, .nothing, .digest, .signature, .text: break
    case .media, .binary: return nil
    }
    let came = Opening(opening)
    if isNamedAsNoPage, came.isPage, Self.isHTML(contentType),
      before().map({ !$0.isEmpty && !Opening($0).isMarkup }) == true
    {
      return replaced("\(Self.came(contentType, isText: true)) came in the place of what is no page")
    }
    guard size < earlier else { return nil }
    let mayBeFile = hasMagic(came) || came.kind != nil || isWantedDrawing(came, contentType)
    guard size == 0 || !opening.isEmpty && came.isText && !mayBeFile else { return nil }
    guard before().map({ !Opening($0).isText }) ?? isNamedBinary else { return nil }
    let what = size == 0 ? "nothing" : Self.came(contentType, isText: true)
    let why =
      "\(what) (\(Units.count(size, "byte"))) came in the place of \(Units.count(earlier, "byte")) that are no text"
    return replaced(why)
  }

  /// True for a name that stands for a text of another kind. A page may have any other ending.
  private var isNamedAsNoPage: Bool {
    guard !isEnclosure, !Self.madeEndings.contains(ending) else { return false }
    return switch declared {
    case .digest, .signature, .text: true
    case .other, .nothing: Self.besideEndings.contains(ending)
    case .media, .binary: false
    }
  }

  /// Adds how to get what comes nevertheless. What is deleted in a window stays deleted.
  private func replaced(_ why: String) -> String {
    isEnclosure ? why : "\(why); delete the local file, and the next pass takes what comes"
  }

  /// Returns whether it is a drawing in SVG, which a recording or a document never is.
  private func isWantedDrawing(_ came: Opening, _ contentType: String?) -> Bool {
    came.isDrawing(contentType) && (isPicture || !isMediaOrBinary)
  }

  private func hasMagic(_ came: Opening) -> Bool {
    // Programs that carry their data begin as a script, and letters to a printer may precede a document.
    came.hasMagic || isDocument && !came.isMarkup && came.isDocument || came.isScript && !isMediaOrBinary
      || came.isScript && ["jar", "war"].contains(ending)
  }

  /// Returns whether the feed's type tells that the file is compressed, and the name does not tell more: in a window Tarn makes it from
  /// the type. A text that the server names as one of a kind was unpacked on the way.
  private func isPackedByType(_ contentType: String?) -> Bool {
    if isPacked, ending.isEmpty { return true }
    let came = Self.mediaType(contentType)
    let isText = came.hasPrefix("text/") && came != "text/plain" && came != "text/html"
    // JSON and XML may be an error as well.
    let isUnpacked =
      isText || Self.isOfText(came) && sent.dropFirst().first.map(Self.textEndings.contains) == true
    return isEnclosure && hint.mediaType.map(Self.isPackedType) == true && !isUnpacked
      && (ending == "bin" || Self.packedEndings.contains(ending))
  }

  private func textCame(_ contentType: String?) -> String {
    let what = "\(Self.came(contentType, isText: true)) came where the feed "
    guard case .media(let type) = declared else { return what + "names another kind of file" }
    return what + "says \(type)"
  }

  private var isMediaOrBinary: Bool {
    switch declared {
    case .media, .binary: true
    case .other, .digest, .signature, .text, .nothing: false
    }
  }

  /// True for a picture by its type or its name.
  private var isPicture: Bool {
    let type = hint.mediaType.map { String(decoding: $0, as: UTF8.self) } ?? ""
    return type.hasPrefix("image") || [type, ending].contains(where: Self.pictureEndings.contains)
  }

  private var isDocument: Bool {
    ending == "pdf" || hint.mediaType?.elementsEqual("application/pdf".utf8) == true
  }

  private func tooShort(_ size: UInt64, _ came: Opening? = nil, _ contentType: String? = nil) -> String {
    let what = came.map { "\(Self.came(contentType, as: $0)) of " } ?? ""
    return
      "\(what)\(Units.count(size, "byte")) came where the feed says \(Units.count(hint.length ?? 0, "byte"))"
  }

  /// Returns whether the kind found fits what is declared: a picture that says not to link to it does not fit a recording.
  private func fits(_ kind: FileSignature.Kind) -> Bool {
    guard isMediaOrBinary else { return true }
    switch kind {
    case .recording, .program: return true
    case .picture: return isPicture
    case .document: return isDocument
    // Many kinds of files are archives by their first bytes.
    case .archive:
      if case .media = declared {
        let isUsual = ending.isEmpty || isRecording || Self.pictureEndings.contains(ending)
        return FileSignature.isArchive(ending) || !isUsual
      }
      return !isPicture && !Self.recordingEndings.contains(ending)
    }
  }

  private var mayBeEmpty: Bool {
    if let sizes = hint.sizes { return sizes.contains(0) }
    // No such file is empty, whatever else it may be.
    if FileSignature.fits([], endings[...]) != nil { return false }
    return switch declared {
    case .media, .binary: false
    case .text, .digest, .signature: hint.length == nil
    case .other, .nothing: hint.length == nil && !isEnclosure
    }
  }

  /// The size in bytes that no recording, and few pictures, stay below.
  private static let leastMedia: UInt64 = 1024
  /// What `WindowCatalog` writes into the listing.
  package static let enclosure = Array("enclosure".utf8)

  private var nothingCame: String {
    let length = hint.length.map { " of \(Units.count($0, "byte"))" } ?? ""
    return "nothing came (0 bytes) where the feed has a file\(length)"
  }
}

/// Words for what was received and for what is declared.
extension ContentDoubt {
  /// The endings of pages that a server creates on request. An index shows the size of the program instead.
  private static let programEndings: Set<String> = [
    "php", "phtml", "shtml", "shtm", "cgi", "asp", "aspx", "jsp",
  ]

  /// The endings of pages, and of scripts that may create pages.
  private static let madeEndings = programEndings.union(["html", "htm", "xhtml", "pl", "py"])

  /// The endings of texts, and of torrents, which are mostly letters: no server shows them as a page.
  private static let plainEndings: Set<String> = [
    "txt", "json", "jsonl", "ndjson", "csv", "tsv", "csd", "sco", "torrent", "m3u", "m3u8", "pls", "srt",
    "vtt", "gpx",
    "kml", "nfo", "conf", "ini", "toml", "yaml", "yml", "svg", "xml", "rss", "atom",
  ]

  /// Returns whether the file may be a page: true unless its name says otherwise. `index.html.en` is a page. An unknown ending says
  /// nothing.
  private static func mayBePage(_ entry: Entry, _ ending: String, _ hint: ContentHint) -> Bool {
    let type = hint.mediaType.map { String(decoding: $0, as: UTF8.self) } ?? ""
    let isKnown =
      isOfBytes(ending) || plainEndings.contains(ending) || digestEndings.contains(ending)
      || signatureEndings.contains(ending)
    return !isKnown || hasPageInside(entry) || ["text/html", "application/xhtml+xml"].contains(type)
  }

  private static func isOfBytes(_ ending: String) -> Bool {
    binaryEndings.contains(ending) || otherEndings.contains(ending)
  }

  /// Returns the parts of the name behind its dots, the last one first. Tarn makes the names in a window: there, the name at the
  /// server may tell more.
  private static func endings(_ entry: Entry) -> [String] {
    let own = FileSignature.endings(entry.path)
    guard entry.listing.elementsEqual(enclosure) else { return own }
    let sent = FileSignature.sentEndings(entry)
    let isLonger = own.first == "bin" && sent.first.map(isOfBytes) == true
    return isLonger || sent.first == own.first ? sent : own
  }

  /// True for names such as `page.html.gz`, which some servers unpack on the way.
  private static func hasPageInside(_ entry: Entry) -> Bool {
    let name = entry.path.bytes.split(separator: UInt8(ascii: "/")).last ?? []
    return name.split(separator: UInt8(ascii: ".")).dropFirst().dropLast().contains {
      madeEndings.contains(String(decoding: $0, as: UTF8.self).lowercased())
    }
  }

  private static func declared(_ entry: Entry, _ ending: String) -> Declared {
    let text = entry.hint.mediaType.map { Printable.escape($0) } ?? ""
    let isTold = entry.hint.mediaType.map(tells) ?? false
    if digestEndings.contains(ending) { return .digest }
    if signatureEndings.contains(ending) { return .signature }
    if isTold, isOfText(text) || madeEndings.contains(ending) { return .text }
    // Some servers' tables of endings call a TypeScript file this.
    if text == "video/mp2t" { return .other }
    if isTold, isMedia(text) || mediaTypes.contains(text) { return .media(text) }
    // And they call a batch file of DOS a program.
    if isTold, binaryTypes.contains(text) { return ["bat", "cmd"].contains(ending) ? .other : .binary }
    if textEndings.contains(ending) || isNamedAsText(entry) || hasPageInside(entry) { return .text }
    if binaryEndings.contains(ending) { return .binary }
    return isTold || otherEndings.contains(ending) ? .other : .nothing
  }

  /// Returns whether a type says what the bytes are.
  private static func tells(_ type: [UInt8]) -> Bool {
    !type.isEmpty && !saysNothing.contains(Printable.escape(type))
  }

  /// The media types that stand for any bytes.
  private static let saysNothing: Set<String> = [
    "application/octet-stream", "binary/octet-stream", "application/force-download", "application/x-download",
    "application/download", "application/unknown",
  ]

  /// Returns whether files of a type are markup or another text, among them playlists, stream manifests, SVG and pictures in
  /// letters.
  private static func isOfText(_ type: String) -> Bool {
    let ends = [
      "xml", "json", "mpegurl", "m3u", "m3u8", "pls", "svg", ".mpd", "ms-asf", "ms-asx", "ms-wax", "ms-wvx",
      "ms-wmx", "realaudio", "realaudio-plugin", "javascript", "yaml", "anymap", "bitmap", "graymap",
      "pixmap", "xbm", "xpm", "dxf", "metalink", "csound",
    ]
    return type.hasPrefix("text/") || ends.contains { type.hasSuffix($0) }
  }

  private static func isMedia(_ contentType: String?) -> Bool {
    ["audio/", "video/", "image/"].contains { mediaType(contentType).hasPrefix($0) }
  }

  /// Media types under other names.
  private static let mediaTypes: Set<String> = [
    "audio", "video", "image", "mp3", "mp4", "m4a", "m4v", "mpeg", "ogg", "opus", "wav", "jpg", "jpeg", "png",
    "gif",
    "application/ogg", "application/x-ogg", "application/mp4", "application/mpeg", "application/x-mp3",
  ]

  private static let binaryTypes: Set<String> = [
    "application/pdf", "application/zip", "application/x-zip-compressed", "application/epub+zip",
    "application/x-tar", "application/x-7z-compressed", "application/vnd.rar", "application/x-rar-compressed",
    "application/java-archive", "application/x-iso9660-image", "application/x-rpm",
    "application/vnd.debian.binary-package", "application/x-debian-package",
    "application/vnd.android.package-archive",
    "application/x-msdownload", "application/x-apple-diskimage", "application/vnd.apache.parquet",
    "application/x-gtar", "application/x-gtar-compressed", "application/x-compressed-tar",
    "application/x-msdos-program", "application/x-dosexec", "application/vnd.microsoft.portable-executable",
    "application/x-msi", "application/vnd.ms-cab-compressed", "application/x-shockwave-flash",
    "application/x-sqlite3", "application/vnd.sqlite3",
  ]

  private static let binaryEndings = recordingEndings.union(pictureEndings).union(FileSignature.archives)
    .union([
      "pdf", "mobi", "azw", "azw3", "djvu", "iso", "qcow2", "vdi", "vhd", "vhdx", "squashfs", "psd", "wasm",
      "ttf", "otf", "woff", "woff2", "sqlite", "mid", "gguf", "safetensors", "onnx", "ckpt", "h5", "npy",
      "blend", "dmg", "parquet", "appimage", "flatpak", "zim",
    ])

  private static let pictureEndings: Set<String> = [
    "jpg", "jpeg", "png", "gif", "webp", "avif", "heic", "bmp", "tif", "tiff", "jfif", "jpe", "jp2", "jxl",
    "heif", "dib", "tga", "dng", "cr2",
  ]

  /// `au` is none: it ends the names of hosts and zones in Australia. The feed's type tells a recording.
  private static let recordingEndings: Set<String> = [
    "mp3", "m4a", "m4b", "aac", "ogg", "oga", "ogv", "opus", "flac", "wav", "mp4", "m4v", "mov", "mkv",
    "webm", "avi", "wma", "wmv", "mpg", "mpeg", "3gp", "flv", "aif", "aiff", "m2ts", "spx", "amr", "awb",
    "mka", "wv", "ape", "aax", "weba", "f4v", "3g2", "m4r", "caf", "tta", "dsf", "mp2", "mpga", "aifc", "m1v",
    "rmvb", "ogm",
  ]

  private static let signatureEndings: Set<String> = ["asc", "sig", "gpg"]

  /// The endings of what leads to a file, or vouches for it, beside those of signatures and digests.
  private static let besideEndings: Set<String> = [
    "metalink", "meta4", "zsync", "pem", "crt", "sign", "minisig", "sigstore", "p7s",
  ]

  private static let digestEndings: Set<String> = [
    "md5", "sha1", "sha224", "sha256", "sha384", "sha512", "b2", "b3", "md5sum", "sha1sum", "sha256sum",
    "sha512sum",
  ]

  /// The endings of texts, whatever length the feed gives.
  private static let textEndings: Set<String> = [
    "txt", "text", "md", "rst", "vtt", "srt", "json", "geojson", "jsonl", "ndjson", "xml", "rss", "atom",
    "gpx",
    "kml", "svg", "csv", "tsv", "log", "nfo", "mht", "hta", "m3u", "m3u8", "pls", "sh", "conf", "ini", "toml",
    "yaml", "yml", "css", "js",
  ]

  /// The endings of texts in lines, which are neither markup nor JSON.
  private static let lineEndings: Set<String> = ["txt", "text", "csv", "tsv", "log"]

  /// Returns whether the name is like `README`.
  private static func isNamedAsText(_ entry: Entry) -> Bool {
    let name = entry.path.bytes.split(separator: UInt8(ascii: "/")).last ?? []
    return name.count >= 3 && name.allSatisfy { (0x41...0x5A).contains($0) || 0x5F == $0 }
  }

  private static let packedEndings: Set<String> = [
    "gz", "bz2", "xz", "zst", "lz4", "lzma", "lz", "lzo", "br", "z",
  ]

  private static func isPackedType(_ type: [UInt8]) -> Bool {
    packedTypes.contains(String(decoding: type, as: UTF8.self))
  }

  private static let packedTypes: Set<String> = [
    "application/gzip", "application/x-gzip", "application/x-bzip2", "application/x-bzip", "application/x-xz",
    "application/zstd", "application/x-zstd", "application/x-lzma",
  ]

  private static let otherEndings = packedEndings.union([
    "img", "bin", "ico", "vmdk", "raw", "snap", "fbx", "so", "svgz", "pkg", "nc", "ts", "run", "uf2", "efi",
    "hdf", "hdf5", "grib", "grib2", "grb2", "laz", "pcap", "pcapng", "pyc", "dylib", "sys", "ko", "elf",
    "swf",
    "feather", "arrow", "avro", "orc", "bam", "cram", "tflite", "vob", "m2t", "ipk", "cpio",
    // Outside of a window they may be TypeScript or another source, lead to a recording, or be compressed.
    "mts", "asf", "rm", "ra", "mpc", "snd", "s3m", "xm",
  ])

  /// Of these endings, those whose files may be texts as well: linker scripts, TypeScript, G-code, snapshots, installers, scenes,
  /// orchestras of Csound, settings of DOS.
  private static let mixedEndings: Set<String> = [
    "vmdk", "raw", "snap", "so", "ts", "nc", "run", "pkg", "fbx", "orc", "sys", "hdf",
  ]

  static func mediaType(_ contentType: String?) -> String {
    let type = (contentType ?? "").prefix { $0 != ";" }.lowercased()
    return String(type.filter { $0 != " " && $0 != "\t" })
  }

  private static func isHTML(_ contentType: String?) -> Bool {
    ["text/html", "application/xhtml+xml"].contains(mediaType(contentType))
  }

  private static func isText(_ contentType: String?) -> Bool {
    mediaType(contentType).hasPrefix("text/") || isAnswer(contentType)
  }

  /// Returns whether programs answer with this type.
  private static func isAnswer(_ contentType: String?) -> Bool {
    let type = mediaType(contentType)
    return type.hasSuffix("json") || type.hasSuffix("xml") || isHTML(contentType)
  }

  /// - Parameter isText: true when the bytes are a text, whatever the server calls them.
  private static func came(_ contentType: String?, isText: Bool = false) -> String {
    isHTML(contentType)
      ? "a web page (\(shown(contentType)))"
      : "\(isText || Self.isText(contentType) ? "a text" : "something") (\(shown(contentType)))"
  }

  /// - Parameter opening: how the body begins, which is not what the server calls it.
  private static func came(_ contentType: String?, as opening: Opening) -> String {
    guard !isText(contentType), opening.isMarkup || opening.isText else { return came(contentType) }
    return "\(opening.isPage ? "a web page" : "a text"), sent as \(shown(contentType)),"
  }

  private static func mismatch(_ contentType: String?, as opening: Opening) -> String {
    "\(came(contentType, as: opening)) came, which does not match the file's name or its declared type"
  }

  private static func shown(_ contentType: String?) -> String {
    let type = mediaType(contentType)
    return type.isEmpty ? "of no declared type" : Printable.escape(type)
  }
}
