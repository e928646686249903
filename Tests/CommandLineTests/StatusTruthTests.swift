import Foundation
import TarnAgent
import Testing

/// What `tarn status` says after passes of which it is easy to say too much.
@Suite struct StatusTruthTests {
  private let place: LocalPlace

  init() throws {
    place = try LocalPlace()
    try place.publish(["a.txt": "one\n", "b.txt": "two\n"])
  }

  /// A pass for once that undoes local changes chooses no other files.
  @Test func whatAPassForOnceBroughtBackIsThere() throws {
    defer { place.end() }
    func item(_ name: String) -> String {
      "<item><title>\(name)</title><guid>\(name)</guid><enclosure url=\"\(name).txt\" type=\"text/plain\"/></item>"
    }
    try place.write(
      "<rss version=\"2.0\"><channel><title>t</title>\(item("a"))\(item("b"))</channel></rss>", "feed/rss")
    #expect(try place.tarn("sync", "./feed/rss", "m").status == 0)
    let files = try FileManager.default.contentsOfDirectory(atPath: place.path + "/m")
    try place.remove("m/" + #require(files.first { $0.hasSuffix("a.txt") }))
    #expect(try place.tarn("sync", "m").status == 0)
    let left = "1 of 2 current"
    #expect(try place.tarn("status", "m").output.contains(left))
    // What chooses other files says nothing of all.
    #expect(try place.tarn("sync", "--once", "--exclude", "*a.txt", "m").status == 0)
    #expect(try place.tarn("status", "m").output.contains(left))
    let once = try place.tarn("sync", "--once", "--local-changes", "restore", "m")
    #expect(once.status == 0 && once.output.contains("1 restored"), "\(once)")
    let status = try place.tarn("status", "m").output
    #expect(status.contains("2 of 2 current") && !status.contains("left as changed here"), "\(status)")
  }

  /// In a mirror, an address is no path of it.
  @Test(arguments: ["http://127.0.0.1/feed/", "file:///feed"]) func anAddressIsNoPath(_ address: String)
    throws
  {
    defer { place.end() }
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "m").status == 0)
    #expect(try place.tarn("status", "--check", "sub/file", from: "m").status == 0)
    for options in [["--check"], []] {
      let outcome = try place.tarn(["status"] + options + [address], from: "m")
      #expect(outcome.status == 64 && outcome.messages.contains("is a feed, not a mirror"), "\(outcome)")
    }
    let nagios = try place.tarn("status", "--check", "--format", "nagios", address, from: "m")
    #expect(nagios.status == 3 && nagios.output.hasPrefix("TARN UNKNOWN: "), "\(nagios)")
  }

  private func settings(_ feed: String) throws {
    try place.write(
      "[mirror.m]\nfeed = \"\(place.path)/feed/\(feed)\"\nfolder = \"\(place.path)/m\"\nretries = 0\n",
      "tarn.toml")
  }

  /// What the feed before came to is no word of the one that the settings name now.
  @Test func anotherFeedWasNotReadYet() throws {
    defer { place.end() }
    try settings("SHA256SUMS")
    #expect(try place.tarn("sync").status == 0)
    // The same one, written in another way.
    try settings("./SHA256SUMS")
    #expect(try place.tarn("status", "--check", "m").status == 0)
    try settings("none")
    for failed in [false, true] {
      if failed { #expect(try place.tarn("sync").status >= 64) }
      let card = try place.tarn("status", "m").output
      #expect(
        card.contains(
          "/feed/none; this feed was not read yet, and the folder is of \(place.path)/feed/SHA256SUMS\n"),
        "\(card)")
      #expect(card.contains("last success  never\n") && !card.contains("current"), "\(card)")
      #expect(card.contains(failed ? ": failing\n" : ": never synced\n"), "\(card)")
      if !failed { #expect(card.hasSuffix("next: tarn sync m\n"), "\(card)") }
      let check = try place.tarn("status", "--check", "m")
      #expect(check.status == 3 && check.output.hasPrefix("late: m"), "\(check)")
      if !failed { #expect(check.output.contains("was not read yet"), "\(check)") }
      #expect(try place.tarn("status", "--json", "m").output.contains("\"feedBefore\" : \""))
    }
    // It was read, and is not in sync so far.
    try place.publish(["c.txt": "three\n"], "feed/other")
    try place.remove("feed/c.txt")
    try settings("other")
    #expect(try place.tarn("sync").status == 3)
    let card = try place.tarn("status", "m").output
    #expect(card.contains("last success  never\n") && !card.contains("not read yet"), "\(card)")
    try place.write("three\n", "feed/c.txt")
    #expect(try place.tarn("sync").status == 0)
    #expect(try place.tarn("status", "--check", "m").status == 0)
  }

  /// What is in the folder stays. A feed that was emptied by mistake looks like a mirror in sync.
  @Test func aFeedWithoutFilesIsTold() throws {
    defer { place.end() }
    func publish(_ items: String) throws {
      try place.write(
        "<rss version=\"2.0\"><channel><title>T</title>\(items)</channel></rss>", "feed/feed.xml")
    }
    try publish("<item><title>t</title><enclosure url=\"a.txt\" type=\"text/plain\" length=\"4\"/></item>")
    #expect(try place.tarn("sync", "./feed/feed.xml", "m").status == 0)
    #expect(try !place.tarn("status", "m").output.contains("names no file"))
    try publish("")
    let words = "the feed names no file\n"
    // Also where the feed has not changed.
    for _ in 0..<2 {
      let sync = try place.tarn("sync", "m")
      #expect(sync.status == 0 && sync.output.contains("  \(words)"), "\(sync)")
    }
    let card = try place.tarn("status", "m").output
    #expect(card.contains("entries       none: \(words)"), "\(card)")
    #expect(try place.tarn("plan", "m").output.contains(words))
  }

  /// A slip in a pattern looks like a mirror in sync.
  @Test func patternsThatLeaveOutAllAreTold() throws {
    defer { place.end() }
    let age = PassWords.leftOut(wanted: 0, excluded: 3, hasPatterns: false, maxAge: "1d")
    #expect(age == "--max-age 1d leaves out all 3 entries of the feed")
    let words = "the patterns of --include and --exclude leave out all 3 entries of the feed\n"
    let sync = try place.tarn("sync", "--include", "*.img", "./feed/SHA256SUMS", "m")
    #expect(
      sync.status == 0 && sync.output.contains("in sync: 0 files") && sync.output.contains(words), "\(sync)")
    // Also where the feed has not changed.
    #expect(try place.tarn("sync", "m").output.contains(words))
    #expect(try place.tarn("plan", "m").output.contains(words))
    let card = try place.tarn("status", "m").output
    #expect(card.contains("entries       none: \(words)"), "\(card)")
    #expect(try place.tarn("status", "--json", "m").output.contains("\"excluded\" : 3"))
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "other").status == 0)
    let table = try place.tarn("status").output
    #expect(table.contains("/m: \(words)") && !table.contains("/other: the patterns"), "\(table)")
    for command in ["sync", "plan", "status"] {
      #expect(try !place.tarn(command, "other").output.contains("leave out"))
    }
    // What is left says for itself that something is left out.
    #expect(try !place.tarn("sync", "--include", "a.txt", "m").output.contains("leave out"))
    #expect(try !place.tarn("status", "m").output.contains("leave out"))
  }
}
