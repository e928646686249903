import Foundation
import Testing

/// Conditional requests for feeds, of the built binary against a real nginx.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class UnchangedFeedTests {
  private let server: Nginx
  private let place: TemporaryDirectory
  private var agent: Program?

  init() throws {
    let files = try TemporaryDirectory()
    server = try Nginx(
      files: files,
      locations: """
        location = /untagged { alias \(files.path)/SHA256SUMS; etag off; }
        location = /packed { alias \(files.path)/SHA256SUMS; gzip on; gzip_types *; gzip_min_length 1; }
        location = /moved { return 302 /SHA256SUMS; }
        """)
    place = try TemporaryDirectory()
    try publish(["f1": "one\n", "f2": "two\n"])
  }

  deinit {
    agent?.signal(SIGKILL)
  }

  private func publish(_ files: [String: String], modified: Date = Date(timeIntervalSinceNow: -7200)) throws {
    try Feeds.publish(files, in: server.files)
    try FileManager.default.setAttributes(
      [.modificationDate: modified], ofItemAtPath: server.files.path + "/SHA256SUMS")
  }

  private func sync(_ options: String..., feed: String = "SHA256SUMS") throws -> (Outcome, [String]) {
    var outcome = Outcome(status: -1, output: "", errors: "")
    let requests = try server.requests {
      outcome = try Tarn.run(
        ["sync", server.url(feed), place.path + "/mirror", "--no-input", "--no-keep-list"] + options)
    }
    return (outcome, requests.map { "\($0.status) \($0.uri)" + ($0.bytes > 0 ? "" : " no body") })
  }

  @Test(arguments: ["SHA256SUMS", "untagged", "packed", "moved"])
  func aSecondPassReadsNothing(feed: String) throws {
    #expect(try sync(feed: feed).0.status == 0)
    let (second, requests) = try sync("--json", feed: feed)
    #expect(second.status == 0, "\(second)")
    let answered = feed == "moved" ? "SHA256SUMS" : feed
    #expect(requests.filter { !$0.hasPrefix("302 ") } == ["304 /\(answered) no body"])
    let summary = try #require(try JSON.documents(second.output).last)
    #expect(summary["feedUnchanged"] as? Bool == true && summary["inSync"] as? Bool == true)
    #expect((summary["counts"] as? [String: Int])?["current"] == 2)
    #expect(try sync(feed: feed).0.output.contains("2 files, 8 B (nothing to do; the feed has not changed)"))
    let status = try Tarn.run(["status", place.path + "/mirror", "--json"])
    let document = try #require(try JSON.documents(status.output).first)
    let mirror = try #require((document["mirrors"] as? [[String: Any]])?.first)
    #expect(mirror["state"] as? String == "idle")
    #expect(mirror["lastSuccess"] as? String != nil)
    #expect((mirror["upstreamChangedAt"] as? String)?.hasPrefix("20") == true)
    #expect((mirror["entries"] as? [String: Int])?["current"] == 2)
  }

  @Test func aChangedFeedIsRead() throws {
    #expect(try sync().0.status == 0)
    try publish(["f1": "ONE\n", "f2": "two\n"], modified: Date(timeIntervalSinceNow: -3600))
    let (second, requests) = try sync()
    #expect(second.status == 0 && second.output.contains("1 updated"), "\(second)")
    #expect(requests == ["200 /SHA256SUMS", "200 /f1"])
    #expect(place.text("mirror/f1") == "ONE\n")
    #expect(try sync().1 == ["304 /SHA256SUMS no body"])
  }

  @Test func aDeletedFileIsBackAfterOnePass() throws {
    #expect(try sync().0.status == 0)
    try place.remove("mirror/f1")
    let (second, requests) = try sync()
    #expect(second.status == 0 && second.output.contains("1 restored"), "\(second)")
    #expect(requests == ["304 /SHA256SUMS no body", "200 /SHA256SUMS", "200 /f1"])
    #expect(place.text("mirror/f1") == "one\n")
  }

  /// nginx tells versions by second and length: it would call this list unchanged.
  @Test func aListThatMayBeWrittenTwiceInASecondIsRead() throws {
    let moment = Date(timeIntervalSinceNow: 3600)
    try publish(["f1": "one\n", "f2": "two\n"], modified: moment)
    #expect(try sync().0.status == 0)
    try publish(["f1": "ONE\n", "f2": "two\n"], modified: moment)
    let (second, _) = try sync()
    #expect(second.status == 0 && second.output.contains("1 updated"), "\(second)")
  }

  @Test func otherOptionsAndOtherSecretsReadItWhole() throws {
    let secrets = try place.write("X-Token: one\n", to: "headers")
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secrets.path)
    func requests(_ more: String...) throws -> [String] {
      let header = ["--header-file", secrets.path]
      return try server.requests {
        let outcome = try Tarn.run(
          ["sync", server.url("SHA256SUMS"), place.path + "/mirror", "--no-input", "--no-keep-list"] + header
            + more)
        #expect(outcome.status == 0, "\(outcome)")
      }.map(\.status)
    }
    #expect(try requests() == ["200", "200", "200"])
    #expect(try requests() == ["304"])
    #expect(try requests("--delete") == ["200"])
    #expect(try requests() == ["304"])
    try place.write("X-Token: two\n", to: "headers")
    #expect(try requests() == ["200"])
    #expect(try requests() == ["304"])
  }

  @Test func anIndexIsReadAlways() throws {
    #expect(try sync(feed: "html/").0.status == 0)
    let (second, requests) = try sync(feed: "html/")
    #expect(second.status == 0 && !second.output.contains("has not changed"), "\(second)")
    // Of files of this minute the server is asked, too.
    let indexes = requests.filter { $0.hasSuffix("/") }
    #expect(!indexes.isEmpty && indexes.allSatisfy { $0.hasPrefix("200 ") }, "\(requests)")
  }

  /// The index shows minutes only: a file that was fetched within the minute that it shows may have changed since.
  @Test func aChangeWithinTheSameMinuteIsSeen() throws {
    var round = 0
    try waitUntil(limit: 300, "both are of one minute") {
      round += 1
      let minute = Int(Date().timeIntervalSince1970) / 60
      try server.files.write("\(round).0.1\n", to: "LATEST")
      let first = Date().timeIntervalSince1970.rounded(.down)
      #expect(try sync(feed: "html/").0.status == 0)
      // nginx tells two versions of one second and one size apart no more. The times of files are some milliseconds behind the clock.
      try waitUntil("another second has begun") { Date().timeIntervalSince1970 >= first + 1.1 }
      try server.files.write("\(round).0.2\n", to: "LATEST")
      // Else nothing would be proved.
      guard Int(Date().timeIntervalSince1970) / 60 == minute else { return false }
      #expect(try sync(feed: "html/").0.status == 0)
      #expect(place.text("mirror/LATEST") == "\(round).0.2\n")
      return true
    }
  }

  /// The folder is not watched: a repair between the two passes may have the feed read anew.
  @Test func theAgentAsksToo() throws {
    try place.write("", to: "home/.keep")
    try place.write(
      """
      [mirror.files]
      feed = "\(server.url("SHA256SUMS"))"
      folder = "\(place.path)/mirror"
      watch = false

      """, to: "tarn.toml")
    let environment = [
      "HOME": place.path + "/home", "STATE_DIRECTORY": place.path + "/state",
      "RUNTIME_DIRECTORY": place.path + "/run",
    ]
    let config = ["--config", place.path + "/tarn.toml"]
    let program = try Tarn.start(["agent"] + config, environment: environment, in: place.url)
    agent = program
    try waitUntil("it answers") { program.errorsSoFar.contains("answers at") }
    func sync() throws -> Outcome {
      try Tarn.run(["sync", "files"] + config, environment: environment, in: place.url)
    }
    #expect(try sync().status == 0)
    var second = Outcome(status: -1, output: "", errors: "")
    let requests = try server.requests { second = try sync() }
    #expect(second.status == 0, "\(second)")
    #expect(requests.map(\.status) == ["304"])
    let status = try Tarn.run(["status", "--json"] + config, environment: environment, in: place.url)
    let document = try #require(try JSON.documents(status.output).first)
    let mirror = try #require((document["mirrors"] as? [[String: Any]])?.first)
    let last = try #require(mirror["lastRun"] as? [String: Any])
    #expect(last["code"] as? String == "in-sync")
    #expect((last["message"] as? String)?.contains("the feed has not changed") == true, "\(last)")
  }
}
