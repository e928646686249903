import TarnCore
import Testing

@testable import TarnFeeds

/// A checksum list as one of the files of its mirror, and where the files beside a list are that came by a redirect.
@Suite struct KeptListTests {
  private static let digest = String(repeating: "ca", count: 32)

  private static func list(_ names: [String]) -> [UInt8] {
    Array(names.map { "\(digest)  \($0)\n" }.joined().utf8)
  }

  /// - Parameter bytes: as they were sent.
  private func read(
    _ bytes: [UInt8], url: String = "https://h/pub/SHA256SUMS", asked: String? = nil, isKept: Bool = true,
    isEncoded: Bool = false, format: FormatChoice = .auto
  ) -> Outcome {
    var document = FeedDocument(url: url, format: format)
    document.requestedURL = asked
    document.isEncoded = isEncoded
    if isKept { document.reread = { SteppedSource(bytes, step: 7) } }
    return Outcome.of(bytes, document, hashing: TestHashing())
  }

  private func sha256(_ bytes: [UInt8]) -> Digest { TestHashing().digest(.sha256, of: bytes) }

  @Test func itTakesItsPlaceInTheOrderOfPaths() throws {
    for (names, place) in [(["A", "z"], 1), (["a", "z"], 0), (["A", "B"], 2)] {
      let bytes = Self.list(names)
      let outcome = read(bytes)
      var expected = names
      expected.insert("SHA256SUMS", at: place)
      #expect(outcome.names == expected && outcome.isComplete)
      let own = try #require(outcome.entries.first { $0.isList })
      #expect(own.path.printable == "SHA256SUMS" && own.digests == [sha256(bytes)])
      #expect(own.sources == [Source(url: "https://h/pub/SHA256SUMS")])
      #expect(outcome.entries.count(where: \.isList) == 1)
    }
  }

  /// Its files would not lie beside it.
  @Test func aListWithASlashInItsNameIsNotKept() {
    #expect(read(Self.list(["z"]), url: "https://h/pub/a%2fSHA256SUMS").names == ["z"])
  }

  @Test func whatItSaysOfItselfDoesNotCount() {
    let outcome = read(Self.list(["SHA256SUMS", "./SHA256SUMS", "z"]))
    #expect(outcome.names == ["SHA256SUMS", "z"] && outcome.refused.isEmpty)
  }

  @Test(arguments: ["sums%20of%20may.md5", "x.sfv", "x.hashdeep"]) func listsOfAnyKindAreKept(name: String) {
    let lines = [
      "sums%20of%20may.md5": "\(String(repeating: "0c", count: 16))  z\n", "x.sfv": "z 0C0C0C0C\n",
      "x.hashdeep":
        "%%%% HASHDEEP-1.0\n%%%% size,sha256,filename\n## Invoked from: /d\n##\n3,\(Self.digest),/d/z\n",
    ]
    let outcome = read(Array((lines[name] ?? "").utf8), url: "http://h/\(name)")
    #expect(outcome.names == [name.replacing("%20", with: " "), "z"], "\(outcome)")
  }

  @Test func theDigestOfOneFileIsKept() {
    let outcome = read(Array("\(Self.digest)\n".utf8), url: "http://h/x.iso.sha256")
    #expect(outcome.names == ["x.iso", "x.iso.sha256"])
  }

  /// The encoding is the answer's; a list that is a gzip file is kept as that.
  @Test func itIsTheFileThatOthersFetch() {
    let text = Self.list(["z"])
    #expect(read(gzip(text), isEncoded: true).entries.first?.digests == [sha256(text)])
    #expect(read(text, isEncoded: true).entries.first?.digests == [sha256(text)])
    #expect(
      read(gzip(text), url: "http://h/SHA256SUMS.gz").entries.first?.digests == [sha256(gzip(text))])
  }

  @Test(arguments: ["", "http://h/", "http://h/list?name=SHA256SUMS", "http://h/.tarn", "ftp://h/SHA256SUMS"])
  func withoutANameOrASourceItIsNot(url: String) {
    let bytes = Array("\(Self.digest)  http://h/z\n".utf8)
    #expect(read(bytes, url: url, format: .checksums).entries.allSatisfy { !$0.isList })
  }

  /// It must not keep out what it names.
  @Test func whereFilesLieBelowItsNameItIsNot() {
    let bytes = Self.list(["sub/a", "sub/b"])
    #expect(read(bytes, url: "http://h/p/sub", format: .checksums).names == ["sub/a", "sub/b"])
    #expect(
      read(Self.list(["sub/z", "a"]), url: "http://h/p/sub", format: .checksums).names == ["sub/z", "a"])
  }

  @Test func ofAListWithAQueryItsOwnLineDoesNotCount() {
    #expect(read(Self.list(["SHA256SUMS", "z"]), url: "http://h/SHA256SUMS?x=1").names == ["z"])
  }

  @Test func otherFeedsAreNot() {
    let metalink =
      "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"a\"><url>http://h/a</url></file></metalink>"
    #expect(read(Array(metalink.utf8), url: "http://h/a.meta4").names == ["a"])
    #expect(read(Array("http://h/a\nhttp://h/b\n".utf8), url: "http://h/urls.txt").names == ["a", "b"])
    #expect(read(Self.list(["z"]), isKept: false).names == ["z"])
  }

  // MARK: - Redirects

  /// As GitHub's releases are served: from a store that calls each file by a number.
  @Test(arguments: ["SHA256SUMS", "tool_1.2_checksums.txt", "z.sha256"])
  func aListFromAStoreStandsWhereItWasAskedFor(name: String) {
    let outcome = read(
      Self.list(["z"]), url: "https://store/github/17/0a1b?sig=x", asked: "https://h/v1/\(name)")
    let urls = outcome.entries.flatMap(\.sources).map(\.url).sorted()
    #expect(urls == ["https://h/v1/\(name)", "https://h/v1/z"].sorted())
  }

  /// A store may call it by its contents, or sign the URL of it alone.
  @Test(arguments: [
    ("https://h/v1/SHA256SUMS", "https://store/sha256-\(digest)"),
    ("https://h/v1/SHA256SUMS", "https://s3/b/SHA256SUMS?X-Amz-Signature=1"),
    ("https://h/v1/SHASUMS256.txt", "https://store/0a1b?sig=x"), ("https://h/v1/a.sha", "https://store/7"),
  ])
  func whateverTheStoreCallsIt(asked: String, final: String) {
    let outcome = read(Self.list(["z"]), url: final, asked: asked)
    #expect(outcome.entries.flatMap(\.sources).map(\.url).sorted() == [asked, "https://h/v1/z"].sorted())
  }

  /// Mirrors keep the name, and a short link leads to it.
  @Test(arguments: ["https://h/v1/SHA256SUMS", "https://h/latest"])
  func anotherDirectoryIsTheBase(asked: String) {
    let outcome = read(Self.list(["z"]), url: "https://mirror/pub/SHA256SUMS", asked: asked)
    #expect(outcome.entries.flatMap(\.sources).map(\.url).last == "https://mirror/pub/z")
  }
}
