import Foundation
import Testing

/// Mirrors that were taken out of the settings: they go on only by a word for them.
@Suite struct LeftMirrorTests {
  private let place: LocalPlace

  init() throws {
    place = try LocalPlace()
    try place.publish(["a.txt": "one\n", "b.txt": "two\n"])
  }

  private func mirror(_ name: String, in folder: String? = nil) -> String {
    "[mirror.\(name)]\nfeed = \"\(place.path)/feed/SHA256SUMS\"\n"
      + "folder = \"\(place.path)/\(folder ?? name)\"\ndelete = true\n"
  }

  private func check(_ words: String...) throws -> String {
    let outcome = try place.tarn(["status", "--check"] + words)
    #expect(outcome.status == 0, "\(outcome)")
    return outcome.output
  }

  private static let leftOut = "1 mirror left out, which the settings no longer name"

  @Test func oneThatWasTakenOutIsLeftOutOfAll() throws {
    defer { place.end() }
    try place.write(mirror("one") + mirror("two"), "tarn.toml")
    #expect(try place.tarn("sync").status == 0)
    try place.write(mirror("one"), "tarn.toml")
    try place.publish(["a.txt": "one\n"])
    let folder = place.path + "/two"
    let line =
      "\(folder) is left out: the settings no longer name it; to forget it: tarn forget \(folder); "
      + "to keep it as one made by hand: tarn sync \(folder)\n"
    for command in ["plan", "sync"] {
      let all = try place.tarn(command)
      #expect(all.status == 0 && all.messages.contains(line), "\(all)")
    }
    #expect(!place.exists("one/b.txt") && place.exists("two/b.txt"))
    #expect(try check().contains(": 1 mirror, last success"))
    #expect(try check().hasSuffix("; \(Self.leftOut)\n"))
    let nagios = try check("--format", "nagios")
    #expect(nagios.hasPrefix("TARN OK") && nagios.contains(Self.leftOut), "\(nagios)")
    let next =
      "next: tarn forget \(folder); or, to keep what the settings no longer name: tarn sync \(folder)\n"
    let table = try place.tarn("status").output
    #expect(table.contains("in sync, left out") && table.contains(next), "\(table)")
    #expect(try place.tarn("status", "-q").output.contains(folder))
    let card = try place.tarn("status", folder).output
    #expect(card.contains("settings      no longer name it") && card.contains(next), "\(card)")
    #expect(try place.tarn("status", "--json", folder).output.contains("\"leftSettings\" : true"))
    #expect(try place.tarn("status", "--json", "one").output.contains("\"leftSettings\" : null"))
    // Named, it is judged.
    #expect(try !check(folder).contains("left out"))
    // What holds once makes nothing of it.
    #expect(try place.tarn("sync", "--once", "--retries", "2", folder).status == 0)
    #expect(try check().contains(Self.leftOut))
    #expect(try place.tarn("sync", folder).status == 0)
    #expect(!place.exists("two/b.txt"), "its options are those of the settings that it had")
    #expect(try check().contains(": 2 mirrors, last success"))
    #expect(try place.tarn("sync").output.contains("2 in sync"))
  }

  /// Also where the feed did not change since.
  @Test func oneThatComesBackIsOfTheSettingsAgain() throws {
    defer { place.end() }
    try place.write(mirror("one") + mirror("two"), "tarn.toml")
    #expect(try place.tarn("sync").status == 0)
    for _ in 0..<2 {
      try place.write("", "tarn.toml")
      let none = try place.tarn("sync")
      #expect(none.status == 0 && none.messages.components(separatedBy: "is left out").count == 3, "\(none)")
      #expect(
        try check() == "nothing to check: 2 mirrors left out, which the settings no longer name\n")
      #expect(try place.tarn("sync", "./two").status == 0)
      #expect(try check().contains(": 1 mirror, last success"))
      // By another name it is the same folder.
      try place.write(mirror("one") + mirror("zwei", in: "two"), "tarn.toml")
      #expect(try check().contains(": 2 mirrors, last success"))
      let folder = try place.tarn("sync", "one", "./two")
      #expect(folder.status == 0 && folder.output.contains("2 in sync"), "\(folder)")
    }
    try place.write("", "tarn.toml")
    #expect(try place.tarn("forget", "two").status == 0)
    #expect(try check().contains(Self.leftOut))
  }

  /// Where other settings are read, or none can be, nobody knows whether those of its last pass still name it.
  @Test func onlyItsOwnSettingsLeaveAMirrorOut() throws {
    defer { place.end() }
    try place.write(mirror("one"), "other.toml")
    let config = ["--config", "other.toml"]
    #expect(try place.tarn(["sync"] + config).status == 0)
    #expect(try check().contains(": 1 mirror, last success"))
    try place.write("", "other.toml")
    #expect(try place.tarn(["sync", "--config", "./other.toml"]).messages.contains("is left out"))
    #expect(try check().contains(": 1 mirror, last success"))
    try place.write("[mirror.one\n", "other.toml")
    #expect(try !place.tarn(["status", place.path + "/one"] + config).output.contains("no more"))
    // A pass of all leaves out what other settings may name. One that is named is made by hand from then on.
    #expect(try place.tarn("sync").messages.contains("one is left out: other settings name it"))
    #expect(try place.tarn("sync", place.path + "/one").status == 0, "by hand")
    try place.write("", "other.toml")
    #expect(try !place.tarn(["sync"] + config).messages.contains("left out"))
  }
}
