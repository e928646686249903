import Testing

@testable import tarn

/// The keys of `status --watch`.
@Suite struct KeyTests {
  private func keys(_ reads: String...) -> String {
    var sequences = KeySequences()
    return reads.map { String(decoding: sequences.keys(in: $0.utf8), as: UTF8.self) }.joined(separator: "|")
  }

  /// More than one key may be read at once: none of them is lost.
  @Test func keysReadAtOnceAreAllSeen() {
    #expect(keys("xq") == "xq")
    #expect(keys("x\u{1B}Oqq") == "xq")
    #expect(keys("\u{1B}[Aq", "\u{1B}[1;5Cq") == "q|q")
  }

  @Test func sequencesAreNoKeys() {
    #expect(keys("\u{1B}Oq\u{1B}[q\u{1B}[1;2q\u{1B}q") == "")
    #expect(keys("\u{1B}[1;", "5q", "q") == "||q")
    #expect(keys("\u{1B}[12\u{1B}[Aq") == "q")
  }

  /// ESC by itself is a key that means nothing.
  @Test func aKeyAfterEscapeIsSeen() {
    #expect(keys("\u{1B}", "q") == "|q")
  }
}
