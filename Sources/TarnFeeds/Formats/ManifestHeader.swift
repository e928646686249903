import TarnCore

/// The header of the native manifest.
struct ManifestHeader {
  static let format = "mirror-manifest/1"

  var version: UInt64?
  var expires: Timestamp?
  var isComplete = true
  /// The base URLs as they are written, absolute or relative.
  private(set) var mirrors: [(url: [UInt8], priority: Int)] = []
  /// The values of a file that does not give others.
  var defaults = ManifestFile()

  /// - Throws: `feed-version` for another format, `feed-malformed` for an unreadable field that matters for trust.
  init(_ reader: inout JSONReader) throws(FeedFailure) {
    var format: [UInt8]?
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch String(decoding: key, as: UTF8.self) {
      case "format": format = try reader.string()
      case "version":
        guard let value = try reader.wholeNumber() else {
          throw reader.malformed("'version' is not a whole number of 0 or more")
        }
        version = value
      case "expires":
        guard let value = FeedTime.rfc3339(try reader.string()) else {
          throw reader.malformed("'expires' is no RFC 3339 time")
        }
        expires = value
      case "complete":
        guard try reader.kind() == .literal, let value = try reader.literal() else {
          throw reader.malformed("'complete' is neither true nor false")
        }
        isComplete = value
      case "mirrors": mirrors = try ManifestFile.sources(&reader)
      case "defaults": try defaults.read(&reader)
      default: try reader.skip()
      }
    }
    guard let format, format.elementsEqual(Self.format.utf8) else {
      let found = format.map { Printable.escape($0.prefix(80)) } ?? "no format"
      throw reader.malformed(
        "the manifest says \(found); this Tarn reads \(Self.format)", code: "feed-version")
    }
  }

  /// Returns the usable base URLs, each up to its last slash: the path of a file is appended.
  func bases(in context: FeedContext) -> [ManifestBase] {
    mirrors.compactMap { mirror in
      var base = context.url.resolve(URLReference(mirror.url))
      guard context.isUsable(base) else { return nil }
      if base.path.last != 0x2F { base.path.append(0x2F) }
      base.query = nil
      return ManifestBase(url: base.bytes, priority: mirror.priority)
    }
  }

  func end(format: String, incomplete: String?) -> FeedEnd {
    let reason = incomplete ?? (isComplete ? nil : "the manifest says that it is not complete")
    return FeedEnd(
      format: format, isComplete: reason == nil, incompleteReason: reason ?? "", version: version,
      expires: expires)
  }
}

/// A place that has all files of a manifest.
struct ManifestBase {
  /// The URL, which ends with a slash.
  var url: [UInt8]
  var priority: Int

  func source(of path: RelativePath) -> Source {
    Source(url: Percent.text(of: path, behind: url), priority: priority)
  }
}
