import Foundation
import Testing

/// One pass over each format of feed, from the server and from the disk.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
struct FormatTests {
  struct Format: CustomTestStringConvertible, Sendable {
    var name: String
    var isKept = false
    /// The document for files of these digests.
    var document: @Sendable ([(path: String, size: Int, sum: String)]) -> String
    var testDescription: String { name }
  }

  static let contents = ["one.txt": "one\n", "sub/two three.txt": "two three\n", "empty.txt": ""]

  private static func escaped(_ path: String) -> String { path.replacingOccurrences(of: " ", with: "%20") }
  private static func line(_ file: (path: String, size: Int, sum: String)) -> String {
    #"{"path":"\#(file.path)","size":\#(file.size),"hashes":{"sha-256":"\#(file.sum)"}}"#
  }

  static let formats = [
    Format(name: "SHA256SUMS", isKept: true) { $0.map { "\($0.sum)  \($0.path)\n" }.joined() },
    Format(name: "CHECKSUMS.txt", isKept: true) { $0.map { "SHA256 (\($0.path)) = \($0.sum)\n" }.joined() },
    Format(name: "manifest.json") {
      #"{"manifest":{"format":"mirror-manifest/1","complete":true},"files":["#
        + $0.map(line).joined(separator: ",") + "]}\n"
    },
    Format(name: "files.meta4") { files in
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\n"
        + files.map {
          "<file name=\"\($0.path)\"><size>\($0.size)</size><hash type=\"sha-256\">\($0.sum)</hash>"
            + "<url>\(escaped($0.path))</url></file>\n"
        }.joined() + "</metalink>\n"
    },
  ]

  private func publish(_ format: Format, in directory: TemporaryDirectory) throws {
    let files = try Self.contents.sorted { $0.key < $1.key }.map { path, text in
      (path: path, size: text.utf8.count, sum: try Feeds.sha256(directory.write(text, to: path)))
    }
    try directory.write(format.document(files), to: format.name)
  }

  /// A checksum list is there, too.
  private func expectAll(_ place: TemporaryDirectory, _ format: Format) {
    let files = place.files().filter { $0.hasPrefix("mirror/") && !$0.hasPrefix("mirror/.tarn/") }
    let list = format.isKept ? [format.name] : []
    #expect(files == (Self.contents.keys + list).map { "mirror/" + $0 }.sorted())
    for (path, text) in Self.contents { #expect(place.text("mirror/" + path) == text) }
  }

  @Test(arguments: formats)
  func overHTTP(format: Format) throws {
    let server = try Nginx()
    let place = try TemporaryDirectory()
    try publish(format, in: server.files)
    let outcome = try Tarn.sync(server.url(format.name), place.path + "/mirror")
    #expect(outcome.status == 0, "\(outcome)")
    expectAll(place, format)
  }

  @Test(arguments: formats)
  func fromTheDisk(format: Format) throws {
    let source = try TemporaryDirectory()
    let place = try TemporaryDirectory()
    try publish(format, in: source)
    let outcome = try Tarn.sync(source.path + "/" + format.name, place.path + "/mirror")
    #expect(outcome.status == 0, "\(outcome)")
    expectAll(place, format)
  }

  @Test func aNativeManifestOfLinesNeedsItsEnd() throws {
    let server = try Nginx()
    let place = try TemporaryDirectory()
    let sum = try Feeds.sha256(server.files.write("one\n", to: "one.txt"))
    let body =
      #"{"header":{"format":"mirror-manifest/1","complete":true}}"# + "\n" + Self.line(("one.txt", 4, sum))
      + "\n"
    let digest = try Feeds.sha256(place.write(body, to: "body"))
    try server.files.write(
      body + #"{"end":{"files":1,"bytes":4,"sha-256":"\#(digest)"}}"# + "\n", to: "manifest.ndjson")
    let whole = try Tarn.sync(server.url("manifest.ndjson"), place.path + "/mirror")
    #expect(whole.status == 0, "\(whole)")
    #expect(place.text("mirror/one.txt") == "one\n")
    try server.files.write(body, to: "manifest.ndjson")
    let cut = try Tarn.sync(server.url("manifest.ndjson"), place.path + "/mirror")
    #expect(cut.status == 65, "\(cut)")
  }

  @Test func aListOfURLs() throws {
    let server = try Nginx()
    let place = try TemporaryDirectory()
    try server.files.write("one\n", to: "one.txt")
    try server.files.write("two\n", to: "sub/two three.txt")
    try server.files.write(
      "# two files\n\(server.url("one.txt"))\n\(server.url("sub/two%20three.txt"))\n", to: "urls.txt")
    let outcome = try Tarn.sync(server.url("urls.txt"), place.path + "/mirror")
    #expect(outcome.status == 0, "\(outcome)")
    #expect(place.files().filter { !$0.hasPrefix("mirror/.tarn/") }.count == 2, "\(place.files())")
    let requests = try server.requests {
      let second = try Tarn.sync(server.url("urls.txt"), place.path + "/mirror")
      #expect(second.status == 0, "\(second)")
    }
    #expect(requests.filter { $0.isBody && !$0.uri.hasSuffix("urls.txt") }.map(\.uri) == [])
  }

  /// Without dates the feed's order decides, also while the clock goes on.
  @Test func aPodcastWithoutDates() throws {
    let server = try Nginx()
    let place = try TemporaryDirectory()
    func tell(_ text: String, _ titles: [String]) throws {
      let items = try titles.map { title in
        try server.files.write("ID3 \(title)\n", to: "\(title).mp3")
        return "<item><title>\(title)</title><guid>\(title)</guid><enclosure url='\(title).mp3'/></item>"
      }
      try server.files.write(
        "<rss version='2.0'><channel><title>s\(text)</title>\(items.joined())</channel></rss>", to: "feed.xml"
      )
    }
    func fetched() throws -> [String] {
      try server.requests {
        let outcome = try Tarn.sync(server.url("feed.xml"), place.path + "/mirror", "--keep", "1")
        #expect(outcome.status == 0, "\(outcome)")
      }.filter { $0.isBody && $0.uri.hasSuffix(".mp3") }.map(\.uri)
    }
    try tell("", ["c", "b", "a"])
    #expect(try fetched() == ["/c.mp3"])
    try tell("another text", ["c", "b", "a"])
    #expect(try fetched() == [])
    try tell("a third one", ["d", "c", "b", "a"])
    #expect(try fetched() == ["/d.mp3"])
    #expect(place.text("mirror/c.mp3") == "ID3 c\n" && place.text("mirror/d.mp3") == "ID3 d\n")
  }

  @Test func aListOfFeedsIsReadFromItsServer() throws {
    let server = try Nginx()
    try server.files.write(
      "<opml version='2.0'><body><outline text='Talk' xmlUrl='feed.xml'/></body></opml>", to: "list.opml")
    let outcome = try Tarn.run(["feeds", server.url("list.opml"), "--folder", "/srv"])
    #expect(
      outcome.status == 0 && outcome.output.contains("feed = \"\(server.url("feed.xml"))\""), "\(outcome)")
    #expect(try Tarn.run(["feeds", server.url("none.opml")]).status == 66)
  }
}
