/// The kind of a document.
package enum FeedKind: Sendable {
  /// A list of files with paths, perhaps in path order.
  case list
  /// A directory, perhaps with others below it.
  case index
  /// Items that name files without paths: a feed of the newest files.
  case window
}

/// An item that a format found, in the order of the document.
package enum FeedItem: Sendable, Equatable {
  case entry(Entry)
  case refused(Refusal)
  /// A directory of a recursive index: `url` is its listing (absolute), `path` its place below the feed.
  case directory(url: String, path: RelativePath)
  /// A path that the feed declares as gone, in a list that need not be complete.
  case deleted(RelativePath)
  /// A file that an item of a window names, which has no path yet.
  case enclosure(Enclosure)
}

/// A file that an item of a window (RSS, Atom, JSON Feed) names, without a path of its own.
package struct Enclosure: Sendable, Equatable {
  /// The item's identity as the feed gives it (RSS guid, rdf:about, Atom id, JSON Feed id), without blanks at
  /// its ends.
  package var guid: [UInt8]?
  /// The item's title: text without markup, each run of blanks one space; empty when there is none.
  package var title: [UInt8]
  /// When the item was published, or else when it was updated.
  package var date: Timestamp?
  /// The file's URL, followed by other places of the same bytes; never empty.
  package var sources: [Source]
  /// The size in bytes, a hint that is often wrong; never 0.
  package var length: UInt64?
  /// The media type, such as `audio/mpeg`: in lower case, without parameters.
  package var mediaType: [UInt8]?
  package var digest: Digest?
  /// The numbers of season and episode as the feed writes them; `nil` when it gives none.
  package var season: [UInt8]?
  package var episode: [UInt8]?
  /// The number of the item in the document, from 0.
  package var position: Int
  /// The number of the file within its item, from 0.
  package var ordinal: Int

  package init(
    guid: [UInt8]? = nil, title: [UInt8] = [], date: Timestamp? = nil, sources: [Source],
    length: UInt64? = nil, mediaType: [UInt8]? = nil, digest: Digest? = nil, season: [UInt8]? = nil,
    episode: [UInt8]? = nil, position: Int = 0, ordinal: Int = 0
  ) {
    self.guid = guid
    self.title = title
    self.date = date
    self.sources = sources
    self.length = length
    self.mediaType = mediaType
    self.digest = digest
    self.season = season
    self.episode = episode
    self.position = position
    self.ordinal = ordinal
  }
}

/// What a format knows after reading the whole document.
package struct FeedEnd: Sendable, Equatable {
  /// False for a window, a truncated list and a recovered parse: then nothing is deleted.
  package var isComplete: Bool
  /// Why the document is not complete, for people; empty when it is.
  package var incompleteReason: String
  /// The number of the manifest, which never decreases (native manifest).
  package var version: UInt64?
  /// The time after which the manifest is not trusted (native manifest).
  package var expires: Timestamp?
  /// The least number of seconds between two readings that the feed asks for; `nil` when it asks for none.
  package var refreshSeconds: Int64?
  /// True when the document says that it continues, but ends.
  package var isCut = false
  /// True for a directory index: its files may change without a change of the page or its validators.
  package var isIndex = false
  /// The address of the next page, which continues this document and is read in the same way (RFC 5005 3, JSON Feed 1.1
  /// `next_url`); `nil` for none.
  package var next: String?
  /// The title of a window: text without markup; empty when it gives none.
  package var title: [UInt8] = []
  /// A notice for people although nothing failed: no item of a window names a file, or links of a page were left out.
  package var notice: Notice?

  package struct Notice: Sendable, Equatable {
    package enum Code: String, Sendable {
      case withoutFiles = "feed-without-files"
      case linksLeftOut = "links-left-out"
      /// An error ended the reading of a window; the items before it are used.
      case readInPart = "feed-read-in-part"
    }

    package var code: Code
    package var message: String

    package init(_ code: Code, _ message: String) {
      self.code = code
      self.message = message
    }
  }
  /// The kind of listing as `tarn status` prints it: `checksum list`, `Metalink 4`.
  package var format: String

  package init(
    format: String, isComplete: Bool, incompleteReason: String = "", version: UInt64? = nil,
    expires: Timestamp? = nil, refreshSeconds: Int64? = nil
  ) {
    self.format = format
    self.isComplete = isComplete
    self.incompleteReason = incompleteReason
    self.version = version
    self.expires = expires
    self.refreshSeconds = refreshSeconds
  }
}

