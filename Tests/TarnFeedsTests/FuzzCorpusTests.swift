import TarnCore
import Testing

@testable import TarnFeeds

/// The seeds of the fuzzer, and every input that it once broke a parser with: Tests/Fixtures/corpus/FORMAT.
@Suite struct FuzzCorpusTests {
  static let directory = Corpus.root + "/Tests/Fixtures/corpus"
  static let formats = FeedParser.formats + FeedParser.formats(of: .links)

  /// Those of settings are read in TarnConfigTests.
  @Test(arguments: Corpus.names(inDirectory: directory).filter { $0 != "settings" })
  func readsEveryInputAlikeInAnyBlocks(folder: String) {
    let format = Self.formats.first { $0.slug == folder }
    #expect(format != nil || folder == "document", "no format is called \(folder)")
    let names = Corpus.names(inDirectory: "\(Self.directory)/\(folder)")
    #expect(!names.isEmpty)
    for name in names {
      let bytes = Corpus.bytes(ofFile: "\(Self.directory)/\(folder)/\(name)")
      // As the fuzzer does, and as a feed that must be recognised first.
      for format in [format, nil] {
        let document = FeedDocument(url: "https://example.org/pub/list")
        let whole = Outcome.of(bytes, as: format, document, hashing: TestHashing())
        #expect(whole.faults == [], "\(name)")
        for step in [1, 2, 3, 7, 4096] {
          let stepped = Outcome.of(bytes, as: format, document, hashing: TestHashing(), step: step)
          #expect(stepped == whole, "\(name) in blocks of \(step)")
        }
      }
    }
  }

  /// So that a format without a corpus is seen; it is fuzzed from nothing.
  @Test func tellsFormatsWithoutSeeds() {
    let known = Corpus.names(inDirectory: Self.directory)
    let missing = Self.formats.map(\.slug).filter { !known.contains($0) }
    if !missing.isEmpty { print("formats without seeds for the fuzzer: \(missing.joined(separator: ", "))") }
  }
}
