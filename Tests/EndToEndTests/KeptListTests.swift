import Foundation
import Testing

/// The list itself in the mirror, so that whoever uses the mirror can check it.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
struct KeptListTests {
  private let server: Nginx
  private let place: TemporaryDirectory

  init() throws {
    let files = try TemporaryDirectory()
    server = try Nginx(
      files: files,
      locations: """
        location /release/ { rewrite ^/release/SHA256SUMS$ /store/17 redirect; alias \(files.path)/; }
        location = /store/17 { alias \(files.path)/SHA256SUMS; }
        location /open/ { alias \(files.path)/; ssi on; ssi_types *; chunked_transfer_encoding off; }
        """)
    place = try TemporaryDirectory()
    try Feeds.publish(["f1": "one\n", "sub/f2": "two\n"], in: server.files)
  }

  private func sync(_ options: String..., feed: String = "SHA256SUMS") throws -> Outcome {
    try Tarn.run(["sync", server.url(feed), place.path + "/mirror", "--no-input"] + options)
  }

  /// By coreutils, as a user of the mirror does it.
  private func expectChecked(_ files: Int) throws {
    let check = try Program(
      "/usr/bin/sha256sum", ["--check", "SHA256SUMS"], in: place.url.appendingPathComponent("mirror")
    ).wait()
    #expect(check.status == 0 && check.output.split(separator: "\n").count == files, "\(check)")
    #expect(place.text("mirror/SHA256SUMS") == server.files.text("SHA256SUMS"))
  }

  @Test func theMirrorCanBeCheckedWithIt() throws {
    let first = try sync()
    #expect(first.status == 0 && first.output.contains("3 fetched"), "\(first)")
    try expectChecked(2)
    #expect(try sync().output.contains("nothing to do"))
    try Feeds.publish(["f1": "ONE\n", "f3": "three\n", "sub/f2": "two\n"], in: server.files)
    #expect(try sync().output.contains("1 fetched, 2 updated"))
    try expectChecked(3)
  }

  /// It is the text that was read: it is not asked for again, and need not be there a second time.
  @Test func itIsNotFetchedTwice() throws {
    let requests = try server.requests {
      let outcome = try sync()
      #expect(outcome.status == 0, "\(outcome)")
    }
    #expect(requests.map(\.uri).sorted() == ["/SHA256SUMS", "/f1", "/sub/f2"])
    let times = try [server.files, place].map { folder in
      let path = folder.path + (folder.path == place.path ? "/mirror" : "") + "/SHA256SUMS"
      return try FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date
    }
    #expect(times[0].map { $0.timeIntervalSince1970.rounded(.down) } == times[1]?.timeIntervalSince1970)
    try place.remove("mirror/SHA256SUMS")
    #expect(try sync().output.contains("1 restored"))
    try expectChecked(2)
  }

  /// Who sees the new list finds what it names.
  @Test func itIsPutInPlaceBehindWhatItNames() throws {
    #expect(try sync("--publish-last", "nothing").status == 0)
    try Feeds.publish(["f1": "ONE\n", "zz": "new\n"], in: server.files)
    try server.files.remove("zz")
    let failed = try sync("--retries", "0")
    #expect(failed.status == 3 && place.text("mirror/f1") == "ONE\n", "\(failed)")
    let events = try Tarn.run(["events", place.path + "/mirror"])
    let order = events.output.split(separator: "\n").filter { $0.contains("  updated  ") }
    try #require(order.count == 2, "\(events)")
    #expect(order[0].contains("  updated  f1") && order[1].contains("  updated  SHA256SUMS"), "\(events)")
    #expect(place.text("mirror/SHA256SUMS") == server.files.text("SHA256SUMS"))
  }

