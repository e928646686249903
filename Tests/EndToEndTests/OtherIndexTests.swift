import Foundation
import Testing

/// The tree of awkward names behind the indexes of servers other than nginx.
@Suite(.serialized, .enabled(if: Tarn.obstacle == nil, "\(Tarn.obstacle ?? "")"))
struct OtherIndexTests {
  /// Name, inode and times of every file of a mirror: what a pass that did nothing leaves as it was.
  private func state(_ folder: String) throws -> [String] {
    let find = try #require(Program.find("find"))
    let arguments = [
      folder, "-path", folder + "/.tarn", "-prune", "-o", "-type", "f", "-printf", "%P %i %T@ %C@\\n",
    ]
    return try Program(find, arguments).wait().output.split(separator: "\n").map(String.init).sorted()
  }

  /// What the server lists and serves, as `check_tree.py` takes it, and whether it serves all that it lists.
  private func offer(_ url: String) throws -> (versions: Data, count: Int, isServed: Bool) {
    let probe = try Tool.run("index_probe.py", [url])
    try #require(probe.status == 0, "\(probe)")
    let found = try JSONSerialization.jsonObject(with: Data(probe.output.utf8)) as? [String: Any]
    let files = try #require(found?["files"] as? [String: Any])
    let unserved = try #require(found?["unserved"] as? [String])
    let versions = try JSONSerialization.data(withJSONObject: files.mapValues { [$0] })
    return (versions, files.count, unserved.isEmpty)
  }

  private func check(_ folder: String, against versions: Data, in place: TemporaryDirectory) throws {
    let file = try place.write(versions, to: "versions.json")
    let checked = try Tool.run("check_tree.py", [folder, "--versions", file.path, "--final"])
    #expect(checked.status == 0, "\(checked)")
  }

  /// Mirrors the tree; a second pass does nothing; then one file is changed and one removed on the server.
  private func mirror(_ kind: IndexServer.Kind) throws {
    let tree = try TemporaryDirectory()
    let made = try Tool.run("awkward_tree.py", [tree.path])
    try #require(made.status == 0, "\(made)")
    let inventory = try JSONSerialization.jsonObject(with: Data(made.output.utf8)) as? [[String: Any]] ?? []
    let server = try IndexServer(kind, files: tree)
    let place = try TemporaryDirectory()
    let folders = kind.paths.map { (path: $0, folder: place.path + "/mirror-" + $0.prefix { $0 != "/" }) }
    for (path, folder) in folders {
      let offer = try offer(server.url(path))
      #expect(offer.count >= inventory.count * 9 / 10, "\(path) offers \(offer.count) of \(inventory.count)")
      let first = try Tarn.sync(server.url(path), folder)
      // Names that the server lists and does not serve are failures; without any the pass is clean.
      #expect(first.status == (offer.isServed ? 0 : 3), "\(path) \(first)")
      try check(folder, against: offer.versions, in: place)
      let before = try state(folder)
      let second = try Tarn.sync(server.url(path), folder)
      #expect(second.status == first.status, "\(path) \(second)")
      #expect((second.output + second.errors).contains("nothing to do"), "\(path) \(second)")
      #expect(try state(folder) == before, "\(path): a second pass leaves every file alone")
    }

    try tree.write("changed, and longer than it was by a number of bytes that is rounded\n", to: "plain.txt")
    try tree.remove("two  spaces")
    for (path, folder) in folders {
      let third = try Tarn.sync(server.url(path), folder, "--delete")
      #expect(third.status == 0, "\(path) \(third)")
      try check(folder, against: offer(server.url(path)).versions, in: place)
    }
  }

  @Test(.enabled(if: IndexServer.Kind.apache.obstacle == nil, "\(IndexServer.Kind.apache.obstacle ?? "")"))
  func apacheInAllItsForms() throws { try mirror(.apache) }

  @Test(.enabled(if: IndexServer.Kind.python.obstacle == nil, "\(IndexServer.Kind.python.obstacle ?? "")"))
  func pythonsServer() throws { try mirror(.python) }

