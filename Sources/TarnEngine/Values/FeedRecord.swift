import TarnCore

/// The record that a pass that ended in sync leaves for the next one. It says how to ask whether the feed has changed, how the
/// folder was, and which counts to report. The ledger keeps it as one fact.
struct FeedRecord: Sendable, Equatable {
  /// The seconds after which the feed is read whole, whatever its server says.
  static let longest: Int64 = 24 * 3600

  /// The validators of the feed; `nil` when the server gave none that are sure to change with the text. Only the text can then show
  /// that it is the same.
  var validators: FeedValidators?
  /// The URL after redirects, to which validators and text belong.
  var url: String
  /// The `FeedReader.Document.digest` of the response.
  var text: Digest
  /// The `PassRequest.settings` of the pass that read the feed.
  var settings: String
  /// The time when the feed was last read whole.
  var read: Timestamp
  var fingerprint: FolderFingerprint
  var manifest = PassReport.Manifest()
  var refreshSeconds: Int64?
  var counts = PassCounts()
  var bytes = PassBytes()

  /// Returns false for a record that is too old, or from the future because the clock was set back.
  func isFresh(at now: Timestamp) -> Bool {
    read <= now && now < read.adding(seconds: Self.longest)
  }
}

extension FeedRecord {
  private enum Key: String {
    case etag, lastModified, url, text, settings, read, rows, odd, sum, format, isComplete, isWindow,
      incompleteReason, refreshSeconds
    case wanted, current, kept, unlisted, excluded, bytesWanted, bytesCurrent, unknownSizes
  }

  /// The record as text with one line for each value, for the ledger. It can be read back unchanged.
  var encoded: String {
    let values: [(Key, String?)] = [
      (.etag, validators?.etag), (.lastModified, validators?.lastModified), (.url, url), (.text, text.hex),
      (.settings, settings),
      (.read, String(read.nanoseconds)), (.rows, String(fingerprint.rows)), (.odd, String(fingerprint.odd)),
      (.sum, String(fingerprint.sum)), (.format, manifest.format),
      (.isComplete, String(manifest.isComplete)), (.isWindow, String(manifest.isWindow)),
      (.incompleteReason, manifest.incompleteReason),
      (.refreshSeconds, refreshSeconds.map { String($0) }),
      (.wanted, String(counts.wanted)), (.current, String(counts.current)), (.kept, String(counts.kept)),
      (.unlisted, String(counts.unlisted)), (.excluded, String(counts.excluded)),
      (.bytesWanted, String(bytes.wanted)), (.bytesCurrent, String(bytes.current)),
      (.unknownSizes, String(bytes.unknownSizes)),
    ]
    return values.compactMap { key, value in value.map { "\(key.rawValue)=\(EscapedLine.escape($0))" } }
      .joined(separator: "\n")
  }

  /// - Returns: the record; `nil` for text that is no record, or that of another Tarn.
  init?(encoded: String) {
    var values: [String: String] = [:]
    // The text is split by scalars: as characters, a line feed after "\r" would not be found.
    for line in encoded.unicodeScalars.split(separator: "\n") {
      guard let equals = line.firstIndex(of: "=") else { return nil }
      values[String(line[..<equals])] = EscapedLine.unescape(line[line.index(after: equals)...])
    }
    func text(_ key: Key) -> String? { values[key.rawValue] }
    func number<Number: FixedWidthInteger>(_ key: Key) -> Number? { text(key).flatMap { Number($0) } }
    guard
      let url = text(.url), let digest = text(.text).flatMap({ Digest(.sha256, hex: Array($0.utf8)) }),
      let settings = text(.settings), let read: Int64 = number(.read),
      let rows: Int = number(.rows), let odd: Int = number(.odd), let sum: UInt64 = number(.sum),
      let format = text(.format), let isComplete = text(.isComplete).flatMap({ Bool($0) }),
      let isWindow = text(.isWindow).flatMap({ Bool($0) }),
      let reason = text(.incompleteReason), let wanted: Int = number(.wanted),
      let current: Int = number(.current), let kept: Int = number(.kept),
      let unlisted: Int = number(.unlisted), let excluded: Int = number(.excluded),
      let bytesWanted: UInt64 = number(.bytesWanted), let bytesCurrent: UInt64 = number(.bytesCurrent),
      let unknownSizes: Int = number(.unknownSizes)
    else { return nil }
    self.init(
      validators: FeedValidators(etag: text(.etag), lastModified: text(.lastModified)), url: url,
      text: digest,
      settings: settings, read: Timestamp(nanoseconds: read),
      fingerprint: FolderFingerprint(rows: rows, odd: odd, sum: sum), refreshSeconds: number(.refreshSeconds))
    (manifest.format, manifest.incompleteReason) = (format, reason)
    (manifest.isComplete, manifest.isWindow) = (isComplete, isWindow)
    counts.wanted = wanted
    counts.current = current
    counts.kept = kept
    counts.unlisted = unlisted
    counts.excluded = excluded
    bytes.wanted = bytesWanted
    bytes.current = bytesCurrent
    bytes.unknownSizes = unknownSizes
  }
}
