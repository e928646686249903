import Glibc
import TarnCore
import TestSupport
import Testing

/// The path rule against a model that was written without looking at it: random paths, 200,000 of them, or as many
/// as TARN_NAMES says.
@Suite struct PathModelTests {
  @Test func agreesWithTheModel() {
    let count =
      getenv("TARN_NAMES").flatMap { Int(String(cString: $0)) } ?? (Sanitizer.takesShare ? 30_000 : 200_000)
    let seed = getenv("TARN_SEED").flatMap { UInt64(String(cString: $0)) } ?? 3
    var random = RandomPaths(seed: seed)
    var taken = 0
    var seen: Set<PathRefusal> = []
    var violations = 0
    for _ in 0..<count where violations < 10 {
      let bytes = random.next()
      let isPortable = random.draw(4) == 0
      var broken = PathModel.broken(bytes)
      if isPortable, PathModel.isStrange(bytes) { broken.insert(.notPortable) }
      let (refusal, path) = Self.judge(bytes, isPortable)
      if let refusal { seen.insert(refusal) } else { taken += 1 }
      let agrees = refusal.map { broken.contains($0) } ?? broken.isEmpty
      if !agrees || !Self.isSound(path, of: bytes) {
        violations += 1
        Issue.record("\(Printable.escape(bytes)): \(String(describing: refusal)), the model says \(broken)")
      }
    }
    print("path rule: \(count) random paths of seed \(seed), \(taken) taken, \(violations) violations")
    #expect(seen == Set(PathRefusal.allCases))
    #expect(taken > count / 10)
  }

  private static func judge(_ bytes: [UInt8], _ isPortable: Bool) -> (PathRefusal?, RelativePath?) {
    do throws(PathRefusal) {
      return (nil, try RelativePath(bytes, rule: PathRule(portable: isPortable)))
    } catch {
      return (error, nil)
    }
  }

  /// A path that was taken is what was given, whole and printable, and lies below what it claims to lie below.
  private static func isSound(_ path: RelativePath?, of bytes: [UInt8]) -> Bool {
    guard let path else { return true }
    guard path.bytes == bytes, Array(path.segments.joined(separator: [0x2F])) == bytes,
      path.printable.unicodeScalars.allSatisfy({ !PathModel.isUnseen($0) })
    else { return false }
    guard let parent = path.parent else { return path.name.elementsEqual(bytes) }
    return parent.isAncestor(of: path) && !path.isAncestor(of: parent) && parent < path
      && parent.bytes + [0x2F] + path.name == bytes
  }
}

/// What is wrong with a path, all of it, found on text where `PathRule` looks at bytes.
private enum PathModel {
  static func broken(_ bytes: [UInt8]) -> Set<PathRefusal> {
    var broken: Set<PathRefusal> = []
    if bytes.isEmpty { broken.insert(.empty) }
    if bytes.first == 0x2F { broken.insert(.absolute) }
    if bytes.count >= 4096 { broken.insert(.tooLong) }
    var lengths = [0]
    var dots = [0]
    for byte in bytes {
      if byte == 0x2F {
        lengths.append(0)
        dots.append(0)
      } else {
        lengths[lengths.count - 1] += 1
        if byte == 0x2E { dots[dots.count - 1] += 1 }
      }
    }
    if lengths.count > 1, lengths.contains(0) { broken.insert(.emptySegment) }
    if zip(lengths, dots).contains(where: { $0 == $1 && (1...2).contains($0) }) { broken.insert(.dotSegment) }
    if lengths.contains(where: { $0 >= 256 }) { broken.insert(.segmentTooLong) }
    if lengths.count > 512 { broken.insert(.tooDeep) }
    let text = String(decoding: bytes, as: UTF8.self)
    let framed = [0x2F] + bytes + [0x2F]
    let own = Array("/.tarn/".utf8)
    if framed.indices.contains(where: { framed[$0...].starts(with: own) }) { broken.insert(.reserved) }
    for scalar in text.unicodeScalars {
      if scalar == "\0" { broken.insert(.nul) }
      if scalar.properties.generalCategory == .control { broken.insert(.control) }
      if bidi.contains(scalar) { broken.insert(.bidi) }
    }
    return broken
  }

