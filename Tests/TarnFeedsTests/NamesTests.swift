import Glibc
import TarnCore
import TestSupport
import Testing

@testable import TarnFeeds

/// Every hostile name in every format that can carry it: `Tests/Tools/names_grid.py` writes the documents and
/// judges, by a rule of its own, what comes out of them.
@Suite(.enabled(if: system("python3 -c 0 2>/dev/null") == 0, "no python3"))
struct NamesTests {
  @Test func noHostileNameComesThrough() throws {
    let script = "names_grid.py"
    let share = ["--share", Sanitizer.takesShare ? "31" : "1"]
    let documents = try #require(Corpus.output(of: script, ["--documents"] + share), "\(script) failed")
    var result = ""
    var rest = documents[...]
    while let end = rest.firstIndex(of: 0x0A) {
      let fields = rest[..<end].split(separator: 0x09).map { String(decoding: $0, as: UTF8.self) }
      try #require(fields.count == 4)
      let length = try #require(Int(fields[3]))
      let document = rest[(end + 1)...].prefix(length)
      rest = rest[document.endIndex...]
      result += "case\t\(fields[0])\t\(fields[1])\n" + Self.found(in: Array(document), url: fields[2])
    }
    let path = "/tmp/tarn-names.\(getpid())"
    defer { unlink(path) }
    let file = try #require(fopen(path, "w"))
    fputs(result, file)
    fclose(file)
    let verdict = system(
      "python3 -B '\(Corpus.root)/Tests/Tools/\(script)' --judge '\(path)' \(share.joined(separator: " "))")
    #expect(verdict == 0, "violations, see the table")
  }

  private static func found(in document: [UInt8], url: String) -> String {
    let outcome = parse(document, url: url)
    var text = outcome.items.map(line).joined()
    if let failure = outcome.failure {
      text += "failed\t\(failure.code)\n"
    } else {
      text += "ended\t\n"
    }
    return text
  }

  /// `kind`, name, URL or code, what is printed of it, and the reason, by tabs.
  private static func line(_ item: FeedItem) -> String {
    let fields: [String] =
      switch item {
      case .entry(let entry):
        ["entry", hex(entry.path.bytes), entry.sources.first?.url ?? "", hex(entry.path.printable.utf8), ""]
      case .refused(let refusal):
        [
          "refused", hex(refusal.name), refusal.code, hex(Printable.escape(refusal.name).utf8),
          hex(refusal.reason.utf8),
        ]
      case .directory(let url, let path):
        ["directory", hex(path.bytes), url, hex(path.printable.utf8), ""]
      case .deleted(let path): ["deleted", hex(path.bytes), "", "", ""]
      case .enclosure: ["enclosure", "", "", "", ""]
      }
    return fields.joined(separator: "\t") + "\n"
  }

  private static func hex(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }
}
