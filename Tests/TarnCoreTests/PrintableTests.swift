import TarnCore
import TestSupport
import Testing

@Suite struct PrintableTests {
  @Test(arguments: [
    ("plain name.txt", "plain name.txt"), ("", ""), ("日本 é 😀", "日本 é 😀"), ("a\\b", "a\\\\b"),
    ("\\x41", "\\\\x41"), ("a\nb\rc\td", "a\\nb\\rc\\td"), ("\u{1B}[31m", "\\x1b[31m"),
    ("\u{7F}\0", "\\x7f\\x00"),
    ("\u{85}", "\\xc2\\x85"), ("\u{202E}", "\\xe2\\x80\\xae"), ("\u{2066}", "\\xe2\\x81\\xa6"),
    ("\u{200F}", "\\xe2\\x80\\x8f"), ("\u{61C}", "\\xd8\\x9c"), ("\u{FEFF}", "\\xef\\xbb\\xbf"),
    ("\u{2028}", "\\xe2\\x80\\xa8"), ("\r\n", "\\r\\n"), ("e\u{301}", "e\u{301}"), ("\u{A0}", "\u{A0}"),
  ]) func text(_ raw: String, _ shown: String) {
    #expect(Array(Printable.escape(raw).utf8) == Array(shown.utf8))
  }

  @Test(
    arguments: [
      ([0xFF], "\\xff"), ([0xC3], "\\xc3"), ([0xC3, 0x28], "\\xc3("), ([0xE2, 0x82], "\\xe2\\x82"),
      ([0xC0, 0xAF], "\\xc0\\xaf"), ([0xED, 0xA0, 0x80], "\\xed\\xa0\\x80"),
      ([0xF5, 0x80, 0x80, 0x80], "\\xf5\\x80\\x80\\x80"),
      ([0xE0, 0x80, 0x80], "\\xe0\\x80\\x80"), ([0xF4, 0x90, 0x80, 0x80], "\\xf4\\x90\\x80\\x80"),
      ([0x80, 0x61], "\\x80a"),
    ] as [([UInt8], String)]) func bytesThatAreNoText(_ bytes: [UInt8], _ shown: String)
  {
    #expect(Printable.escape(bytes) == shown)
  }

  /// Reads `escape` backwards, from bytes alone: what can be read back was told apart.
  private static func read(_ shown: String) -> [UInt8]? {
    var plain: [UInt8] = []
    var rest = Array(shown.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\") else {
        plain.append(byte)
        continue
      }
      switch rest.popFirst() {
      case UInt8(ascii: "n"): plain.append(10)
      case UInt8(ascii: "r"): plain.append(13)
      case UInt8(ascii: "t"): plain.append(9)
      case UInt8(ascii: "\\"): plain.append(92)
      case UInt8(ascii: "x"):
        guard let high = rest.popFirst().flatMap(\.hexDigitValue),
          let low = rest.popFirst().flatMap(\.hexDigitValue)
        else { return nil }
        plain.append(high << 4 | low)
      default: return nil
      }
    }
    return plain
  }

  private static func isSafe(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7F...0x9F, 0x200E, 0x200F, 0x61C, 0x202A...0x202E, 0x2066...0x2069: false
    default: true
    }
  }

  private static let pieces: [[UInt8]] = [
    [0x5C], Array("x".utf8), Array("c2".utf8), Array("n".utf8), [0x0A], [0xC2], [0x85], [0xE2, 0x80], [0xAE],
    [0x80],
    [0xC3, 0xA9], [0x65, 0xCC, 0x81], [0xF0, 0x9F, 0x98], [0x80], [0xEF, 0xBB, 0xBF], [0xFF], [0], [0x1B],
    [0x7F],
  ]

  @Test(arguments: 0..<4 as Range<UInt64>) func readsBackAndIsSafe(seed: UInt64) {
    var random = Seeded(seed)
    for round in 0..<800 {
      let bytes =
        round % 2 == 0
        ? random.bytes(Array(0...255), count: random.below(10))
        : (0..<random.below(7)).flatMap { _ in random.pick(Self.pieces) }
      let shown = Printable.escape(bytes)
      guard Self.read(shown) == bytes, shown.unicodeScalars.allSatisfy(Self.isSafe) else {
        Issue.record("\(bytes) is shown as \(Array(shown.utf8))")
        return
      }
    }
  }
}
