import TarnCore

/// The header of the native manifest.
struct ManifestHeader {
  static let format = "mirror-manifest/1"

  var version: UInt64?
  var expires: Timestamp?
  var isComplete = true
  /// Base URLs; the path of a file is appended.
  var mirrors: [(url: [UInt8], priority: Int)] = []
  /// What holds for a file that does not say otherwise.
  var defaults = ManifestFile()

  /// - Throws: `feed-version` for another format, `feed-malformed` for a field that decides about trust and
  ///   cannot be read.
  init(_ reader: inout JSONReader) throws(FeedFailure) {
    var format: [UInt8]?
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch String(decoding: key, as: UTF8.self) {
      case "format": format = try reader.string()
      case "version":
        guard let value = UInt64(String(decoding: try reader.number(), as: UTF8.self)) else {
          throw reader.malformed("'version' is no whole number from 0")
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

  func end(format: String, incomplete: String?) -> FeedEnd {
    let reason = incomplete ?? (isComplete ? nil : "the manifest says that it is not complete")
    return FeedEnd(
      format: format, isComplete: reason == nil, incompleteReason: reason ?? "", version: version,
      expires: expires)
  }
}
