import TarnCore
import Testing

@testable import TarnFeeds

@Suite struct ManifestTests {
  static let hash = String(repeating: "ab", count: 32)
  static let header =
    #"{"header":{"format":"mirror-manifest/1","version":7,"expires":"2026-12-21T00:00:00Z"}}"#

  /// The lines with their end line, as a publisher would write them.
  static func closed(_ lines: [String], files: Int, bytes: Int = 0) -> String {
    let body = lines.map { $0 + "\n" }.joined()
    let digest = Digest(.sha256, bytes: sha256(Array(body.utf8)))?.hex ?? ""
    return body + #"{"end":{"files":\#(files),"bytes":\#(bytes),"sha-256":"\#(digest)"}}"# + "\n"
  }

  static func one(_ file: String, manifest: String = "", files: Int = 1) -> Outcome {
    parse(#"{"manifest":{"format":"mirror-manifest/1"\#(manifest)},"files":[\#(file)]}"#)
  }

  @Test func knowsTheDigestOfTheStandard() {
    #expect(
      Digest(.sha256, bytes: sha256(Array("abc".utf8)))?.hex
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
  }

  @Test func readsLines() {
    let text = Self.closed(
      [
        Self.header, #"{"path":"a","size":3,"mtime":"2020-02-29T12:00:00.25+01:00"}"#,
        #"{"path":"d","type":"dir"}"#,
        #"{"path":"l","type":"symlink","target":"a"}"#, #"{"path":"gone","type":"deleted"}"#,
        #"{"path":"shown","pathBytes":"bGF0aW4xLekudHh0","size":2}"#,
      ], files: 5, bytes: 5)
    let outcome = parse(text)
    #expect(outcome.failure == nil)
    #expect(outcome.names == ["a", "latin1-\\xe9.txt"])
    #expect(outcome.codes == ["type-not-supported"])
    #expect(outcome.items.contains(.deleted(RelativePath(trusted: Array("gone".utf8)))))
    #expect(outcome.end?.version == 7)
    #expect(outcome.end?.expires == Timestamp(year: 2026, month: 12, day: 21))
    #expect(outcome.isComplete)
    #expect(
      outcome.entries[0].modified
        == Timestamp(year: 2020, month: 2, day: 29, hour: 11, nanosecond: 250_000_000))
    #expect(outcome.entries[1].sources.first?.url == "https://example.org/pub/latin1-%E9.txt")
  }

  /// Each entry is judged by itself: digests of one are not those of the next.
  @Test func refusesWhatCannotBeVerified() {
    let text = Self.closed(
      [
        Self.header, #"{"path":"a","hashes":{"blake3":"00"}}"#, #"{"path":"b"}"#,
        #"{"path":"c","hashes":{"blake3":"00","sha-256":"\#(Self.hash)"}}"#, #"{"path":"d","hashes":{}}"#,
        #"{"path":"e","size":3,"hashes":{"x":1},"pieces":{"length":3,"type":"sha-256","hashes":["\#(Self.hash)"]}}"#,
      ], files: 5, bytes: 3)
    let outcome = parse(text)
    #expect(outcome.refused.map(\.path) == [RelativePath(trusted: Array("a".utf8))])
    #expect(outcome.codes == ["digest-unsupported"])
    #expect(outcome.names == ["b", "c", "d", "e"])
    #expect(outcome.isComplete)
  }

