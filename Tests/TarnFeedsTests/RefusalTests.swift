import TarnCore
import Testing

@testable import TarnFeeds

/// What a refused name stands for: nothing there is deleted, and no other name is touched by it.
@Suite struct RefusalTests {
  /// `code path` of each refusal; the name shown in brackets where no path is meant.
  private func stands(_ outcome: Outcome) -> [String] {
    outcome.refused.map { "\($0.code) \($0.path?.printable ?? "[\(Printable.escape($0.name))]")" }
  }

  @Test func indexesGiveTheWholePath() {
    let json = """
      [\r
      { "name":"README", "type":"other", "mtime":"Tue, 14 Nov 2023 22:13:20 GMT" },
      { "name":"a/b", "type":"other", "mtime":"Tue, 14 Nov 2023 22:13:20 GMT" },
      { "name":"c/d", "type":"file", "mtime":"Tue, 14 Nov 2023 22:13:20 GMT", "size":1 },
      { "name":"..", "type":"file", "mtime":"Tue, 14 Nov 2023 22:13:20 GMT", "size":1 },
      { "name":"big", "type":"file", "mtime":"Tue, 14 Nov 2023 22:13:20 GMT", "size":-1 }
      ]
      """
    #expect(
      stands(parse(json, url: IndexTests.url, place: "sub")) == [
        "type-not-supported sub/README", "type-not-supported [sub/a%2Fb]", "path-encoded-slash [sub/c%2Fd]",
        "path-dot-segment [sub/..]", "size-malformed sub/big",
      ])
    let caddy = """
      [{"name":"pipe","size":1,"url":"./pipe","mod_time":"2023-11-14T22:13:20Z","mode":33554432,"is_dir":false},
      {"name":"far","size":1,"url":"../far","mod_time":"2023-11-14T22:13:20Z","mode":420,"is_dir":false}]

      """
    #expect(
      stands(parse(caddy, url: IndexTests.url, place: "sub")) == [
        "type-not-supported sub/pipe", "url-outside sub/far",
      ])
    let page = IndexTests.page("<a href=\"a%2Fb\">x</a>\n<a href=\"%2e%2e\">x</a>\n")
    #expect(
      stands(parse(page, url: IndexTests.url, place: "sub")) == [
        "path-encoded-slash [sub/a%2Fb]", "path-dot-segment [sub/..]",
      ])
  }

  /// A file of that name may stand there from before the option was given.
  @Test func whatIsOnlyNotPortableIsAPath() throws {
    let text = IndexTests.page("<a href=\"a%3Ab\">x</a>\n<a href=\"d%3Ae/\">x</a>\n")
    let document = FeedDocument(
      url: IndexTests.url, place: RelativePath(trusted: Array("sub".utf8)), rule: PathRule(portable: true))
    var outcome = Outcome()
    _ = try FeedParser(hashing: TestHashing()).parse(SteppedSource(Array(text.utf8)), as: document) {
      outcome.items.append($0)
    }
    #expect(stands(outcome) == ["path-not-portable sub/a:b", "path-not-portable sub/d:e"])
  }

  @Test func longNamesStayWhole() {
    let long = String(repeating: "d", count: 200) + "/" + String(repeating: "n", count: 202)
    let bad = ManifestTests.one(#"{"path":"\#(long)","hashes":{"sha-256":"00"}}"#)
    #expect(stands(bad) == ["digest-malformed \(long)"])
    #expect(bad.refused.first?.name == Array(long.utf8))
    let metalink =
      "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"\(long)\"><size>x</size>"
      + "<url>https://a.example/x</url></file></metalink>"
    #expect(stands(parse(metalink)) == ["size-malformed \(long)"])
    // What is no path is cut to what is worth showing.
    #expect(parse("\(ManifestTests.hash)  x\n\(long) \(long)\n").refused.first?.name.count == 255)
  }

  /// Not what is shown of a name that is no UTF-8.
  @Test func manifestsGiveTheRawBytes() {
    let file = #"{"path":"shown","pathBytes":"bGF0aW4xLekudHh0","type":"symlink"}"#
    #expect(stands(ManifestTests.one(file)) == [#"type-not-supported latin1-\xe9.txt"#])
  }

  @Test func checksumListsGiveThePathOrNone() {
    let text = """
      \(ManifestTests.hash) 
      BLAKE2b (./sub/b2) = \(ManifestTests.hash)
      \(ManifestTests.hash)  pool/x
      \(ManifestTests.hash)  ./../y

      """
    let outcome = parse(text)
    #expect(
      stands(outcome) == [
        "line-malformed [\(ManifestTests.hash) ]", "path-dot-segment [../y]", "digest-unsupported sub/b2",
      ])
    #expect(outcome.names == ["pool/x"])
    #expect(!outcome.isComplete)
  }

  @Test func urlListsGiveTheFile() {
    let text = """
      https://a.example/good
      ftp://a.example/x%20y
      https://me:pw@a.example/z
      https://a.example/d/

      """
    #expect(
      stands(parse(text)) == [
        "scheme-not-supported x y", "no-usable-source z", "path-empty [https://a.example/d/]",
      ])
  }
}
