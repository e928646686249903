import Foundation
import Testing

/// A feed that names the digests of pieces: what is wrong is found where it is, and not at the end.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
struct PieceTests {
  private static let length = 1 << 20

  /// Six pieces, each of another text; from 4 MiB on they are hashed behind the writing.
  private static let pieces = (0..<6).map { String(repeating: "\($0)123456789abcde\n", count: length / 16) }

  /// The first source's fifth piece is wrong. The next one is asked for what is behind the good ones, and no byte before them.
  @Test func theNextSourceGoesOnBehindTheGoodPieces() throws {
    let server = try Nginx()
    let place = try TemporaryDirectory()
    var damaged = Self.pieces
    damaged[4] = damaged[4].replacingOccurrences(
      of: "e\n4", with: "E\n4", range: damaged[4].range(of: "e\n4"))
    try server.files.write(damaged.joined(), to: "first/a.bin")
    let whole = try server.files.write(Self.pieces.joined(), to: "second/a.bin")
    let digests = try Self.pieces.enumerated().map { number, text in
      "<hash>\(try Feeds.sha256(place.write(text, to: "pieces/\(number)")))</hash>"
    }
    try server.files.write(
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="a.bin">
      <size>\(6 * Self.length)</size><hash type="sha-256">\(try Feeds.sha256(whole))</hash>
      <pieces length="\(Self.length)" type="sha-256">\(digests.joined())</pieces>
      <url priority="1">first/a.bin</url><url priority="2">second/a.bin</url></file></metalink>

      """, to: "files.meta4")
    let outcome = try Tarn.sync(server.url("files.meta4"), place.path + "/mirror")
    #expect(outcome.status == 0, "\(outcome)")
    #expect(place.text("mirror/a.bin") == Self.pieces.joined())
    let asked = try server.requests().filter { $0.uri.hasSuffix("/a.bin") }
    #expect(asked.map(\.uri) == ["/first/a.bin", "/second/a.bin"])
    #expect(asked.last?.range == "bytes=\(4 * Self.length)-", "\(asked)")
  }

  /// Without a size the pieces tell where the file ends.
  @Test(arguments: ["whole", "first", "longer", "wrong"]) func piecesCheckAFileOfUnknownSize(_ what: String)
    throws
  {
    let server = try Nginx()
    let place = try TemporaryDirectory()
    let pieces = [Self.pieces[0], "the last, a short one"]
    let bodies = [
      "whole": pieces.joined(), "first": pieces[0], "longer": pieces.joined() + "x",
      "wrong": pieces[0] + "THE last, a short one",
    ]
    try server.files.write(bodies[what] ?? "", to: "a.bin")
    let digests = try pieces.enumerated().map { number, text in
      "<hash>\(try Feeds.sha256(place.write(text, to: "pieces/\(number)")))</hash>"
    }
    try server.files.write(
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="a.bin">
      <pieces length="\(Self.length)" type="sha-256">\(digests.joined())</pieces>
      <url>a.bin</url></file></metalink>

      """, to: "files.meta4")
    let outcome = try Tarn.sync(server.url("files.meta4"), place.path + "/mirror", "--retries", "0")
    #expect(outcome.status == (what == "whole" ? 0 : 3), "\(outcome)")
    #expect(place.text("mirror/a.bin") == (what == "whole" ? pieces.joined() : nil))
  }
}