  @Test func checksTheEndLine() {
    let good = Self.closed([Self.header, #"{"path":"a","size":3}"#], files: 1, bytes: 3)
    #expect(parse(good).isComplete)
    #expect(parse(good.replacing("\"size\":3", with: "\"size\":03")).failure?.code == "feed-malformed")
    #expect(parse(good.replacing("\"a\"", with: "\"b\"")).failure?.code == "feed-damaged")
    #expect(parse(good.replacing("\"files\":1", with: "\"files\":2")).failure?.code == "feed-damaged")
    #expect(parse(good.replacing("\"bytes\":3", with: "\"bytes\":4")).failure?.code == "feed-damaged")
    #expect(parse(good + "\n{}").failure?.code == "feed-malformed")
    #expect(parse(good + "\n").isComplete)
    #expect(parse(Self.header + "\n{\"path\":\"a\"}\n").failure?.code == "feed-truncated")
  }

  @Test func readsTheDocument() {
    let outcome = parse(
      #"""
      {"manifest":{"format":"mirror-manifest/1","complete":false,
        "mirrors":["https://b.example/x",{"url":"../c/","priority":5}],"defaults":{"size":1}},
       "files":[{"path":"a b","hashes":{"sha-256":"\#(Self.hash)","blake3":"zz","md5":"\#(Self.hash.prefix(32))"},
         "mediaType":"x/y","etag":["?"]},
        {"path":"u","size":5,"url":[{"url":"v?q=1","priority":9},"ftp://h/x","https://me:pw@h/x"],
         "pieces":{"length":3,"type":"sha-256","hashes":["\#(Self.hash)","\#(Self.hash)"]}}]}
      """#)
    #expect(outcome.failure == nil)
    #expect(outcome.end?.isComplete == false)
    #expect(outcome.entries[0].size == 1)
    #expect(outcome.entries[0].digests.map(\.algorithm) == [.sha256, .md5])
    #expect(
      outcome.entries[0].sources == [
        Source(url: "https://b.example/x/a%20b"), Source(url: "https://example.org/c/a%20b", priority: 5),
      ])
    #expect(outcome.entries[1].sources.map(\.priority) == [1, 5, 9])
    #expect(outcome.entries[1].sources.last?.url == "https://example.org/pub/v?q=1")
    #expect(outcome.entries[1].pieces?.digests.count == 2)
  }

  @Test(arguments: [
    (#"{"path":"../x"}"#, "path-dot-segment"), (#"{"path":"/x"}"#, "path-absolute"),
    (#"{"path":"a//b"}"#, "path-empty-segment"),
    (#"{"path":"a\u0000b"}"#, "path-nul"), (#"{"path":"a\nb"}"#, "path-control-character"),
    (#"{"size":1}"#, "path-empty"),
    (#"{"path":".tarn/x"}"#, "path-reserved"), (#"{"path":"a\u202Eb"}"#, "path-bidi-character"),
    (#"{"path":"x","pathBytes":"Li4vZXZpbA=="}"#, "path-dot-segment"),
    (#"{"path":"x","pathBytes":"!"}"#, "path-empty"),
    (#"{"path":"x","size":-1}"#, "size-malformed"), (#"{"path":"x","size":1.5}"#, "size-malformed"),
    (#"{"path":"x","size":9223372036854775808}"#, "size-malformed"),
    (#"{"path":"x","size":"1"}"#, "size-malformed"),
    (#"{"path":"x","hashes":{"sha-256":"abcd"}}"#, "digest-malformed"),
    (#"{"path":"x","hashes":{"blake3":"00"}}"#, "digest-unsupported"),
    (#"{"path":"x","size":3,"pieces":{"length":3,"type":"blake3","hashes":["00"]}}"#, "digest-unsupported"),
    (#"{"path":"x","size":3,"pieces":{"length":3,"type":"sha-256","hashes":["zz"]}}"#, "digest-malformed"),
    (#"{"path":"x","size":3,"pieces":{"length":0,"type":"sha-1","hashes":["00"]}}"#, "digest-malformed"),
    (#"{"path":"x","url":"https://me:pw@h/x"}"#, "no-usable-source"),
    (#"{"path":"x","url":"file:///etc/passwd"}"#, "no-usable-source"),
    (#"{"path":"x","url":"javascript:x"}"#, "no-usable-source"),
    (#"{"path":"x","type":"symlink"}"#, "type-not-supported"),
  ])
  func refuses(file: String, code: String) {
    let outcome = Self.one(file + #",{"path":"good"}"#)
    #expect(outcome.codes == [code])
    #expect(outcome.names == ["good"])
  }

  @Test(arguments: [
    (#"{"manifest":{"format":"mirror-manifest/2"},"files":[]}"#, "feed-version"),
    (#"{"manifest":{},"files":[]}"#, "feed-version"), (#"{"files":[],"manifest":{}}"#, "feed-malformed"),
    (#"{"manifest":{"format":"mirror-manifest/1","expires":"soon"},"files":[]}"#, "feed-malformed"),
    (#"{"manifest":{"format":"mirror-manifest/1"}}"#, "feed-malformed"),
    (#"{"manifest":{"format":"mirror-manifest/1"},"files":[]}{}"#, "feed-malformed"),
    (#"{"manifest":{"format":"mirror-manifest/1"},"files":[{"path":"a"},]}"#, "feed-malformed"),
    (#"{"manifest":{"format":"mirror-manifest/1"},"files":[{"path":"\ud800"}]}"#, "feed-malformed"),
    (#"{"manifest":{"format":"mirror-manifest/1"},"files":[{"path":5}]}"#, "feed-malformed"),
  ])
  func fails(text: String, code: String) {
    #expect(parse(text).failure?.code == code)
  }

  @Test func limitsDepthAndPointsAtErrors() {
    let deep = String(repeating: "[", count: 40) + String(repeating: "]", count: 40)
    #expect(Self.one(#"{"path":"x","y":\#(deep)}"#).failure?.code == "feed-malformed")
    let failure = parse("{\"manifest\":{\"format\":\"mirror-manifest/1\"},\n \"files\":[{]}").failure
    #expect(failure?.line == 2)
    #expect(failure?.column == 12)
  }

  @Test func namesThePageThatIsMissing() {
    let outcome = parse(#"{"manifest":{"format":"mirror-manifest/1"},"files":[{"path":"a"}],"next":"p2"}"#)
    #expect(outcome.end?.isComplete == false)
    #expect(outcome.end?.incompleteReason.contains("paging") == true)
  }

  @Test func keepsPiecesOnlyWhenTheyFit() {
    for (size, count) in [(5, 2), (6, 2), (7, 0), (3, 0), (0, 0)] {
      let outcome = Self.one(
        #"{"path":"x","size":\#(size),"pieces":{"length":3,"type":"sha-256","hashes":["\#(Self.hash)","\#(Self.hash)"]}}"#
      )
      #expect((outcome.entries.first?.pieces?.digests.count ?? 0) == count, "size \(size)")
      // Nothing else would verify the file.
      #expect(outcome.codes == (count == 0 ? ["digest-malformed"] : []), "size \(size)")
    }
  }

  @Test func neverTakesACutManifestForWhole() {
    let lines = Self.closed(
      [Self.header, #"{"path":"a","size":3}"#, #"{"path":"ü","size":1}"#], files: 2, bytes: 4)
    #expect(cutsThatPassForWhole(lines) == [])
    #expect(
      cutsThatPassForWhole(
        #"{"manifest":{"format":"mirror-manifest/1"},"files":[{"path":"a"},{"path":"b"}]}"#) == [])
  }

  @Test func keepsBytesThatAreNotUTF8() {
    let text =
      Array(#"{"manifest":{"format":"mirror-manifest/1"},"files":[{"path":"x"#.utf8) + [0xE9]
      + Array(#"\ud83d\ude00"}]}"#.utf8)
    #expect(parse(text).names == ["x\\xe9😀"])
  }
}
