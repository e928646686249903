import Foundation
import TarnCore
import Testing

/// What is told or refused where it was taken in silence before: of local feeds, with the built program.
@Suite struct DoubtTests {
  private let place: LocalPlace

  init() throws {
    place = try LocalPlace()
    try place.publish(["a.txt": "one\n", "b.txt": "two\n"])
  }

  /// The list beside the files is of the pass before, and does not fit what a pass for once brought.
  @Test func aListThatDoesNotFitItsFilesIsAProblem() throws {
    defer { place.end() }
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "m").status == 0)
    try place.publish(["a.txt": "three\n", "b.txt": "two\n"])
    #expect(try place.tarn("sync", "--once", "--include", "a.txt", "m").status == 0)
    #expect(place.text("m/a.txt") == "three\n" && place.text("m/SHA256SUMS")?.contains("2c8b08da") == true)
    let check = try place.tarn("status", "--check", "m")
    #expect(check.status == 3 && check.output.contains("SHA256SUMS: it is older than files"), "\(check)")
    #expect(try place.tarn("sync", "m").status == 0)
    #expect(try place.tarn("status", "--check", "m").status == 0)
    #expect(place.text("m/SHA256SUMS")?.contains("f6936912") == true)
    // Where nothing came the list is as good as it was.
    #expect(try place.tarn("sync", "--once", "--include", "a.txt", "m").status == 0)
    #expect(try place.tarn("status", "--check", "m").status == 0)
  }

  private static let windows = [
    "<rss version=\"2.0\"><channel><title>t</title><item><title>a</title><guid>a</guid>"
      + "<enclosure url=\"a.txt\" type=\"text/plain\"/></item></channel></rss>",
    #"{"version":"https://jsonfeed.org/version/1.1","title":"t","items":[{"id":"a","title":"a","#
      + #""attachments":[{"url":"a.txt","mime_type":"text/plain"}]}]}"#,
  ]

  /// A list whose address answers with a news feed from one day to the next.
  @Test(arguments: windows) func aListThatIsANewsFeedNowIsNotFollowed(window: String) throws {
    defer { place.end() }
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "m").status == 0)
    try place.write(window, "feed/SHA256SUMS")
    for command in ["sync", "plan"] {
      let refused = try place.tarn(command, "m")
      #expect(
        refused.status == 65 && refused.messages.contains("the feed was a checksum list")
          && refused.messages.contains("tarn sync --format rss"), "\(refused)")
    }
    #expect(try place.tarn("status", "--check", "m").output.contains("failing: "))
    #expect(place.text("m/a.txt") == "one\n" && place.text("m/b.txt") == "two\n")
    let told = try place.tarn("sync", "--format", "rss", "m")
    #expect(told.status == 0, "\(told)")
    #expect(try place.tarn("sync", "m").status == 0, "it is a news feed from now on")
  }

  /// The other way round, its files are those of a list: what is restored over them would be gone with the next pass.
  @Test(arguments: windows) func aNewsFeedThatIsAListNowRestoresItsFiles(window: String) throws {
    defer { place.end() }
    try place.write(window, "feed/news")
    #expect(try place.tarn("sync", "./feed/news", "m").status == 0)
    #expect(try place.tarn("sync", "--change-feed", "./feed/SHA256SUMS", "m").status == 0)
    try place.write("edited\n", "m/a.txt")
    #expect(try place.tarn("sync", "m").status == 0)
    try place.remove("m/a.txt")
    let refused = try place.tarn("trash", "restore", "m", "a.txt")
    #expect(
      refused.status == 64 && refused.messages.contains("the next pass would put these back"), "\(refused)")
    let verified = try place.tarn("verify", "m")
    #expect(verified.status == 3 && !verified.output.contains("--local-changes"), "\(verified)")
    #expect(try place.tarn("sync", "m").status == 0 && place.text("m/a.txt") == "one\n")
  }

  /// The mirror that a path lies in, whatever link leads into it.
  @Test func aPathBehindALinkIntoAMirrorIsFound() throws {
    defer { place.end() }
    try place.makeDirectory("feed/sub")
    try place.publish(["sub/a.txt": "one\n"])
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "m").status == 0)
    try place.link("lsub", to: "m/sub")
    for words in [["lsub/a.txt"], ["./lsub/a.txt"], [place.path + "/lsub/a.txt"], ["m", "./lsub/a.txt"]] {
      let found = try place.tarn(["explain"] + words)
      #expect(found.status == 0 && found.output.hasPrefix("sub/a.txt: current"), "\(words): \(found)")
    }
    #expect(try place.tarn("explain", "lsub/none").output.hasPrefix("sub/none: "))
  }

  // MARK: Small things

  @Test func anEmptiedFolderIsNotSaidToBeThere() throws {
    defer { place.end() }
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "m").status == 0)
    try place.remove("m")
    try place.makeDirectory("m")
    let kept = try place.tarn("forget", "--gone")
    #expect(kept.output.hasPrefix("kept \(place.path)/m: it is empty or not there"), "\(kept)")
  }

  @Test func whatLeftTheTrashIsNotSaidToBeThere() throws {
    defer { place.end() }
    let files = ["a.txt": "one\n", "b.txt": "two\n", "c.txt": "three\n"]
    try place.publish(files)
    #expect(try place.tarn("sync", "--delete", "./feed/SHA256SUMS", "m").status == 0)
    try place.publish(files.filter { $0.key != "c.txt" })
    #expect(try place.tarn("sync", "m").status == 0)
    #expect(try place.tarn("explain", "m", "c.txt").output.contains("tarn trash list m"))
    #expect(try place.tarn("trash", "restore", "m", "c.txt", "--to", "d.txt").status == 0)
    let gone = try place.tarn("explain", "m", "c.txt").output
    #expect(gone.contains("which does not hold it any more") && !gone.contains("trash list"), "\(gone)")
  }

  @Test func aLimitOfNewsFeedsIsToldToBeIdle() throws {
    defer { place.end() }
    let sync = try place.tarn("sync", "--keep", "2", "./feed/SHA256SUMS", "m")
    #expect(sync.status == 0 && sync.output.contains("  --keep: for RSS, Atom and JSON Feed only"), "\(sync)")
    let all = try place.tarn("sync", "--keep", "all", "m")
    #expect(!all.output.contains("--keep"), "\(all)")
  }

  @Test(arguments: [
    (["sync", "--keep", "-3", "m"], "--keep: '-3' is not"),
    (["status", "--max-age", "1h"], "goes with --check"),
    (["sync", "--template", "../{title}", "m"], "a path below the mirror's folder"),
    (["sync", "--template", "{date}", "m"], "one of {title}"),
    (["plan", "./feed"], "tarn sync --adopt FEED ./feed"),
  ]) func usageSaysWhatIsWrong(_ words: [String], _ said: String) throws {
    defer { place.end() }
    let outcome = try place.tarn(words)
    #expect(outcome.status == 64 && outcome.messages.contains(said), "\(outcome)")
  }

  /// What is advised is a command that works.
  @Test(arguments: ["feed", "feed/", "./feed", "my feed"])
  func aDirectoryInPlaceOfAFeedIsToldTheListInIt(_ word: String) throws {
    defer { place.end() }
    if word == "my feed" { try place.move("feed", to: word) }
    let refused = try place.tarn("sync", word, "m")
    let list = word == "my feed" ? "'./my feed/SHA256SUMS'" : "./feed/SHA256SUMS"
    #expect(refused.status == 64 && refused.messages.contains(list), "\(refused)")
    #expect(try place.tarn("sync", list.filter { $0 != "'" }, "m").status == 0)
  }

  @Test func aDirectoryWithoutAListIsToldHowToMakeOne() throws {
    defer { place.end() }
    try place.makeDirectory("files")
    try place.write("one\n", "files/a.txt")
    let refused = try place.tarn("sync", "files", "m")
    #expect(refused.status == 64 && refused.messages.contains("sha256sum * > SHA256SUMS"), "\(refused)")
  }

  @Test func aPasswordThatIsNotTakenIsSaidToBeOne() {
    #expect(HTTPStatus(401).message.contains("--netrc-file"))
  }
}
