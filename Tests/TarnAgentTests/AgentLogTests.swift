import Logging
import TarnRuntime
import TestSupport
import Testing

@testable import TarnAgent

/// The agent's messages, in each of their forms.
@Suite struct AgentLogTests {
  private static let hostile = "one\ntwo \u{1B}[31m\r\u{202E}\\"

  /// All lines that are written when `body` tells something.
  private func written(
    _ form: LogOutput.Form, level: Logger.Level = .info, journal: String? = nil, _ body: (Logger) -> Void
  ) -> String {
    let bytes = Locked<[UInt8]>([])
    let output = LogOutput(
      form, clock: ManualClock(now: 1_000_000_000), journal: journal ?? "/nonexistent/journal"
    ) { line in
      bytes.withLock { $0 += line }
    }
    body(Logger(output, level: level))
    return String(decoding: bytes.withLock { $0 }, as: UTF8.self)
  }

  private func isPlain(_ text: String) -> Bool {
    text.unicodeScalars.allSatisfy {
      ($0.value >= 0x20 && $0.value != 0x7F && $0.value != 0x202E) || $0 == "\n"
    }
  }

  @Test(arguments: [
    (Logger.Level.error, "<3>"), (.warning, "<4>"), (.notice, "<5>"), (.info, "<6>"), (.debug, "<7>"),
  ])
  func aLineForSystemdHasItsPriority(level: Logger.Level, prefix: String) {
    #expect(written(.prefixed, level: .debug) { $0.tell(level, "text") } == "\(prefix)text\n")
  }

  @Test func whatIsBelowTheLevelIsNotTold() {
    let text = written(.prefixed) { log in
      log.tell(.debug, "no")
      log.tell(.info, "yes")
    }
    #expect(text == "<6>yes\n")
  }

  @Test func aLineHasItsTimeAndItsMirror() {
    let text = written(.text) { log in
      log.tell(.info, "begins", .of(mirror: "iso"))
      log.tell(.warning, "hm")
    }
    #expect(text == "1970-01-01T00:00:01Z iso: begins\n1970-01-01T00:00:01Z warning: hm\n")
  }

  /// I14: nothing from outside reaches a terminal or begins a line of its own.
  @Test(arguments: [LogOutput.Form.text, .prefixed, .json, .journal])
  func controlCharactersAreEscaped(form: LogOutput.Form) {
    let text = written(form) { log in
      log.tell(.error, Self.hostile, .of(mirror: Self.hostile, code: Self.hostile, path: Self.hostile))
    }
    #expect(text.split(separator: "\n").count == 1 && text.hasSuffix("\n") && isPlain(text), "\(text)")
    #expect(text.contains("one") && text.contains("two"))
  }

  @Test func aDocumentHasItsFields() {
    let text = written(.json) { log in
      log.tell(.notice, "say \"x\" \\", .of(mirror: "iso", code: "c", path: "a/b"))
    }
    #expect(
      text == #"{"code":"c","level":"notice","message":"say \"x\" \\","mirror":"iso","path":"a/b","#
        + #""schema":"tarn-log/1","time":"1970-01-01T00:00:01Z"}"# + "\n")
  }

  @Test func theJournalGetsFields() throws {
    let directory = ScratchDirectory()
    let peer = DatagramPeer(directory.file("journal"))
    let text = written(.journal, journal: directory.file("journal")) { log in
      log.tell(.warning, "late", .of(mirror: "iso", code: "host-resting", path: "a\nb"))
      log.tell(.info, "plain")
    }
    #expect(text == "", "nothing on standard error")
    #expect(
      peer.next()
        == "MESSAGE=iso: late\nPRIORITY=4\nSYSLOG_IDENTIFIER=tarn\nMIRROR=iso\nCODE=host-resting\nPATH=a\\nb\n"
    )
    #expect(peer.next() == "MESSAGE=plain\nPRIORITY=6\nSYSLOG_IDENTIFIER=tarn\n")
  }

  /// Its length stands in front, so that no line of it is a field; on standard error it is one line.
  @Test func aMessageOfSeveralLinesIsOneField() throws {
    let directory = ScratchDirectory()
    let peer = DatagramPeer(directory.file("journal"))
    let message = "late\nPRIORITY=0\n\u{1B}[31m"
    _ = written(.journal, journal: directory.file("journal")) { $0.tell(.error, message, .of(mirror: "iso")) }
    let value = "iso: late\nPRIORITY=0\n\\x1b[31m"
    let length = "\(UnicodeScalar(UInt8(value.utf8.count)))" + String(repeating: "\0", count: 7)
    #expect(
      peer.next() == "MESSAGE\n\(length)\(value)\nPRIORITY=3\nSYSLOG_IDENTIFIER=tarn\nMIRROR=iso\n")
    #expect(written(.journal) { $0.tell(.error, "one\ntwo") } == "<3>one\\ntwo\n")
  }

  /// What is too long for a datagram comes as a file.
  @Test func aLongMessageComesAsAFile() {
    let directory = ScratchDirectory()
    let peer = DatagramPeer(directory.file("journal"))
    let long = String(repeating: "x", count: 1 << 20)
    let text = written(.journal, journal: directory.file("journal")) {
      $0.tell(.error, long, .of(mirror: "iso"))
    }
    #expect(
      text == ""
        && peer.nextFile() == "MESSAGE=iso: \(long)\nPRIORITY=3\nSYSLOG_IDENTIFIER=tarn\nMIRROR=iso\n")
    #expect(peer.isSilent)
  }

  @Test func aJournalThatIsAwayLosesNothing() {
    #expect(written(.journal) { $0.tell(.error, "text", .of(mirror: "m")) } == "<3>m: text\n")
    let long = String(repeating: "x", count: 1 << 20)
    #expect(written(.journal) { $0.tell(.error, long) } == "<3>\(long)\n")
  }

  @Test func theFormIsWhereStandardErrorLeads() {
    for stream in ["", "1", "x:y", "0:0", "1:2:3", "-1:5", "18446744073709551616:1"] {
      #expect(LogOutput.form(environment: ["JOURNAL_STREAM": stream]) == .text, "\(stream)")
    }
    #expect(LogOutput.form(environment: [:]) == .text)
  }
}
