import Foundation
import TarnCore
import TarnLedger
import Testing

/// Passes that are refused before they begin, with 78: for settings that cannot be read, or for files of options.
@Suite struct RefusedPassTests {
  private let place: LocalPlace

  init() throws {
    place = try LocalPlace()
    try place.publish(["a.txt": "one\n", "b.txt": "two\n"])
  }

  private var settings: String {
    "[mirror.a]\nfeed = \"\(place.path)/feed/SHA256SUMS\"\nfolder = \"\(place.path)/a\"\n"
  }

  // MARK: Settings with errors

  private static let faults = ["\n[mirror.other]\nevry = \"1h\"\n", "\n[mirror.other\n"]

  /// What such a mirror remembers is of older settings, which nobody has any more.
  @Test(arguments: faults) func noMirrorOfFaultySettingsGoesByWhatItRemembers(fault: String) throws {
    defer { place.end() }
    try place.write(settings + "delete = true\n", "tarn.toml")
    #expect(try place.tarn("sync", "a").status == 0)
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "hand").status == 0)
    try place.publish(["a.txt": "one\n"])
    try place.write(settings + "dry-run = true\n" + fault, "tarn.toml")
    let folder = place.path + "/a"
    for words in [
      ["sync"], ["sync", "a"], ["sync", "./a"], ["sync", folder], ["plan"], ["plan", folder],
      ["sync", "./feed/SHA256SUMS", "a"], ["verify", "--repair", "./a"], ["config", "show", "./a"],
      ["config", "unset", "--all", "./a"], ["trash", "empty", "-y", "./a"], ["forget", "./a"],
      ["approve", "./a"], ["schedule", "./a"],
    ] {
      let outcome = try place.tarn(words)
      #expect(
        outcome.status == 78
          && outcome.messages.contains("the settings are not taken: \(place.path)/tarn.toml"),
        "\(words): \(outcome)")
    }
    for words in [["sync"], ["plan"], ["sync", "."]] {
      #expect(try place.tarn(words, from: "a").status == 78, "\(words) in the folder")
    }
    #expect(place.exists("a/b.txt"), "nothing was deleted by options of older settings")
    // Records are still told of.
    for words in [["explain", "./a", "a.txt"], ["trash", "list", "./a"], ["verify", "./a"]] {
      #expect(try place.tarn(words).status == 0, "\(words)")
    }
  }

  /// Where all folders of the settings are known, others are surely none of them.
  @Test func whatIsSurelyNoneOfTheSettingsGoesOn() throws {
    defer { place.end() }
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "hand").status == 0)
    try place.write(settings + "evry = \"1h\"\n", "tarn.toml")
    #expect(try place.tarn("sync", "./hand").status == 0)
    #expect(try place.tarn("sync", from: "hand").status == 0)
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "other").status == 0)
    // Its folder may be any.
    for hiding in [
      "[mirror.b]\nfeed = \"x\"\ndir = \"/y\"\n", "[mirors.b]\nfolder = \"/y\"\n", "[mirror.b\n",
    ] {
      try place.write(settings + hiding, "tarn.toml")
      #expect(try place.tarn("sync", "./hand").status == 78, "\(hiding)")
    }
  }

  @Test func aMirrorOfFaultySettingsIsUnknownByItsNameToo() throws {
    defer { place.end() }
    try place.write(settings, "tarn.toml")
    #expect(try place.tarn("sync", "a").status == 0)
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "hand").status == 0)
    try place.write(settings + "evry = \"1h\"\n", "tarn.toml")
    for word in ["a", "./a"] {
      let check = try place.tarn("status", "--check", word)
      #expect(check.status == 3 && check.output.hasPrefix("unknown: the settings"), "\(word): \(check)")
      let nagios = try place.tarn("status", "--check", "--format", "nagios", word)
      #expect(nagios.status == 3 && nagios.output.hasPrefix("TARN UNKNOWN"), "\(word): \(nagios)")
    }
    #expect(try place.tarn("status", "--check", "./hand").status == 0)
  }

  // MARK: Files of options

  @Test(arguments: ["netrc-file", "header-file", "cookies", "cacert"])
  func aFileThatIsGoneIsAFailure(option: String) throws {
    defer { place.end() }
    try place.write("", "secret")
    let first = try place.tarn("sync", "--\(option)", "secret", "./feed/SHA256SUMS", "m")
    #expect(first.status == 0, "\(first)")
    try place.remove("secret")
    let step =
      "hint: the mirror remembers this option; to take it back: tarn config unset \(place.path)/m \(option)\n"
    for command in ["plan", "sync"] {
      let refused = try place.tarn(command, "m")
      #expect(refused.status == 78 && refused.messages.contains(step), "\(refused)")
    }
    #expect(try place.tarn("status", "m").output.contains("tarn config unset \(place.path)/m \(option)\n"))
    let check = try place.tarn("status", "--check", "m")
    #expect(
      check.status == 3 && check.output.contains("failing: ") && check.output.contains("\(option): "),
      "\(check)")
    #expect(try place.tarn("events", "m").output.contains("pass-failed"))
    try place.write("", "secret")
    #expect(try place.tarn("sync", "m").status == 0)
    #expect(try place.tarn("status", "--check", "m").status == 0)
    // A slip in what is given now is none of the mirror's.
    let slip = try place.tarn("sync", "--\(option)", "nowhere", "m")
    #expect(
      slip.status == 78 && slip.messages.contains("hint: give a file that exists")
        && !slip.messages.contains("remembers"), "\(slip)")
    #expect(try place.tarn("status", "--check", "m").status == 0)
    try place.remove("secret")
    #expect(try place.tarn("config", "unset", place.path + "/m", option).status == 0)
    #expect(try place.tarn("sync", "m").status == 0)
  }

  /// Whatever is wrong with what nobody gave now.
  @Test func whatIsRememberedAndWrongIsTakenBackByACommand() throws {
    defer { place.end() }
    try place.write("A: b\n", "headers")
    try place.write("", "home/.netrc")
    #expect(
      try place.tarn("sync", "--header-file", "headers", "--netrc", "./feed/SHA256SUMS", "m").status == 0)
    let step = "the mirror remembers this option; to take it back: tarn config unset \(place.path)/m "
    try place.write("no header\n", "headers")
    #expect(try place.tarn("sync", "m").messages.contains(step + "header-file\n"))
    try place.write("A: b\n", "headers")
    try place.remove("home/.netrc")
    #expect(try place.tarn("sync", "m").messages.contains(step + "netrc\n"))
    // As an earlier Tarn may have taken them.
    for option in ["connections", "retries"] {
      let ledger = try SQLiteLedger(directory: place.path + "/m/.tarn")
      try ledger.apply([.fact(.options, "\(option)=100000")])
      ledger.close()
      let refused = try place.tarn("sync", "m")
      #expect(refused.status == 64 && refused.messages.contains(step + "\(option)\n"), "\(refused)")
      #expect(try place.tarn("sync", "--\(option)", "5", "m").status == 0)
    }
  }

  @Test func whatTheSettingsSayIsNotRemembered() throws {
    defer { place.end() }
    try place.write("A: b\n", "headers")
    try place.write(settings + "header-file = \"\(place.path)/headers\"\n", "tarn.toml")
    chmod(place.path + "/headers", 0o600)
    #expect(try place.tarn("sync", "a").status == 0)
    try place.remove("headers")
    let refused = try place.tarn("sync", "a")
    #expect(refused.status == 78 && !refused.messages.contains("remembers"), "\(refused)")
  }

  // MARK: Feeds that break off

  @Test func aFeedThatBreaksOffIsNotGoodUntilAWholeOneCame() throws {
    defer { place.end() }
    func item(_ name: String) -> String {
      "<item><title>\(name)</title><guid>\(name)</guid><enclosure url=\"\(name)\" type=\"text/plain\"/></item>"
    }
    try place.publish(["a.txt": "one\n", "b.txt": "two\n"])
    let whole =
      "<rss version=\"2.0\"><channel><title>t</title>\(item("a.txt"))\(item("b.txt"))</channel></rss>"
    try place.write(String(whole.dropLast(60)), "feed/feed.xml")
    for words in [["./feed/feed.xml", "m"], ["m"]] {
      let cut = try place.tarn(["sync"] + words)
      #expect(cut.status == 3 && cut.output.contains("the feed read in part"), "\(cut)")
      #expect(try place.tarn("status", "--check", "m").status == 3)
    }
    #expect(place.exists("m"))
    try place.write(whole, "feed/feed.xml")
    #expect(try place.tarn("sync", "m").status == 0)
    #expect(try place.tarn("status", "--check", "m").status == 0)
  }
}
