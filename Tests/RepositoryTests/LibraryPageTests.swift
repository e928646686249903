import Foundation
import Testing

/// The pages of the library: plain words, and names that there are.
@Suite struct LibraryPageTests {
  private static let pages = Repository.sources(in: "Sources/TarnKit/TarnKit.docc", suffixes: [".md"])

  @Test func theirSentencesAreShort() {
    #expect(Self.pages.count >= 3)
    for page in Self.pages {
      let counts = Prose.sentences(page.text).sorted()
      #expect(counts.last ?? 0 <= 40, "\(page.path): a sentence of \(counts.last ?? 0) words")
      #expect(counts.isEmpty || counts[counts.count / 2] <= 14, "\(page.path)")
    }
    let long = String(repeating: "word ", count: 41)
    #expect(Prose.sentences("# A\n\nShort one here. \(long)\n```swift\n\(long)\n```\n") == [3, 41])
  }

  /// What stands on the right side of the tables is there to be used.
  @Test func theTablesNameWhatThereIs() throws {
    let page = try #require(Self.pages.first { $0.path.hasSuffix("ComingFromURLSession.md") })
    let sources = Repository.sources(in: "Sources/TarnKit").map(\.text).joined()
    var names: Set<String> = []
    for line in page.lines where line.hasPrefix("| ") {
      guard let right = line.split(separator: "|").last(where: { $0 != " " }) else { continue }
      let codes = right.split(separator: "`", omittingEmptySubsequences: false).enumerated()
        .filter { $0.offset % 2 == 1 }.map(\.element)
      for code in codes where !code.hasPrefix("{") && !code.hasPrefix("/") && !code.contains("-") {
        let name = code.split(separator: ".").last ?? code
        names.insert(String(name.prefix { $0 != "(" }))
      }
    }
    #expect(names.count > 30)
    for name in names {
      let declarations = ["func", "var", "let", "case", "struct", "enum"].map { "\($0) \(name)" }
      let isThere =
        declarations.contains(where: sources.contains) || sources.contains(", \(name)\n")
        || sources.contains(", \(name),")
      #expect(isThere, "\(name)")
    }
  }
}
