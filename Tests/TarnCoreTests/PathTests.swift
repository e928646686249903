import TarnCore
import TestSupport
import Testing

struct NameCase: CustomTestStringConvertible, Sendable {
  var bytes: [UInt8]
  var refusal: PathRefusal?
  var testDescription: String { "\(Printable.escape(bytes.prefix(60))) (\(bytes.count))" }

  init(_ text: String, _ refusal: PathRefusal? = nil) {
    bytes = Array(text.utf8)
    self.refusal = refusal
  }

  init(bytes: [UInt8], _ refusal: PathRefusal? = nil) {
    self.bytes = bytes
    self.refusal = refusal
  }
}

@Suite struct PathTests {
  private static func refusal(_ bytes: [UInt8], portable: Bool = false) -> PathRefusal? {
    do throws(PathRefusal) {
      let taken = try RelativePath(bytes, rule: PathRule(portable: portable))
      #expect(taken.bytes == bytes)
      return nil
    } catch {
      return error
    }
  }

  private static func times(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }

  /// 16 segments, `length` bytes in all.
  private static func long(_ length: Int) -> String {
    times(times("a", 254) + "/", 15) + times("b", length - 15 * 255)
  }

  static let names: [NameCase] = [
    NameCase("", .empty),
    NameCase("a"), NameCase("a/b"), NameCase("a b"), NameCase(" "), NameCase("a/ /b"), NameCase("...", nil),
    NameCase("..a"), NameCase(".a"),
    NameCase("a..b/c.."), NameCase("~"), NameCase("-rf"), NameCase("C:"), NameCase("a\\b"),
    NameCase("%2e%2e%2fa"), NameCase("*?\"<>|"),
    NameCase("/", .absolute), NameCase("/a", .absolute), NameCase("//a", .absolute),
    NameCase("a//b", .emptySegment), NameCase("a/", .emptySegment), NameCase("a/b//", .emptySegment),
    NameCase(".", .dotSegment), NameCase("..", .dotSegment), NameCase("./a", .dotSegment),
    NameCase("../a", .dotSegment),
    NameCase("a/./b", .dotSegment), NameCase("a/../b", .dotSegment), NameCase("a/..", .dotSegment),
    NameCase("a/.", .dotSegment),
    NameCase("a\0b", .nul), NameCase("\0", .nul), NameCase("/\0", .nul),
    NameCase(times("a", 255)), NameCase(times("a", 256), .segmentTooLong),
    NameCase("x/" + times("a", 256), .segmentTooLong),
    NameCase(times("a", 256) + "/x", .segmentTooLong),
    // The limit counts bytes: 127 and 128 of two bytes.
    NameCase(times("\u{E9}", 127)), NameCase(times("\u{E9}", 128), .segmentTooLong),
    NameCase(long(4079)), NameCase(long(4080)), NameCase(long(4095 - 16) + "/" + times("c", 15)),
    NameCase(times("ab/", 1365) + "c", .tooLong), NameCase(long(4079) + "/" + times("c", 16), .tooLong),
    NameCase(times("a/", 511) + "a"), NameCase(times("a/", 512) + "a", .tooDeep),
    NameCase(times("a/", 2047) + "a", .tooDeep),
    NameCase("a\nb", .control), NameCase("\t", .control), NameCase("\u{1B}[31m", .control),
    NameCase("a\u{7F}", .control),
    NameCase("a\u{1F}", .control), NameCase("a\u{80}", .control), NameCase("x\u{9F}/y", .control),
    NameCase("\u{A0}"),
    NameCase("\u{C0}"), NameCase("a\u{202A}", .bidi), NameCase("a\u{202E}gpj.exe", .bidi),
    NameCase("\u{2066}", .bidi),
    NameCase("x/\u{2069}", .bidi), NameCase("\u{2029}"), NameCase("\u{202F}"), NameCase("\u{2065}"),
    NameCase("\u{206A}"),
    NameCase(".tarn", .reserved), NameCase(".tarn/x", .reserved), NameCase(".tarn/trash/x", .reserved),
    NameCase(".tarn2"), NameCase(".tar"), NameCase(".tarn-x.part"), NameCase("a/.tarn", .reserved),
    NameCase("a/.tarn/b", .reserved), NameCase("a/b/.tarn/id", .reserved), NameCase("a/.tarn2/b"),
    NameCase("a.tarn/b"), NameCase(".TARN"),
    NameCase("\u{E9}"), NameCase("e\u{301}"), NameCase("日本/語"), NameCase("😀"),
    NameCase(bytes: [0xFF]), NameCase(bytes: [0x61, 0xC3]), NameCase(bytes: [0xC3, 0x28]),
    NameCase(bytes: [0x80]),
    NameCase(bytes: [0xC2]), NameCase(bytes: [0xE2, 0x80]), NameCase(bytes: [0xED, 0xA0, 0x80]),
    // Overlong forms of `/` and `..` are bytes like any other to the kernel.
    NameCase(bytes: [0xC0, 0xAF]), NameCase(bytes: [0xC0, 0xAE, 0xC0, 0xAE, 0x2F, 0x61]),
  ]

