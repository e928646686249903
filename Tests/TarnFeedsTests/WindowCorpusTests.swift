import Glibc
import TarnCore
import Testing

@testable import TarnFeeds

/// What the script of another hand (Tests/Tools/window_items.py) reads in a directory of captures.
private struct SecondOpinion {
  struct File: Equatable {
    var position: Int
    var guid: String
    var title: String
    var url: String
    var date: String
  }

  /// Nothing when the script does not read the document as strictly as it should be.
  var files: [File]?
  var isOther = false

  static func of(_ folder: String) -> [String: SecondOpinion] {
    let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    let command = "python3 '\(root)/Tests/Tools/window_items.py' '\(Corpus.directory ?? "")/\(folder)'"
    var found: [String: SecondOpinion] = [:]
    var name = ""
    for line in output(command).split(separator: "\n") {
      let parts = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      if parts.count == 4, parts[0] == "F" {
        name = parts[1]
        found[name] = SecondOpinion(files: parts[2] == "read" ? [] : nil, isOther: parts[2] == "other")
      } else if parts.count == 6, let position = Int(parts[1]) {
        found[name]?.files?.append(
          File(position: position, guid: parts[2], title: parts[3], url: parts[4], date: parts[5]))
      }
    }
    return found
  }

  private static func output(_ command: String) -> String {
    guard let pipe = popen(command, "r") else { return "" }
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = fread(&block, 1, block.count, pipe)
      if count == 0 { break }
      bytes += block[..<count]
    }
    return pclose(pipe) == 0 ? String(decoding: bytes, as: UTF8.self) : ""
  }
}

extension SecondOpinion.File {
  init(_ enclosure: Enclosure) {
    func hex(_ bytes: [UInt8]?) -> String {
      guard let bytes, !bytes.isEmpty else { return "-" }
      return bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
    position = enclosure.position
    guid = hex(enclosure.guid)
    title = hex(enclosure.title)
    url = enclosure.sources[0].url
    date = enclosure.date.map { String($0.seconds) } ?? "-"
  }
}

private let hasPython = system("python3 -c 0 2>/dev/null") == 0

@Suite(
  .enabled(if: Corpus.directory != nil && hasPython, "no captured feeds (set TARN_FEEDS), or no python3"))
struct WindowCorpusTests {
  /// Documents that no strict parser reads: how many files they name, counted by hand, or the code that they
  /// are refused with.
  private static let notStrict: [String: String] = [
    // Cut or broken before the first item has ended.
    "rss/feed-rs__rss_2.0_invalid_1.xml": "feed-truncated",
    "rss/feedparser__aaa_illformed.xml": "feed-malformed",
    "rss/feedparser__rss_incomplete_cdata.xml": "feed-truncated",
    // An encoding that nobody knows.
    "rss/v2__invalid-prolog.xml": "0",
    // No feed: a comment alone, a web page, an unknown root.
    "rss/feedparser__rss_empty_document.xml": "feed-not-recognised",
    "rss/rss-parser__unrecognized.rss": "feed-not-recognised",
    // Without a word on their encoding.
    "rss/feedparser__eucjp.xml": "0", "rss/feedparser__euckr.xml": "0", "rss/feedparser__gb2312.xml": "0",
    "rss/feedparser__koi8r.xml": "0", "rss/feedparser__shiftjis.xml": "0", "rss/feedparser__tis620.xml": "0",
    "rss/feedparser__windows1255.xml": "0",
    // Prefixes that nobody declares.
    "rss/feedparser__undeclared_namespace.xml": "0",
    "rss/gofeed__feed_image_-_rss_channel_media.xml": "0",
    "rss/gofeed__feed_item_image_-_rss_channel_item_media.xml": "1",
    "rss/gofeed__itunes_item_summary_cdata_multi.xml": "0",
    "podcast/FeedKit__AtomMedia.xml": "3",
    // Blank lines before the XML declaration, raw ampersands, text behind the root.
    "rss/node-feedparser__saxerror.xml": "0", "rss/rss-parser__uolNoticias.rss": "0",
    "podcast/feedjira__ITunesWithSingleQuotedAttributes.xml": "3",
    "podcast/feedjira__ITunesWithSpacesInAttributes.xml": "3", "podcast/feedjira__itunes.xml": "3",
    "podcast/feedjira__youtube_atom.xml": "15", "podcast/rss-parser__itunes-missing-image.rss": "131",
    "atom/feed-rs__atom_example_4.xml": "0", "atom/feedjira__AtomFeedWithSpacesAroundEquals.xml": "0",
    "atom/feedjira__InvalidDateFormat.xml": "0", "atom/feedjira__youtube_atom.xml": "15",
    // JSON that is cut, and JSON without a version.
    "jsonfeed/RSParser__allthis-partial.json": "feed-not-recognised",
    "jsonfeed/gofeed__invalid.json": "feed-not-recognised",
  ]

  @Test(arguments: ["rss", "podcast", "atom", "jsonfeed"])
  func agreesWithAnotherReader(folder: String) {
    let opinions = SecondOpinion.of(folder)
    var counts = (files: 0, entries: 0, refused: 0, differences: 0)
    for name in Corpus.names(in: folder) {
      let bytes = Corpus.bytes("\(folder)/\(name)")
      let outcome = parse(bytes, url: "https://example.org/")
      let key = "\(folder)/\(name)"
      #expect(!outcome.isComplete, "\(key)")
      #expect(parse(bytes, url: "https://example.org/", step: 7) == outcome, "\(key) in blocks")
      counts.files += 1
      counts.entries += outcome.enclosures.count
      counts.refused += outcome.refused.count
      guard let opinion = opinions[name] else {
        Issue.record("\(key) was not read by the script")
        continue
      }
      let result = outcome.failure?.code ?? "\(outcome.enclosures.count)"
      if opinion.isOther {
        #expect(outcome.failure != nil, "\(key)")
      } else if let expected = opinion.files {
        guard expected != outcome.enclosures.map(SecondOpinion.File.init) || outcome.failure != nil else {
          continue
        }
        counts.differences += 1
        Issue.record("\(key): \(Self.shown(expected, outcome))")
      } else {
        #expect(Self.notStrict[key] == result, "\(key): \(outcome.end?.incompleteReason ?? "refused")")
      }
    }
    print(
      "\(folder): \(counts.files) files, \(counts.entries) entries, \(counts.refused) refused entries, "
        + "\(counts.differences) differences")
    #expect(counts.files > 0)
  }

  private static func shown(_ expected: [SecondOpinion.File], _ outcome: Outcome) -> String {
    let found = outcome.enclosures.map(SecondOpinion.File.init)
    let differing = zip(expected, found).first { $0 != $1 }.map { "\($0) and not \($1)" } ?? ""
    return "\(outcome.failure?.code ?? "") \(found.count) for \(expected.count): \(differing)"
  }
}
