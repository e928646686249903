import Foundation
import Testing

/// A tree of awkward names behind an nginx index. What the server lists and serves is found out by index_probe.py, what is
/// in the folder by check_tree.py: neither shares code with Tarn.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithTools == nil, "\(Tarn.obstacleWithTools ?? "")"))
struct IndexTests {
  private struct Offer: Decodable {
    var files: [String: [Value]]
    var unserved: [String]
    /// A size or a digest.
    enum Value: Codable {
      case size(UInt64)
      case digest(String)
      init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let size = try? container.decode(UInt64.self) {
          self = .size(size)
        } else {
          self = .digest(try container.decode(String.self))
        }
      }
      func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .size(let size): try container.encode(size)
        case .digest(let digest): try container.encode(digest)
        }
      }
    }
  }

  /// Links lead below where the page lies in the end. It is fetched once, though its address leads elsewhere.
  @Test(arguments: ["html", "json"]) func anIndexThatAnotherHostServesIsRead(kind: String) throws {
    let server = try Nginx(
      locations: "location = /old/ { return 302 http://localhost:$server_port/\(kind)/; }")
    try server.files.write("one\n", to: "a.txt")
    try server.files.write("two\n", to: "sub/b.txt")
    let place = try TemporaryDirectory()
    let requests = try server.requests {
      let outcome = try Tarn.sync(server.url("old/"), place.path + "/m")
      #expect(outcome.status == 0, "\(outcome)")
    }
    #expect(place.text("m/a.txt") == "one\n" && place.text("m/sub/b.txt") == "two\n")
    let listings = requests.map(\.uri).filter { $0.hasSuffix("/") }.sorted()
    #expect(listings == ["/\(kind)/", "/\(kind)/sub/", "/old/"])
  }

  /// A list of checksums among the files of an index is for these.
  @Test(arguments: ["html", "json"]) func anIndexIsVerifiedAgainstTheListsBesideItsFiles(kind: String) throws
  {
    let server = try Nginx()
    let file = try server.files.write("one\n", to: "a.txt")
    let below = try server.files.write("two\n", to: "sub/b.txt")
    try server.files.write(
      "\(Feeds.sha256(file))  a.txt\n\(Feeds.sha256(below))  ./sub/b.txt\n", to: "SHA256SUMS")
    let place = try TemporaryDirectory()
    let outcome = try Tarn.sync(server.url(kind + "/"), place.path + "/m")
    #expect(outcome.status == 0, "\(outcome)")
    for path in ["a.txt", "sub/b.txt"] {
      let answer = try Tarn.run(["explain", place.path + "/m", path]).output
      #expect(answer.contains("verified against the digest that the feed gave"), "\(answer)")
    }
    #expect(place.text("m/SHA256SUMS") == server.files.text("SHA256SUMS"))
    try server.files.write("another\n", to: "a.txt")
    try server.files.write("\(Feeds.sha256(below))  a.txt\n", to: "SHA256SUMS")
    let failed = try Tarn.sync(server.url(kind + "/"), place.path + "/m")
    #expect(
      failed.status == 3 && (failed.output + failed.errors).contains("SHA256SUMS, the checksum list"),
      "\(failed)")
    #expect(place.text("m/a.txt") == "one\n")
  }

  /// Serves the tree, mirrors it, has the checker compare, and mirrors it once more.
  private func mirror(_ kind: String, _ options: [String], limit: TimeInterval = patience) throws {
    let tree = try TemporaryDirectory()
    let place = try TemporaryDirectory()
    let made = try Tool.run("awkward_tree.py", [tree.path] + options, limit: limit)
    try #require(made.status == 0, "\(made)")
    let server = try Nginx(files: tree)
    let probe = try Tool.run("index_probe.py", [server.url(kind + "/")], limit: limit)
    try #require(probe.status == 0, "\(probe)")
    let offer = try JSONDecoder().decode(Offer.self, from: Data(probe.output.utf8))
    let inventory = try JSONSerialization.jsonObject(with: Data(made.output.utf8)) as? [[String: Any]] ?? []
    #expect(
      offer.files.count >= inventory.count * 9 / 10,
      "the server offers \(offer.files.count) of \(inventory.count)")
    let versions = try place.write(JSONEncoder().encode(offer.files.mapValues { [$0] }), to: "versions.json")

    let folder = place.path + "/mirror"
    let first = try Tarn.sync(server.url(kind + "/"), folder, limit: limit)
    let checked = try Tool.run(
      "check_tree.py", [folder, "--versions", versions.path, "--final"], limit: limit)
    // Names that the server lists and does not serve are failures, each named; without any the pass is clean.
    #expect(first.status == (offer.unserved.isEmpty ? 0 : 3), "\(first)")
    #expect(checked.status == 0, "\(checked)\n\(first)")

    let requests = try server.requests {
      let second = try Tarn.sync(server.url(kind + "/"), folder, limit: limit)
      #expect(second.status == first.status, "\(second)")
    }
    #expect(
      requests.filter { $0.isBody && !$0.uri.hasSuffix("/") }.map(\.uri) == [],
      "a second pass downloads no body")
  }

  @Test(arguments: ["html", "json"])
  func everyNameThatIsServedIsMirrored(kind: String) throws {
    try mirror(kind, [])
  }

  @Test(arguments: ["html", "json"])
  func dangerousNamesAreRefusedAndNamed(kind: String) throws {
    let tree = try TemporaryDirectory()
    let place = try TemporaryDirectory()
    try tree.write("good\n", to: "good.txt")
    try tree.write("bad\n", to: "bidi\u{202E}txt.exe")
    try tree.write("bad\n", to: "escape\u{1B}[31m.txt")
    let server = try Nginx(files: tree)
    let outcome = try Tarn.sync(server.url(kind + "/"), place.path + "/mirror")
    #expect(outcome.status == 3, "\(outcome)")
    #expect(place.text("mirror/good.txt") == "good\n")
    #expect(place.files().filter { !$0.hasPrefix("mirror/.tarn/") } == ["mirror/good.txt"])
    let said = outcome.output + outcome.errors
    #expect(said.contains("bidi") && said.contains("escape"), "\(outcome)")
    #expect(!said.unicodeScalars.contains { $0.value == 0x1B || $0.value == 0x202E }, "names are escaped")
  }

  /// Of a dangling link nginx says in JSON that it is neither file nor directory. `sub/README` was a file before.
  @Test func whatIsRefusedBelowIsMeantBelow() throws {
    let tree = try TemporaryDirectory()
    let place = try TemporaryDirectory()
    for name in ["README", "sub/README", "sub/other"] { try tree.write("\(name)\n", to: name) }
    let server = try Nginx(files: tree)
    let folder = place.path + "/mirror"
    try #require(try Tarn.sync(server.url("json/"), folder, "--delete").status == 0)
    try tree.remove("sub/README")
    try FileManager.default.createSymbolicLink(
      atPath: tree.path + "/sub/README", withDestinationPath: "/nowhere")
    try tree.write("new\n", to: "README")
    let outcome = try Tarn.sync(server.url("json/"), folder, "--delete")
    #expect(outcome.status == 3, "\(outcome)")
    #expect(outcome.errors.contains("sub/README"), "\(outcome)")
    #expect(place.text("mirror/README") == "new\n")
    #expect(place.text("mirror/sub/README") == "sub/README\n")
  }

  static let bigObstacle: String? = {
    let space = try? FileManager.default.attributesOfFileSystem(forPath: NSTemporaryDirectory())[
      .systemFreeSize]
    let free = (space as? NSNumber)?.uint64Value ?? 0
    return free < 8 << 30 ? "less than 8 GiB free for a file of 3 GiB" : nil
  }()

  @Test(.enabled(if: bigObstacle == nil, "\(bigObstacle ?? "")"))
  func aSparseFileOfThreeGibibytes() throws {
    try mirror("json", ["--big"], limit: 400)
  }
}