  @Test(arguments: names) func takesOrRefuses(_ name: NameCase) {
    #expect(Self.refusal(name.bytes) == name.refusal)
  }

  @Test func everyRefusalIsInTheTables() {
    let seen = Set((Self.names + Self.portableNames).compactMap(\.refusal))
    #expect(seen == Set(PathRefusal.allCases))
    #expect(Set(PathRefusal.allCases.map(\.rawValue)).count == PathRefusal.allCases.count)
    #expect(PathRefusal.allCases.allSatisfy { $0.rawValue.hasPrefix("path-") && !$0.reason.isEmpty })
  }

  @Test func lengthBoundary() {
    #expect(Self.refusal(Array(Self.long(4079).utf8) + Array(("/" + Self.times("c", 15)).utf8)) == nil)
    #expect((Self.long(4079) + "/" + Self.times("c", 15)).utf8.count == 4095)
    #expect((Self.long(4079) + "/" + Self.times("c", 16)).utf8.count == 4096)
  }

  static let portableNames: [NameCase] = [
    NameCase("a\\b", .notPortable), NameCase("C:", .notPortable), NameCase("a:b", .notPortable),
    NameCase("x/a*", .notPortable),
    NameCase("what?", .notPortable), NameCase("a\"b", .notPortable), NameCase("<a>", .notPortable),
    NameCase("a|b", .notPortable),
    NameCase("~", .notPortable), NameCase("~user", .notPortable), NameCase("-rf", .notPortable),
    NameCase("x/-rf", .notPortable),
    NameCase("a.", .notPortable), NameCase("a ", .notPortable), NameCase("a./b", .notPortable),
    NameCase("...", .notPortable),
    NameCase("CON", .notPortable), NameCase("con", .notPortable), NameCase("x/Nul.txt", .notPortable),
    NameCase("AUX.tar.gz", .notPortable), NameCase("prn", .notPortable), NameCase("COM1", .notPortable),
    NameCase("lpt9.txt", .notPortable), NameCase("COM\u{B9}", .notPortable),
    NameCase("nul .txt", .notPortable),
    NameCase("con/x", .notPortable), NameCase(bytes: [0x61, 0xFF], .notPortable),
    NameCase(bytes: [0xC3, 0x28], .notPortable),
    NameCase("CONS"), NameCase("COM"), NameCase("COM10"), NameCase("LPTX"), NameCase("LPT\u{B9}\u{5C1}"),
    NameCase("xcon"), NameCase("a~"),
    NameCase("a-b"), NameCase(" a"),
    NameCase(".a"), NameCase("a.b"), NameCase("a/b c/d"), NameCase("日本"), NameCase("\u{E9}"), NameCase("%"),
    NameCase("a+b;c=d&e"),
  ]

  @Test(arguments: portableNames) func portableNamesAlone(_ name: NameCase) {
    #expect(Self.refusal(name.bytes, portable: true) == name.refusal)
    #expect(Self.refusal(name.bytes) == nil)
  }

  @Test func normalFormsAreTwoNames() throws {
    let composed = try RelativePath(Array("caf\u{E9}".utf8))
    let decomposed = try RelativePath(Array("cafe\u{301}".utf8))
    #expect(composed != decomposed)
    #expect(Set([composed, decomposed]).count == 2)
    #expect(decomposed < composed)
  }

