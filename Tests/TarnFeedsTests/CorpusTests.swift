import Glibc
import TarnCore
import Testing

@testable import TarnFeeds

@Suite(.enabled(if: Corpus.directory != nil, "no captured feeds: set TARN_FEEDS"))
struct CorpusTests {
  @Test(arguments: ["native", "checksums", "metalink", "urllist", "autoindex"])
  func readsOrRefusesEveryCapture(folder: String) {
    var counts = (files: 0, entries: 0, refused: 0, failures: [String: Int]())
    for name in Corpus.names(in: folder) {
      let bytes = Corpus.bytes("\(folder)/\(name)")
      let outcome = parse(bytes, url: "https://example.org/")
      #expect((outcome.end == nil) != (outcome.failure == nil), "\(name)")
      #expect(outcome.entries.allSatisfy { !$0.sources.isEmpty }, "\(name)")
      #expect(parse(bytes, url: "https://example.org/", step: 7) == outcome, "\(name) in blocks")
      counts.files += 1
      counts.entries += outcome.entries.count
      counts.refused += outcome.refused.count
      if let failure = outcome.failure { counts.failures[failure.code, default: 0] += 1 }
      if getenv("TARN_FEEDS_VERBOSE") != nil {
        let result = outcome.failure.map { "\($0.code): \($0.message)" } ?? outcome.end?.format ?? ""
        print("  \(name): \(outcome.items.count) items, complete \(outcome.isComplete), \(result)")
      }
    }
    let failures = counts.failures.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(
      separator: ", ")
    print(
      "\(folder): \(counts.files) files, \(counts.entries) entries, \(counts.refused) refused, failures: \(failures)"
    )
    #expect(counts.files > 0)
  }

  @Test func readsTheSamplesOfTheManifest() {
    let lines = parse(Corpus.bytes("native/sample.ndjson"))
    #expect(lines.isComplete)
    #expect(lines.entries.count == 3)
    #expect(lines.end?.version == 42)
    #expect(parse(Corpus.bytes("native/sample.json")).entries.map(\.path) == lines.entries.map(\.path))
    #expect(parse(Corpus.bytes("native/sample-truncated.ndjson")).failure?.code == "feed-truncated")
  }

  /// The page and the JSON list show the same directory.
  @Test func readsTheSameFromBothIndexesOfNginx() {
    let page = parse(Corpus.bytes("autoindex/nginx-1.22-html.html"), url: "https://example.org/")
    let list = parse(Corpus.bytes("autoindex/nginx-1.22-json.json"), url: "https://example.org/")
    #expect(page.isComplete)
    #expect(list.isComplete)
    #expect(page.entries.count > 50)
    let sizes = Dictionary(uniqueKeysWithValues: list.entries.map { ($0.path, $0.size) })
    // The page shows a dangling link as a file; the list calls it "other".
    let others = Set(list.refused.map(\.name))
    let files = page.entries.filter { !others.contains($0.path.bytes) }
    for entry in files { #expect(sizes[entry.path] == entry.size, "\(entry.path.printable)") }
    #expect(files.count == list.entries.count)
  }
}
