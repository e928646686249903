import TarnCore

/// The lines of clearsigned messages that are signed (RFC 9580 7), those behind the head of a signify signature, or all
/// lines of a plain document.
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

  /// The last line stood before, behind or between signed messages.
  private(set) var wasOutside = false

  /// The line as it was before signing; nil when it is not part of the signed text.
  mutating func next(_ line: [UInt8]) -> ArraySlice<UInt8>? {
    wasOutside = isSigned && (place == .before || place == .after)
    guard isSigned else { return plain(line) }
    let bare = ListedFile.withoutReturns(line)
    switch place {
    case .before, .after:
      // Behind one message another one may begin.
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

  /// signify(1) -e writes a comment and the signature in Base64 before the message.
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