  /// The connection may have been lost, at the end of a line. What comes alike twice is the list.
  @Test func aShorterListWithoutAMarkedEndReplacesNone() throws {
    try Feeds.publish(["f1": "one\n", "f2": "two\n", "f3": "three\n"], in: server.files)
    #expect(try sync("--exclude", "f*", feed: "open/SHA256SUMS").status == 0)
    let whole = server.files.text("SHA256SUMS")
    #expect(place.text("mirror/SHA256SUMS") == whole)
    try Feeds.publish(["f1": "one\n"], in: server.files)
    let cut = try sync("--exclude", "f*", feed: "open/SHA256SUMS")
    #expect(cut.status == 3 && cut.errors.contains("are fewer than those of the one before"), "\(cut)")
    #expect(place.text("mirror/SHA256SUMS") == whole)
    // It was no accident.
    #expect(try sync("--exclude", "f*", feed: "open/SHA256SUMS").status == 0)
    #expect(place.text("mirror/SHA256SUMS") == server.files.text("SHA256SUMS"))
    try Feeds.publish(["f1": "ONE\n", "f2": "two\n", "f3": "three\n", "f4": "four\n"], in: server.files)
    #expect(try sync("--exclude", "f*", feed: "open/SHA256SUMS").status == 0)
    #expect(place.text("mirror/SHA256SUMS") == server.files.text("SHA256SUMS"))
  }

  /// The list is none of the files that are mirrored: it counts neither as kept nor as come or gone.
  @Test func theGuardOfDeletionsDoesNotCountIt() throws {
    let all = (10..<40).map { ("f\($0)", "\($0)\n") }
    func publish(_ count: Int) throws {
      try Feeds.publish(Dictionary(uniqueKeysWithValues: all.prefix(count)), in: server.files)
    }
    try publish(3)
    #expect(try sync("--delete").status == 0)
    try publish(1)
    let few = try sync()
    #expect(few.status == 3 && few.output.contains("the list keeps 1 of 3 files, fewer than half"), "\(few)")
    try publish(30)
    #expect(try sync("--no-keep-list").status == 0 && !place.exists("mirror/SHA256SUMS"))
    try publish(26)
    let gain = try sync("--keep-list")
    #expect(gain.status == 3 && gain.output.contains("4 deletions held"), "\(gain)")
    try publish(27)
    #expect(try sync("--no-keep-list").output.contains("4 moved to the trash"))
  }

  /// The digest of the last file is there, and so is the beginning of its name.
  @Test func aListThatIsCutInANameBringsNothing() throws {
    try Feeds.publish(["app-1.10.bin": "ten\n", "b.bin": "b\n"], in: server.files)
    try server.files.write(
      (try #require(server.files.text("SHA256SUMS"))).split(separator: "\n").reversed()
        .map { $0 + "\n" }.joined(), to: "SHA256SUMS")
    let whole = try #require(server.files.text("SHA256SUMS"))
    #expect(try sync().status == 0 && place.text("mirror/SHA256SUMS") == whole)
    try server.files.write(String(whole.dropLast("0.bin\n".count)), to: "SHA256SUMS")
    let cut = try sync("--retries", "0")
    #expect(cut.status == 3 && !place.exists("mirror/app-1.1"), "\(cut)")
    #expect(place.text("mirror/SHA256SUMS") == whole && place.text("mirror/app-1.10.bin") == "ten\n")
    // Many lists have no line feed at their end.
    try server.files.write(String(whole.dropLast()), to: "SHA256SUMS")
    let unended = try sync()
    #expect(unended.status == 0, "\(unended)")
    try expectChecked(2)
  }

  @Test func withoutTheSettingItGoes() throws {
    #expect(try sync("--delete").status == 0 && place.exists("mirror/SHA256SUMS"))
    #expect(try sync("--no-keep-list").status == 0)
    #expect(!place.exists("mirror/SHA256SUMS") && place.text("mirror/f1") == "one\n")
  }

  @Test func aListFromAStoreNamesWhatIsBesideItsOwnAddress() throws {
    let outcome = try sync(feed: "release/SHA256SUMS")
    #expect(outcome.status == 0, "\(outcome)")
    try expectChecked(2)
  }
}
