import Glibc
import TarnCore
import Testing

@testable import TarnFeeds

/// The captured lists of files, compared with what an independent reader finds (Tests/Tools/list_expect.py).
@Suite(.enabled(if: Corpus.directory != nil, "no captured feeds: set TARN_FEEDS"))
struct ListCorpusTests {
  /// Samples that differ, and why Tarn is right or cannot know better.
  static let differing: [String: String] = [:]

  /// Samples that are no list that Tarn reads, and why.
  static let refused: [(why: String, names: [String])] = [
    (
      "columns of cfv (.crc, .csv), a CRC-32 and sizes with thousands parted: not supported",
      [
        "cfv__bigfile.crc", "cfv__test.crc", "cfv__testcrlf.crc", "cfv__testnodims.crc",
        "cfv__testnosize.crc",
        "cfv__testnosizenodimsnodesc.crc", "cfv__test.csv", "cfv__test.csv2", "cfv__testcase.csv",
        "cfv__testcrcrlf.csv", "cfv__testcrcrlf.csv2", "cfv__testcrcrlf.csv4", "cfv__testcrlf.csv",
        "cfv__testcrlf.csv2", "cfv__testfix.csv4", "cfv__teststrip-none.csv4", "cfv__teststrip0.csv4",
      ]
    ),
    (
      "sums of 16 or 32 bits in decimal: no digests",
      [
        "coreutils__cksum__bsd_multiple_files.expected", "coreutils__cksum__crc32b_multiple_files.expected",
        "coreutils__cksum__crc_multiple_files.expected", "coreutils__cksum__sysv_multiple_files.expected",
        "coreutils__cksum__untagged__crc32b_multiple_files.expected",
        "coreutils__cksum__untagged__crc_multiple_files.expected", "gen-coreutils-9.1-cksum-crc.txt",
      ]
    ),
    ("one digest in binary, without a name", ["coreutils__cksum__raw__sha256_single_file.expected"]),
    ("names parted by NUL: the lines of it cannot be told", ["gen-coreutils-9.1-sha256sum-nul.bin"]),
    ("magnet links without a URL", ["gen-rhash-magnet.txt"]),
    (
      "hash sets of forensic tools: no list of files to fetch",
      ["hashdeep__ilookv3.hsh", "hashdeep__ilookv4.hsh", "hashdeep__nsrlfile.txt"]
    ),
    ("a name before something that is no digest", ["pooch__registry-invalid.txt"]),
    ("comments only", ["librepo__mirrorlist_02", "librepo__nourls"]),
    ("XML that is cut off", ["librepo__metalinks__metalink_really_bad_02"]),
    (
      "what a fuzzer made: no XML",
      [
        "wget2__0213f1637feb064d6b652e2bbf3a609800498ea0", "wget2__03606b9b59fae29f1b9e589109f2336907eaabb8",
        "wget2__0b4424c48afddd9ee41341268cb523f27b7af9f3", "wget2__18a4be830b1f88dc065f33c32c3f8abb7f4399c3",
        "wget2__1be2081897bb3a9012fcd11596994ea407a5bc69", "wget2__1c588c230f1c8691349a26fbed4c81da131cdfc6",
        "wget2__1d8b30c9320d1cb9dacf2ccd782cb70f84662d34",
      ]
    ),
  ]

  @Test(arguments: [
    ("metalink", "metalink"), ("mirrorlist", "urls"), ("checksums", "checksums"), ("urllist", "urls"),
  ])
  func readsWhatAnotherReaderDoes(folder: String, kind: String) throws {
    let directory = try #require(Corpus.directory)
    let output = try #require(Corpus.output(of: "list_expect.py", ["\(directory)/\(folder)", kind]))
    var wanted: [String: [String]] = [:]
    var name = ""
    for line in String(decoding: output, as: UTF8.self).split(separator: "\n") {
      let words = line.split(separator: " ")
      if words.first == "sample", words.count > 2 {
        name = String(words[1])
        wanted[name] = [words[2...].joined(separator: " ")]
      } else {
        wanted[name]?.append(String(line))
      }
    }
    var counts = (entries: 0, refusedEntries: 0, differences: 0)
    var failures: [String] = []
    let names = Corpus.names(in: folder)
    for name in names {
      let bytes = Self.withPorts(Corpus.bytes("\(folder)/\(name)"))
      let outcome = parse(bytes, url: "https://example.org/pub/\(name)")
      let found = Self.lines(of: outcome)
      counts.entries += outcome.failure == nil ? outcome.entries.count : 0
      counts.refusedEntries += outcome.failure == nil ? outcome.refused.count : 0
      if outcome.failure != nil { failures.append(name) }
      if found != wanted[name] {
        counts.differences += 1
        #expect(Self.differing[name] != nil, "\(name)\n\(found)\n\(wanted[name] ?? [])")
      } else {
        #expect(Self.differing[name] == nil, "\(name) no longer differs")
      }
      for step in [1, 2, 3, 7, 4096] {
        let stepped = parse(bytes, url: "https://example.org/pub/\(name)", step: step)
        #expect(stepped == outcome, "\(name) in blocks of \(step)")
      }
      #expect(outcome.faults == [], "\(name)")
    }
    #expect(failures == names.filter(Set(Self.refused.flatMap(\.names)).contains))
    print(
      "\(folder): \(names.count) files, \(counts.entries) entries, \(counts.refusedEntries) entries refused, "
        + "\(failures.count) files refused, \(counts.differences) differences")
    #expect(names.count == wanted.count)
  }

  /// Some samples are templates: the port is filled in by the tests that they are from.
  private static func withPorts(_ bytes: [UInt8]) -> [UInt8] {
    let mark = Array("{PORT_PLACEHOLDER}".utf8)
    var result: [UInt8] = []
    var rest = bytes[...]
    while let byte = rest.first {
      let isMark = byte == mark[0] && rest.starts(with: mark)
      result += isMark ? Array("8080".utf8) : [byte]
      rest = rest.dropFirst(isMark ? mark.count : 1)
    }
    return result
  }

  /// An outcome as the other reader prints it.
  private static func lines(of outcome: Outcome) -> [String] {
    guard let end = outcome.end else { return ["fails"] }
    let format = end.format.split(separator: " ").joined(separator: "-")
    let entries = outcome.entries.map { entry in
      let digests = entry.digests.map {
        "\($0.algorithm.name.split(separator: "-").joined()):\($0.hex)"
      }
      let sources = entry.sources.map { "\($0.priority)=\($0.url)" }
      let size = entry.size.map { String($0) } ?? "-"
      let pieces = entry.pieces.map { "\($0.digests.count)*\($0.length)" } ?? "-"
      let shown = digests.isEmpty ? "-" : digests.joined(separator: ",")
      return "\(hex(entry.path.bytes)) \(size) \(shown) \(pieces) \(sources.joined(separator: " "))"
    }
    return ["\(format) \(end.isComplete ? 1 : 0) \(outcome.refused.count)"] + entries.sorted()
  }

  private static func hex(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef")
    return String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
  }
}