  /// Bytes that make paths which are nearly right, so that both sides of each rule are met often.
  private static let odd: [UInt8] =
    Array("aab/./..".utf8) + [0, 0x1F, 0x7F, 0x80, 0x9F, 0xAE, 0xC2, 0xE2, 0xFF, 0x7E]

  @Test(arguments: 0..<4 as Range<UInt64>) func whatIsTakenStaysInTheFolder(seed: UInt64) {
    var random = Seeded(seed)
    var taken = 0
    for round in 0..<1500 {
      let alphabet = round % 3 == 0 ? Array(0...255) : round % 3 == 1 ? Self.odd : Array("ab./".utf8)
      let bytes = random.bytes(alphabet, count: random.below(12))
      guard let path = try? RelativePath(bytes) else { continue }
      taken += 1
      let segments = bytes.split(separator: 0x2F, omittingEmptySubsequences: false).map { Array($0) }
      let isSafe =
        !segments.contains([]) && !segments.contains([0x2E]) && !segments.contains([0x2E, 0x2E])
        && segments.first != PathRule.reservedName && bytes.first != 0x2F
        && !bytes.contains { $0 < 0x20 || $0 == 0x7F } && !segments.contains { $0.count > 255 }
      if !isSafe || path.bytes != bytes || path.segments.map(Array.init) != segments {
        Issue.record("taken: \(path.printable)")
      }
    }
    #expect(taken > 150)
  }

  @Test func partsOfAPath() {
    #expect(Array(path("a/b/c").name) == Array("c".utf8))
    #expect(Array(path("a").name) == Array("a".utf8))
    #expect(path("a/b/c").parent == path("a/b"))
    #expect(path("a").parent == nil)
    #expect(path("a/b/c").segments.map { Array($0) } == ["a", "b", "c"].map { Array($0.utf8) })
    #expect(path("a\nb").printable == "a\\nb")
  }

  @Test(arguments: [
    ("a", "a/b", true), ("a", "a/b/c", true), ("a/b", "a/b/c", true), ("a", "a", false), ("a", "ab", false),
    ("a", "a-b/c", false), ("a", "a/", false), ("a/b", "a", false), ("b", "a/b", false),
    ("ab", "aX/c", false),
  ]) func ancestors(above: String, below: String, expected: Bool) {
    #expect(path(above).isAncestor(of: path(below)) == expected)
  }

  /// Eight bytes are compared at a time: one that differs is seen wherever it stands.
  @Test(arguments: 0...40) func oneByteThatDiffers(length: Int) {
    let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 0x61) }
    let same = RelativePath(trusted: bytes)
    #expect(same == RelativePath(trusted: Array(bytes)))
    for place in 0..<length {
      var other = bytes
      other[place] ^= 1 << UInt8(place % 8)
      #expect(same != RelativePath(trusted: other))
      #expect(!same.begins(with: RelativePath(trusted: other)))
      #expect(same.begins(with: RelativePath(trusted: Array(other[..<place]))))
      #expect(RelativePath(trusted: Array(bytes[..<place])) != same)
    }
  }

  @Test(arguments: 0..<4 as Range<UInt64>) func orderIsThatOfMemcmp(seed: UInt64) {
    var random = Seeded(seed)
    let alphabet: [UInt8] = [0, 0x2D, 0x2F, 0x61, 0x7F, 0x80, 0xFF]
    for _ in 0..<2000 {
      let left = random.bytes(alphabet, count: random.below(5))
      let right = random.bytes(alphabet, count: random.below(5))
      let expected = left.lexicographicallyPrecedes(right) ? -1 : left == right ? 0 : 1
      guard compareBytes(left, right).signum() == expected, compareBytes(right, left).signum() == -expected,
        (RelativePath(trusted: left) < RelativePath(trusted: right)) == (expected < 0),
        (RelativePath(trusted: left) == RelativePath(trusted: right)) == (expected == 0),
        RelativePath(trusted: left).begins(with: RelativePath(trusted: right)) == left.starts(with: right)
      else {
        Issue.record("\(left) and \(right)")
        return
      }
    }
  }
}