  @Test(.enabled(if: IndexServer.Kind.caddy.obstacle == nil, "\(IndexServer.Kind.caddy.obstacle ?? "")"))
  func caddy() throws { try mirror(.caddy) }

  /// The links of any page, of a tree whose pages no server made: what is there comes, and nothing is deleted.
  @Test(.enabled(if: IndexServer.Kind.python.obstacle == nil, "\(IndexServer.Kind.python.obstacle ?? "")"))
  func linksOfAnyPage() throws {
    let tree = try TemporaryDirectory()
    let place = try TemporaryDirectory()
    func page(_ links: [String]) -> String {
      let rows = links.map { "<li><a href='\($0)'>\($0)</a>" }.joined(separator: "\n")
      return "<!DOCTYPE html><html><head><title>Files</title></head><body><ul>\(rows)</ul></body></html>\n"
    }
    for name in ["one.txt", "two.txt", "sub/three.txt"] { try tree.write("\(name)\n", to: name) }
    try tree.write(page(["../", "?sort=name", "one.txt", "two.txt", "one.txt", "sub/"]), to: "index.html")
    try tree.write(page(["../", "three.txt"]), to: "sub/index.html")
    let server = try IndexServer(.python, files: tree)
    let folder = place.path + "/mirror"
    let refused = try Tarn.sync(server.url(""), folder)
    #expect(refused.status == 65, "\(refused)")
    let first = try Tarn.sync(server.url(""), folder, "--format", "links", "--delete")
    #expect(first.status == 0, "\(first)")
    #expect(
      place.files().filter { !$0.hasPrefix("mirror/.tarn/") }.sorted() == [
        "mirror/one.txt", "mirror/sub/three.txt", "mirror/two.txt",
      ])
    // Only the server can say whether they changed: nothing is known to be missing.
    let plan = try Tarn.run(["plan", "--exit-code", folder])
    #expect(
      plan.status == 0
        && plan.output.contains("no change known: 3 of 3 files in place, 3 to ask the server about"),
      "\(plan)")
    let asked = try Tarn.run(["sync", folder])
    #expect(
      asked.errors.contains("no change known: 3 already there, 3 to ask the server about")
        && asked.errors.contains("asking the server") && !asked.errors.contains("fetching"), "\(asked)")
    let before = try state(folder)
    try tree.write(page(["one.txt", "sub/"]), to: "index.html")
    try tree.write("changed\n", to: "sub/three.txt")
    // The server tells times by the second.
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: 60)], ofItemAtPath: tree.path + "/sub/three.txt")
    // The format is remembered.
    let second = try Tarn.sync(server.url(""), folder)
    #expect(second.status == 0, "\(second)")
    #expect(place.text("mirror/sub/three.txt") == "changed\n")
    #expect(place.text("mirror/two.txt") == "two.txt\n")
    #expect(Set(try state(folder)).isSuperset(of: before.filter { !$0.hasPrefix("sub/") }))
  }

  /// An index.html in a directory hides its listing: its files stay, and the pass says why.
  @Test(.enabled(if: IndexServer.Kind.python.obstacle == nil, "\(IndexServer.Kind.python.obstacle ?? "")"))
  func aPageInPlaceOfAListingDeletesNothing() throws {
    let tree = try TemporaryDirectory()
    let place = try TemporaryDirectory()
    try tree.write("kept\n", to: "sub/kept.txt")
    try tree.write("top\n", to: "top.txt")
    let server = try IndexServer(.python, files: tree)
    let first = try Tarn.sync(server.url(""), place.path + "/mirror")
    #expect(first.status == 0, "\(first)")
    try tree.remove("top.txt")
    try tree.write("<html><body>Welcome</body></html>\n", to: "sub/index.html")
    let second = try Tarn.sync(server.url(""), place.path + "/mirror", "--delete")
    #expect(second.status == 3, "\(second)")
    #expect(place.text("mirror/sub/kept.txt") == "kept\n")
    #expect(place.text("mirror/top.txt") == "top\n")
    #expect((second.output + second.errors).contains("web page"), "\(second)")
  }
}
