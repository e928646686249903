import TarnCore

/// Selects the signed lines of clearsigned messages (RFC 9580 7), the lines after the head of a signify signature, or all lines of
/// a plain document.
struct SignedText {
  private enum Place { case before, headers, body, signature, after, key }
  private var place: Place
  private let isSigned: Bool
  private static let begin = "-----BEGIN PGP SIGNED MESSAGE-----"

  init(head: [UInt8]) {
    isSigned = head.split(separator: 0x0A).contains {
      ListedFile.withoutReturns($0).elementsEqual(Self.begin.utf8)
    }
    place = isSigned ? .before : .body
  }

  /// True when a message ended before its signature did.
  var isCut: Bool { isSigned && place != .after }

  /// True when the last line stood before, after or between signed messages.
  private(set) var wasOutside = false

  /// Returns the line as it was before signing; `nil` when it is not part of the signed text.
  mutating func next(_ line: [UInt8]) -> ArraySlice<UInt8>? {
    wasOutside = isSigned && (place == .before || place == .after)
    guard isSigned else { return plain(line) }
    let bare = ListedFile.withoutReturns(line)
    switch place {
    case .before, .after:
      // Another message may begin after one has ended.
      if bare.elementsEqual(Self.begin.utf8) { place = .headers }
    case .headers:
      if bare.isEmpty { place = .body }
    case .body:
      if bare.begins(with: "-----BEGIN PGP SIGNATURE-----") {
        place = .signature
      } else {
        return line.begins(with: "- ") ? line.dropFirst(2) : line[...]
      }
    case .signature:
      if bare.begins(with: "-----END PGP SIGNATURE-----") { place = .after }
    case .key: break
    }
    return nil
  }

  /// Skips the comment and the Base64 signature that signify(1) -e writes before the message.
  private mutating func plain(_ line: [UInt8]) -> ArraySlice<UInt8>? {
    if place == .key {
      place = .body
      if Base64.decode(trimmed(line)) != nil { return nil }
    } else if line.begins(with: "untrusted comment: ") {
      place = .key
      return nil
    }
    return line[...]
  }
}