/// Why a feed is rejected: exit status 65, nothing changed.
package struct FeedFailure: Error, Sendable, Equatable {
  /// A stable code such as `feed-truncated`.
  package var code: String
  /// What is wrong, and how to fix it.
  package var message: String
  /// The line and column in the document, from 1; `nil` when there is no place to point at.
  package var line: Int?
  package var column: Int?
  /// What to do, where the message alone does not say it.
  package var hint: String?

  package init(code: String, message: String, line: Int? = nil, column: Int? = nil, hint: String? = nil) {
    self.code = code
    self.message = message
    self.line = line
    self.column = column
    self.hint = hint
  }
}

/// A document to parse, and what is known about it.
package struct FeedDocument {
  /// The URL that the document came from after redirects, the base of relative references: `file:` for a local feed, empty for
  /// standard input. Without a base only absolute http and https URLs are sources.
  package var url: String
  /// The requested URL before redirects; `nil` where it is the same as `url`.
  package var requestedURL: String?
  /// The Content-Type header as sent; nil for a local feed.
  package var contentType: String?
  /// The place of this listing below the feed while a recursive index is read; `nil` for the feed itself.
  package var place: RelativePath?
  /// False when the bytes may have been cut off unnoticed. Then a format without an end mark is not complete.
  package var isWhole = true
  /// Returns the document's bytes from the beginning again; `nil` where the document is not to be kept as a file.
  package var reread: (() -> any ByteSource)?
  /// True when the bytes are gzip only because they were sent that way (RFC 9110 8.4).
  package var isEncoded = false
  /// The Last-Modified of the document.
  package var modified: Timestamp?
  package var rule: PathRule
  package var format: FormatChoice

  /// Returns whether the file itself is gzip. Servers declare such files as gzip-encoded.
  package static func isGzipFile(_ url: String) -> Bool {
    let path = url.prefix { $0 != "?" && $0 != "#" }.lowercased()
    return path.hasSuffix(".gz") || path.hasSuffix(".tgz")
  }

  package init(
    url: String, contentType: String? = nil, place: RelativePath? = nil, rule: PathRule = .linux,
    format: FormatChoice = .auto
  ) {
    self.url = url
    self.contentType = contentType
    self.place = place
    self.rule = rule
    self.format = format
  }
}

/// The bytes of a document, front to back.
package protocol ByteSource {
  /// Reads at most `buffer.count` bytes.
  ///
  /// - Returns: the bytes read; 0 at the end.
  /// - Throws: `FeedFailure` when the bytes cannot be read.
  mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(FeedFailure) -> Int
}

/// Turns the bytes of a feed into entries, or an error with a position. Blocking; any thread, one call at a time per value.
package protocol FeedParsing: Sendable {
  /// Recognises a document by its first bytes.
  ///
  /// - Throws: `FeedFailure` when it is not a feed, or the source cannot be read.
  func kind(of source: any ByteSource, as document: FeedDocument) throws(FeedFailure) -> FeedKind

  /// Recognises the format by its content and reads the whole document in bounded memory.
  ///
  /// - Parameter sink: called for each item in the order of the document, on this thread. An error that it throws ends the parse
  ///   and is passed on.
  /// - Throws: `FeedFailure` when the document is malformed, or what `sink` throws.
  func parse(
    _ source: any ByteSource, as document: FeedDocument, sink: (FeedItem) throws -> Void
  ) throws -> FeedEnd

  /// Returns a document's bytes without the encoding that they were sent in: gzip in one layer, or none.
  ///
  /// - Throws: `FeedFailure` when the source cannot be read, or is damaged gzip.
  func decoded(_ source: any ByteSource) throws(FeedFailure) -> any ByteSource
}
