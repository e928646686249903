import TarnCore
import Testing

@Suite struct SpellingTests {
  @Test func distanceCountsSwaps() {
    #expect(Spelling.distance("sync", "sync") == 0)
    #expect(Spelling.distance("snyc", "sync") == 1)
    #expect(Spelling.distance("", "abc") == 3)
    #expect(Spelling.distance("kitten", "sitting") == 3)
  }

  @Test(
    arguments: [
      ("kepe", "keep"), ("KEEP", "keep"), ("max_age", "max-age"), ("max", "max-age"), ("k", nil),
      ("ke", "keep"), ("zebra", nil),
      ("", nil), (String(repeating: "keep", count: 20), nil),
    ] as [(String, String?)]) func nearest(_ word: String, _ name: String?)
  {
    #expect(Spelling.nearest(word, ["keep", "max-age", "folder"]) == name)
  }
}