  /// True for what must not reach a terminal.
  static func isUnseen(_ scalar: Unicode.Scalar) -> Bool {
    scalar.properties.generalCategory == .control || bidi.contains(scalar)
  }

  private static let bidi: Set<Unicode.Scalar> = [
    "\u{202A}", "\u{202B}", "\u{202C}", "\u{202D}", "\u{202E}", "\u{2066}", "\u{2067}", "\u{2068}",
    "\u{2069}",
  ]

  /// True for a path that Windows or macOS cannot hold.
  static func isStrange(_ bytes: [UInt8]) -> Bool {
    guard let text = String(validating: bytes, as: UTF8.self) else { return true }
    return text.unicodeScalars.split(separator: "/").contains { segment in
      let name = String(segment)
      let stem = String(name.unicodeScalars.prefix { $0 != "." }).lowercased()
      let bare = String(
        String.UnicodeScalarView(stem.unicodeScalars.reversed().drop { $0 == " " }.reversed()))
      return segment.contains { "\\:*?\"<>|".unicodeScalars.contains($0) }
        || segment.first == "~" || segment.first == "-" || segment.last == "." || segment.last == " "
        || devices.contains(bare)
    }
  }

  private static let devices: Set<String> = Set(
    ["con", "prn", "aux", "nul"]
      + "0123456789\u{B9}\u{B2}\u{B3}".flatMap { ["com\($0)", "lpt\($0)"] })
}

/// Paths of pieces that matter, with some random bytes between.
private struct RandomPaths {
  private var source: Seeded

  init(seed: UInt64) { source = Seeded(seed) }

  private static let pieces: [[UInt8]] =
    [
      ".", "..", "...", "/", "/", "/", "//", "/./", "/../", "a", "b", "file", "x.txt", ".tarn", ".tarn/",
      ".TARN", ".tar",
      "tarn", "\0", "\n", "\u{7F}", "\u{1B}[2J", "\u{85}", "\u{9F}", "\u{A0}", "\u{202A}", "\u{202E}",
      "\u{202F}", "\u{2066}",
      "\u{2069}", "\u{206A}", "\u{200B}", "\u{E9}", "e\u{301}", "\u{1F600}", " ", "~", "-", "\\", ":", "%2e",
      "%00", "con",
      "nul.", "COM1", "lpt\u{B9}",
    ].map { Array($0.utf8) } + [
      [0xC2], [0xE2], [0xE2, 0x80], [0x80], [0x85], [0xAE], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xFF],
      [0xF0, 0x9F],
    ]

  mutating func draw(_ limit: Int) -> Int {
    Int(source.next() % UInt64(limit))
  }

  mutating func next() -> [UInt8] {
    switch draw(400) {
    case 0: return Array(repeating: 0x61, count: 250 + draw(10)) + Self.pieces[draw(Self.pieces.count)]
    case 1: return Array([[UInt8]](repeating: [0x61, 0x2F], count: 505 + draw(12)).joined()) + [0x62]
    case 2:
      let segment = Array(repeating: UInt8(0x63), count: 254) + [0x2F]
      return Array([[UInt8]](repeating: segment, count: 16).joined())
        + Array(repeating: 0x64, count: 10 + draw(12))
    case 3...40: return (0..<draw(24)).map { _ in UInt8(draw(256)) }
    case 41...100: return (0..<(1 + draw(12))).map { _ in Array("abc/.".utf8)[draw(5)] }
    default:
      var bytes: [UInt8] = []
      for _ in 0...draw(6) {
        bytes += draw(12) == 0 ? [UInt8(draw(256))] : Self.pieces[draw(Self.pieces.count)]
      }
      return bytes
    }
  }
}
