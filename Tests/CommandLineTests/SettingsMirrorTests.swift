import Foundation
import Testing

/// Mirrors of the settings, by whatever word they are meant: the settings count, and not what an earlier pass had.
@Suite struct SettingsMirrorTests {
  private let place: LocalPlace

  init() throws {
    place = try LocalPlace()
    try place.publish(["a.txt": "one\n", "b.txt": "two\n"])
  }

  /// - Parameter lines: the rest of its settings.
  private func settle(_ lines: String = "", feed: String = "feed/SHA256SUMS", folder: String = "m") throws {
    try place.write(
      "[mirror.n]\nfeed = \"\(place.path)/\(feed)\"\nfolder = \"\(place.path)/\(folder)\"\n\(lines)",
      "tarn.toml")
  }

  /// The word after a feed is a folder, though a mirror elsewhere has that name.
  @Test func afterAFeedAWordIsAFolder() throws {
    defer { place.end() }
    try settle()
    #expect(try place.tarn("sync", "n").status == 0)
    try place.publish(["a.txt": "one\n"])
    let sync = try place.tarn("sync", "--delete", "../feed/SHA256SUMS", "n", from: "home")
    #expect(sync.status == 0 && place.exists("home/n/a.txt") && place.exists("m/b.txt"), "\(sync)")
    try place.publish(["a.txt": "one\n"], "feed/other")
    let other = try place.tarn("sync", "--change-feed", "../feed/other", "n", from: "home")
    #expect(other.status == 0, "\(other)")
  }

  /// Neither while it follows that feed still, nor before its first pass.
  @Test(arguments: [true, false]) func anotherFeedThanThatOfTheSettingsIsRefused(_ wasSynced: Bool) throws {
    defer { place.end() }
    try settle("delete = true\n")
    if wasSynced { #expect(try place.tarn("sync", "n").status == 0) }
    try place.publish(["a.txt": "one\n", "b.txt": "two\n"], "feed/new")
    try settle(feed: "feed/new")
    for options in [[], ["--change-feed"], ["--delete"]] {
      for command in ["sync", "plan"] {
        let refused = try place.tarn([command] + options + ["./feed/SHA256SUMS", "m"])
        #expect(
          refused.status == 64
            && refused.messages.contains(
              "'n' is a mirror of the settings, and follows \(place.path)/feed/new"),
          "\(refused)")
      }
    }
    #expect(place.exists("m/b.txt") == wasSynced)
  }

  /// It goes on with what the settings had last, and not with what they had earlier.
  @Test func whatLeavesTheSettingsKeepsTheirOptions() throws {
    defer { place.end() }
    try settle("delete = true\nexclude = [\"b.txt\"]\n")
    #expect(try place.tarn("sync", "n").status == 0)
    try settle()
    #expect(try place.tarn("sync", "--limit-rate", "100MiB/s", "n").status == 0)
    try place.write("", "tarn.toml")
    let shown = try place.tarn("config", "show", "m").output
    #expect(
      !shown.contains("delete = true") && !shown.contains("exclude") && !shown.contains("100MiB"),
      "\(shown)")
    try place.publish(["b.txt": "two\n"])
    #expect(try place.tarn("sync", "m").status == 0 && place.exists("m/a.txt"))
  }

  /// What the settings order no more is neither shown nor carried out.
  @Test(arguments: ["", "delete = true\n"]) func aHeldPlanGoesWithItsSettings(_ lines: String) throws {
    defer { place.end() }
    try place.publish(["a.txt": "one\n", "b.txt": "two\n", "c.txt": "three\n"])
    try settle("delete = true\n")
    #expect(try place.tarn("sync", "n").status == 0)
    try place.publish(["a.txt": "one\n"])
    #expect(
      try place.tarn("sync", "n").output.contains("held")
        && place.tarn("status", "n").output.contains("tarn approve n"))
    try place.publish(["a.txt": "one\n"], "feed/new")
    try settle(lines, feed: lines.isEmpty ? "feed/SHA256SUMS" : "feed/new")
    let status = try place.tarn("status", "n").output
    #expect(!status.contains("held") && !status.contains("approve"), "\(status)")
    for word in ["n", "m"] {
      let approved = try place.tarn("approve", "--yes", word)
      #expect(approved.status != 0 && place.exists("m/b.txt") && place.exists("m/c.txt"), "\(approved)")
    }
  }

  /// Who deletes once may have to approve it.
  @Test func aHeldPlanOfACommandIsApproved() throws {
    defer { place.end() }
    try place.publish(["a.txt": "one\n", "b.txt": "two\n", "c.txt": "three\n"])
    try settle()
    #expect(try place.tarn("sync", "n").status == 0)
    try place.publish(["a.txt": "one\n"])
    #expect(try place.tarn("sync", "--delete", "n").output.contains("next: tarn approve "))
    #expect(try place.tarn("status", "n").output.contains("next: tarn approve "))
    #expect(try place.tarn("approve", "--yes", "n").status == 0 && !place.exists("m/b.txt"))
  }

  /// A pass of all mirrors has not read them.
  @Test func aMirrorOfOtherSettingsIsLeftOut() throws {
    defer { place.end() }
    try settle("delete = true\n")
    try place.move("tarn.toml", to: "other.toml")
    #expect(try place.tarn("sync", "--config", "other.toml", "n").status == 0)
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "byhand").status == 0)
    try place.publish(["a.txt": "one\n"])
    let all = try place.tarn("sync")
    #expect(all.status == 0 && place.exists("m/b.txt"), "\(all)")
    #expect(
      all.messages.contains(
        "m is left out: other settings name it; tarn sync --config \(place.path)/other.toml"), "\(all)")
    // Without its settings it is one that was made by hand.
    try place.remove("other.toml")
    #expect(try place.tarn("sync").status == 0 && !place.exists("m/b.txt"))
  }

  @Test func itIsRemovedByAnyWordForItsFolder() throws {
    defer { place.end() }
    try place.makeDirectory("conf.d")
    for word in ["dir", "./dir", place.path + "/dir"] {
      let added = try place.tarn("add", "--no-check", "--name", "one", "./feed/SHA256SUMS", "dir")
      #expect(added.status == 0, "\(added)")
      let removed = try place.tarn("remove", word)
      #expect(removed.status == 0 && !place.exists("conf.d/one.toml"), "\(word): \(removed)")
    }
  }
}
