import Testing

@testable import TarnConfig

@Suite struct DocumentTests {
  private func fault(_ bytes: [UInt8]) -> TOMLDocument.Fault? {
    do throws(TOMLDocument.Fault) {
      _ = try TOMLDocument.parse(bytes)
      return nil
    } catch {
      return error
    }
  }

  private func node(_ value: SettingNode.Value, _ line: Int, _ column: Int) -> SettingNode {
    SettingNode(value: value, position: SettingPosition(line: line, column: column))
  }

  private func member(_ key: String, _ line: Int, _ column: Int, _ node: SettingNode) -> SettingNode.Member {
    SettingNode.Member(key: key, keyPosition: SettingPosition(line: line, column: column), node: node)
  }

  @Test func everyNodeHasItsPlaceInTheOrderOfTheFile() throws {
    let text = """
      [z]
      b = "x\\u0000é"
      a = -7
      'é' = 1.5
      \tq.r = true
      list = [
        1, {d = 2026-11-21}]
      [[y]]
      t = 06:00:00
      """
    let root = try TOMLDocument.parse(Array(text.utf8))
    #expect(
      root.value
        == .table([
          member(
            "z", 1, 2,
            node(
              .table([
                member("b", 2, 1, node(.text("x\0é"), 2, 5)), member("a", 3, 1, node(.integer(-7), 3, 5)),
                member("é", 4, 1, node(.decimal(1.5), 4, 7)),
                member("q", 5, 2, node(.table([member("r", 5, 4, node(.boolean(true), 5, 8))]), 5, 2)),
                member(
                  "list", 6, 1,
                  node(
                    .array([
                      node(.integer(1), 7, 3), node(.table([member("d", 7, 7, node(.date, 7, 11))]), 7, 6),
                    ]), 6, 8)),
              ]), 1, 1)),
          member(
            "y", 8, 3,
            node(.array([node(.table([member("t", 9, 1, node(.date, 9, 5))]), 8, 1)]), 8, 1)),
        ]))
  }

  @Test func nothingIsATable() throws {
    #expect(try TOMLDocument.parse([]).value == .table([]))
    #expect(try TOMLDocument.parse(Array("\u{FEFF}# only this".utf8)).value == .table([]))
  }

  @Test(
    arguments: [
      ("a = yes", 1, 5), ("a = 1\r\nb = 10MiB", 2, 7), ("a = 1\na = 2", 2, 5), ("[a", 1, 3),
      ("a = \"x", 1, 7),
      ("a = 9223372036854775808", 1, 24), ("a = 0xFFFFFFFFFFFFFFFFF", 1, 24), ("\u{FEFF}a = yes", 1, 5),
      ("a = \"\u{7}\"", 1, 6), ("ü = 1", 1, 1), ("a.b = 1\na = 2", 2, 5), ("a = 1e999x", 1, 10), ("=", 1, 1),
    ] as [(String, Int, Int)]) func faultsHaveAPlace(_ text: String, _ line: Int, _ column: Int)
  {
    let fault = fault(Array(text.utf8))
    #expect(fault?.position == SettingPosition(line: line, column: column), "\(String(describing: fault))")
    #expect(fault?.message.isEmpty == false)
    #expect(fault?.message.contains("Error while parsing") == false)
  }

  /// toml++ 3.3 asserts what these break, and an assertion would end the process. It tells no place; the line is found without it.
  @Test(
    arguments: [
      ("[=\"x", 1), ("a = 1\n[ .x]", 2), ("[[é]]", 1), ("[\n]", 1), (" \t[#", 1), ("[[ =]]", 1),
      ("[\u{1}]", 1),
      ("['é']\n[,", 2), ("\u{FEFF}[=", 1), ("[[[", 1), ("a = [[}n", 1), ("é = 1\na = [}", 1),
      ("b = 1\r\na = [}]\nmore = 1", 2),
    ] as [(String, Int)])
  func whatBreaksPromisesHasItsLine(_ text: String, _ line: Int) {
    let fault = fault(Array(text.utf8))
    #expect(fault?.position.line == line, "\(String(describing: fault))")
    #expect(fault?.message.isEmpty == false)
  }

  @Test func bytesThatAreNoTextAreAFault() {
    #expect(fault(Array("a = \"".utf8) + [0xFF, 0x22])?.position.line == 1)
    #expect(fault([0xC3])?.position == SettingPosition(line: 1, column: 1))
    #expect(fault(Array("a = \"".utf8) + [0, 0x22]) != nil)
    #expect(fault([0]) != nil)
  }

  /// toml++ takes a tree down by recursion: what is as deep as a file is long would end the process.
  @Test func depthIsBounded() {
    func deep(_ unit: String, _ count: Int, _ end: String = "") -> [UInt8] {
      Array((String(repeating: unit, count: count) + end).utf8)
    }
    #expect(fault(deep("a.", 400_000, "a = 1"))?.message == "a key of too many parts")
    #expect(fault(Array("[".utf8) + deep("a.", 400_000, "a]"))?.message == "a key of too many parts")
    #expect(fault(Array("x = 'it''s'\n".utf8) + deep("a.", 16, "a = 1"))?.position.line == 2)
    #expect(fault(Array("x = [".utf8) + deep("[", 900_000))?.message.contains("depth") == true)
    #expect(fault(Array("x = ".utf8) + deep("{a=", 300_000))?.message.contains("depth") == true)
    #expect(fault(deep("a.", 15, "a = 1")) == nil)
    #expect(fault(Array("x = [".utf8) + deep("1.5,", 200, "]")) == nil)
  }

  @Test func dotsInTextsAndCommentsAreNoKeys() {
    let dots = String(repeating: ".", count: 100)
    for text in [
      "a = \"\(dots)\"", "a = '\(dots)'", "# \(dots)", "a = \"\"\"\n\(dots)\n\\\"\"\"\(dots)\"\"\"\"\"",
      "a = '''\(dots)''\(dots)''''", "a = \"\\\"\(dots)\\\\\"  # \(dots)",
    ] {
      #expect(fault(Array(text.utf8)) == nil, "\(text)")
    }
  }

  @Test func aFileIsAtMostOneMebibyte() {
    let blank = [UInt8](repeating: 0x20, count: TOMLDocument.longest)
    #expect(fault(blank) == nil)
    #expect(fault(blank + [0x20])?.message.contains("1 MiB") == true)
  }
}
