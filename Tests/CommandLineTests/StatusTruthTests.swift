import Foundation
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
}
