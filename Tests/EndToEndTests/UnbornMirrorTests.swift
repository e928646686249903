import Foundation
import Testing

/// A mirror under an agent whose first pass cannot read its feed, again and again.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class UnbornMirrorTests: WatchedHouse {
  init() throws {
    try super.init(
      locations: """
        location = /SHA256SUMS {
          if (!-f $document_root/open) { return 503; } add_header Retry-After 10 always;
        }
        """, files: ["f1": "one\n"], options: "retries = 1")
  }

  /// Tarn makes the folder for the pass, and takes it away when the pass fails: nobody lost it.
  @Test func whatTarnTakesBackIsNoLoss() throws {
    try start()
    for _ in 0..<2 {
      let sync = try begin("sync", "files")
      // While the pass waits for the server.
      try waitForMode("watching")
      let outcome = try sync.wait()
      #expect(outcome.status == 66, "\(outcome)")
      #expect(!place.exists("files"))
      try waitUntil("its watcher has seen that") { try watch().mode == "polling" }
      #expect(try watch().reason == "the folder is not there so far")
      #expect(try events() == [])
    }
    let log = agent?.errorsSoFar ?? ""
    #expect(!log.contains("not watched") && !log.contains("watched again"), "\(log)")
    // There is no journal to tell it: the log does, once for each pass.
    let failures = log.split(separator: "\n").count { $0.contains("files: cannot read the feed") }
    #expect(failures == 2, "\(log)")

    // From its first good pass on it is a mirror like any other.
    try server.files.write("", to: "open")
    #expect(try tarn("sync", "files").status == 0)
    try waitForMode("watching")
    let events = try events()
    #expect(events.contains("fetched") && events.allSatisfy { !$0.hasPrefix("watch-") }, "\(events)")
    try FileManager.default.moveItem(atPath: place.path + "/files", toPath: place.path + "/elsewhere")
    try waitForMode("polling")
    #expect(try watch().reason.contains("gone"))
    try FileManager.default.moveItem(atPath: place.path + "/elsewhere", toPath: place.path + "/files")
    try waitUntil("the journal has both") {
      let events = try self.events()
      return events.contains("watch-lost") && events.contains("watch-restored")
    }
  }
}
