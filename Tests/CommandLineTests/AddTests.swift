import Foundation
import Testing

@testable import tarn

/// `tarn add` and `tarn remove`, without an agent.
@Suite final class AddTests {
  private let place: LocalPlace

  init() throws {
    place = try LocalPlace()
    try place.publish(["a": "one\n", "b": "two\n"])
  }

  deinit { place.end() }

  private var feed: String { "\(place.path)/feed/SHA256SUMS" }

  private func add(_ arguments: String...) throws -> TarnBinary.Result { try place.tarn(["add"] + arguments) }

  @Test func aMirrorIsWrittenAndChecked() throws {
    let result = try add(feed, "out/My Files", "--delete", "--exclude", "*.tmp", "--exclude", "a#b")
    #expect(result.status == 0, "\(result)")
    #expect(
      place.text("conf.d/My-Files.toml") == """
        # 'tarn add' wrote this file, and 'tarn remove My-Files' takes it away.
        # Change values here, then: tarn reload. Comments of your own make it a file that tarn leaves alone.
        [mirror.My-Files]
        feed = "\(feed)"
        folder = "\(place.path)/out/My Files"
        every = "1h"
        delete = true
        exclude = ["*.tmp", "a#b"]

        """)
    #expect(result.output.contains("the feed names 3 files, "), "\(result.output)")
    #expect(result.output.contains(" and 2 of unknown size\n"), "\(result.output)")
    #expect(result.output.contains("next: tarn agent\n"), "\(result.output)")
    #expect(try place.tarn("config", "check").status == 0)
    #expect(!place.exists("out"), "reading the feed makes nothing")
    #expect(try place.tarn("sync", "My-Files").status == 0)
    #expect(place.text("out/My Files/a") == "one\n")
    let removed = try place.tarn("remove", "My-Files")
    #expect(removed.status == 0 && removed.output.contains("its files stay in"), "\(removed)")
    #expect(!place.exists("conf.d/My-Files.toml") && place.exists("conf.d"))
    #expect(place.text("out/My Files/a") == "one\n" && place.exists("out/My Files/.tarn"))
  }

  @Test func aRelativeFeedAndAJSONAnswer() throws {
    let result = try add("feed/SHA256SUMS", "m", "--json", "--schedule", "daily", "--name", "x")
    #expect(result.status == 0 && result.messages == "", "\(result)")
    let answer = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
    #expect(answer?["feed"] as? String == feed && answer?["files"] as? Int == 3)
    #expect(answer?["agent"] as? String == "none" && answer?["next"] as? String == "tarn agent")
    #expect(place.text("conf.d/x.toml")?.contains("schedule = \"daily\"") == true)
  }

  @Test func whatCannotBeIsRefusedAndNothingIsWritten() throws {
    try place.write(
      "# mine\n[mirror.old]\nfeed = \"\(feed)\"\nfolder = \"\(place.path)/old\"\n", "tarn.toml")
    try place.makeDirectory("conf.d")
    try place.write("# nothing\n", "conf.d/taken.toml")
    try place.makeDirectory("full")
    try place.write("mine\n", "full/file")
    try place.write("no list\n", "feed/broken")
    let cases: [([String], Int32, String)] = [
      ([feed, "old"], 64, "is a mirror already: \(place.path)/tarn.toml:3:8"),
      ([feed, "old"], 64, "it keeps this folder: change it there, or first: tarn remove old"),
      ([feed, "else/old"], 64, "give the new one a name: --name NAME"),
      ([feed, "old", "--name", "new"], 78, "the folder of 'old'"),
      ([feed, "old/below", "--name", "new"], 78, "lies in the folder of 'old'"),
      ([feed, "m", "--name", "a.b"], 64, "cannot be a mirror's name"),
      ([feed, "m", "--name", "session"], 64, "is not session"),
      ([feed, "m", "--name", "a\\b"], 64, ": \\ and"),
      ([feed, "taken"], 64, "\(place.path)/conf.d/taken.toml is there already"),
      (
        [feed, "full", "--name", "f", "--delete"], 64,
        "tarn add --adopt --name f --every 1h --delete \(place.path)/feed/SHA256SUMS \(place.path)/full"
      ),
      (["\(place.path)/feed/broken", "m"], 65, "--no-check"),
      (["\(place.path)/feed/none", "m"], 66, "--no-check"),
      (["https://user:word@example.org/x", "m", "--no-check"], 64, "a password"),
      (["example.org/SHA256SUMS", "m"], 64, "https://example.org/SHA256SUMS"),
      (["out", "https://example.org/x"], 64, "tarn add https://example.org/x out"),
      (["-", "m"], 64, "standard input"), ([feed, "/", "--name", "x"], 78, "root of the file system"),
      ([feed, "m", "--every", "1s"], 64, "is not a span"),
      ([feed, "m", "--every", "1h", "--schedule", "daily"], 64, "cannot be combined"),
      ([feed, "m", "--schedule", "noonish"], 78, "schedule"),
      ([feed, "m", "--netrc-file", "\(place.path)/none"], 78, "netrc"),
      ([feed, "feed/SHA256SUMS/m"], 77, "cannot be made: \(place.path)/feed/SHA256SUMS is no directory"),
    ]
    for (words, status, said) in cases {
      let result = try place.tarn(["add"] + words)
      #expect(result.status == status && result.messages.contains(said), "\(words): \(result)")
    }
    let config = try place.tarn("add", feed, "m", "--config", "\(place.path)/tarn.toml")
    #expect(config.status == 64 && config.messages.contains("--config"), "\(config)")
    let names = try FileManager.default.contentsOfDirectory(atPath: place.path + "/conf.d")
    #expect(names == ["taken.toml"])
    #expect(!place.exists("m"))
  }

  @Test func withoutACheckTheFeedIsNotRead() throws {
    let result = try add("https://example.invalid/SHA256SUMS", "m", "--no-check", "--every", "6h")
    #expect(result.status == 0 && result.output.contains("every 6h"), "\(result)")
    #expect(place.text("conf.d/m.toml")?.contains("every = \"6h\"") == true)
  }

  @Test func olderFilesThatStayAreTold() throws {
    let said = "older files stay in the folder"
    let without = try add(feed, "m", "--no-check", "--keep", "3")
    #expect(without.status == 0 && without.output.contains(said), "\(without)")
    let with = try add(feed, "n", "--no-check", "--keep", "3", "--delete")
    #expect(with.status == 0 && !with.output.contains(said), "\(with)")
    // Of a list that names all of its files there are no older ones.
    let list = try add(feed, "o", "--keep", "3")
    let idle = "--keep: for RSS, Atom and JSON Feed only; of this checksum list every file is taken"
    #expect(list.status == 0 && !list.output.contains(said) && list.output.contains(idle), "\(list)")
  }

  @Test func aFolderIsJudgedForTheAgentsUser() throws {
    let access = FolderAccess(agentUser: .init(name: "nobody", id: 65_534, group: 65_534))
    try place.makeDirectory("closed")
    try place.makeDirectory("open")
    #expect(chmod("\(place.path)/closed", 0o755) == 0 && chmod("\(place.path)/open", 0o777) == 0)
    let reason = try #require(access.reasonNotToMake("\(place.path)/closed/a/b"))
    #expect(reason.message == "the agent's user nobody may not make it in \(place.path)/closed")
    #expect(reason.mend == "sudo install -d -o nobody -g nobody \(place.path)/closed/a/b")
    #expect(access.reasonNotToMake("\(place.path)/open/a") == nil)
    #expect(access.reasonNotToMake("\(place.path)/closed") == nil, "it is there already")
  }

  /// One that was made by a `tarn sync` of root.
  @Test func aFolderOfAnotherUserIsTold() throws {
    let access = FolderAccess(agentUser: .init(name: "nobody", id: 65_534, group: 65_534))
    try place.makeDirectory("theirs")
    let path = "\(place.path)/theirs"
    #expect(chmod(path, 0o777) == 0 && access.reasonNotToWrite(["\(place.path)/none", path]) == nil)
    #expect(chmod(path, 0o755) == 0)
    let reason = try #require(access.reasonNotToWrite([path]))
    #expect(reason.message.hasPrefix("by its mode the agent's user nobody may not write \(path), which"))
    #expect(reason.mend.hasPrefix(geteuid() == 0 ? "sudo chown -R nobody: \(path)" : "ls -ld \(path)"))
    #expect(FolderAccess(agentUser: nil).reasonNotToWrite([path]) == nil)
  }

  @Test func settingsWithAnErrorAreLeftAlone() throws {
    try place.write("[limits\n", "tarn.toml")
    let result = try add(feed, "m")
    #expect(result.status == 78 && result.messages.contains("tarn config check"), "\(result)")
    #expect(!place.exists("conf.d"))
  }

  @Test func aFolderThatFollowsAnotherFeedIsNotTurned() throws {
    try place.publish(["c": "three\n"], "feed/OTHER")
    #expect(try place.tarn("sync", "\(place.path)/feed/OTHER", "m").status == 0)
    let refused = try add(feed, "m")
    #expect(refused.status == 64 && refused.messages.contains("--change-feed"), "\(refused)")
    #expect(try add(feed, "m", "--change-feed").status == 0)
  }

  @Test func whatPeopleWroteIsRefusedWithItsPlace() throws {
    let own = "# mine\n\n[mirror.own]\nfeed = \"\(feed)\"\nfolder = \"\(place.path)/own\"\n"
    try place.write(own, "tarn.toml")
    let other = try place.tarn("remove", "own")
    #expect(
      other.status == 64 && other.messages.contains("\(place.path)/tarn.toml:4 names 'own'"), "\(other)")
    #expect(place.text("tarn.toml") == own)
    #expect(try add(feed, "m").status == 0)
    let written = try #require(place.text("conf.d/m.toml"))
    let edits: [(String, Int, String)] = [
      (written + "# because\n", 7, "comment"),
      (written.replacing("\"1h\"", with: "\"2h\" # slow"), 6, "comment"),
      (written + "[mirror.n]\nfeed = \"\(feed)\"\nfolder = \"/srv/n\"\n", 7, "more than this mirror"),
      (written + "[limits]\npasses = 2\n", 7, "more than this mirror"),
      ("# mine\n" + written, 5, "did not write"),
    ]
    for (text, line, reason) in edits {
      try place.write(text, "conf.d/m.toml")
      let result = try place.tarn("remove", "m")
      #expect(
        result.status == 64 && result.messages.contains("conf.d/m.toml:\(line) names 'm'")
          && result.messages.contains(reason), "\(text): \(result)")
      #expect(place.text("conf.d/m.toml") == text)
    }
    try place.write(written.replacing("\"1h\"", with: "\"2h\""), "conf.d/m.toml")
    let removed = try place.tarn("remove", "m")
    #expect(removed.status == 0, "other values are no comment")
    #expect(removed.output == "removed m from the settings: \(place.path)/conf.d/m.toml is gone\n")
    #expect(place.text("tarn.toml") == own && !place.exists("conf.d/m.toml"))
  }

  /// What is added to it elsewhere would be left behind as half a mirror.
  @Test func aMirrorOfTwoFilesIsRefused() throws {
    #expect(try add(feed, "m").status == 0)
    try place.write("[mirror.m]\nkeep = 3\n", "tarn.toml")
    let result = try place.tarn("remove", "m")
    #expect(result.status == 64 && result.messages.contains("tarn.toml:2 names 'm'"), "\(result)")
    #expect(place.exists("conf.d/m.toml"))
  }

  @Test func aDamagedFileIsRefused() throws {
    #expect(try add(feed, "m").status == 0)
    try place.write((place.text("conf.d/m.toml") ?? "") + "= 3\n", "conf.d/m.toml")
    let result = try place.tarn("remove", "m")
    #expect(result.status == 78 && result.messages.contains("conf.d/m.toml:7"), "\(result)")
    #expect(place.exists("conf.d/m.toml"))
  }

  @Test func removeTakesAFolderAndForgets() throws {
    #expect(try add(feed, "m").status == 0)
    #expect(try place.tarn("sync", "m").status == 0)
    let result = try place.tarn("remove", "--forget", "--json", "./m")
    #expect(result.status == 0 && result.output.contains("\"forgotten\":true"), "\(result)")
    #expect(place.text("m/a") == "one\n" && !place.exists("m/.tarn"))
    let again = try place.tarn("remove", "m")
    #expect(again.status == 64 && again.messages.contains("the settings name no mirror"), "\(again)")
  }

  /// A refusal comes before the change: afterwards no settings would name the mirror.
  @Test func aTrashWithAnEditKeepsTheMirrorInTheSettings() throws {
    #expect(try add(feed, "m").status == 0)
    #expect(try place.tarn("sync", "m").status == 0)
    try place.write("mine\n", "m/a")
    #expect(try place.tarn("sync", "m").status == 0)
    let refused = try place.tarn("remove", "--forget", "m")
    #expect(refused.status == 64 && refused.output == "", "\(refused)")
    #expect(refused.messages.contains("holds 1 file that Tarn did not place"), "\(refused)")
    #expect(place.exists("conf.d/m.toml") && place.exists("m/.tarn"))
    #expect(try place.tarn("trash", "empty", "-y", "m").status == 0)
    #expect(try place.tarn("remove", "--forget", "m").status == 0)
    #expect(!place.exists("conf.d/m.toml") && !place.exists("m/.tarn"))
  }

  /// It leaves the settings, and what cannot be forgotten is told.
  @Test func aDamagedLedgerKeepsNoMirrorInTheSettings() throws {
    #expect(try add(feed, "m").status == 0)
    #expect(try place.tarn("sync", "m").status == 0)
    try place.write("damaged", "m/.tarn/ledger.sqlite")
    let removed = try place.tarn("remove", "--forget", "m")
    #expect(removed.status != 0 && removed.output.contains("removed m from the settings"), "\(removed)")
    #expect(removed.messages.contains("ledger"), "\(removed)")
    #expect(!place.exists("conf.d/m.toml") && place.exists("m/.tarn"))
  }

  @Test func aHookThatNamesTheMirrorHasToLetGoOfItFirst() throws {
    #expect(try add(feed, "m").status == 0)
    try place.write("[hook.p]\ncommand = [\"/bin/true\"]\nmirrors = [\"m\"]\n", "tarn.toml")
    let refused = try place.tarn("remove", "m")
    #expect(
      refused.status == 78 && refused.messages.contains("'mirrors' of [hook.p] names 'm'"), "\(refused)")
    #expect(
      refused.messages.contains(
        "hint: take 'm' out of it first, or the whole hook if it is for no other mirror; then: tarn remove m"),
      "\(refused)")
    #expect(place.exists("conf.d/m.toml"))
  }

  /// A mirror with it would fail at each pass, so nobody is told to write it all the same.
  @Test func aFileThatEachPassRefusesIsNotWrittenUnasked() throws {
    try place.write("<html>\n", "cookies")
    chmod("\(place.path)/cookies", 0o600)
    let result = try add(feed, "m", "--cookies", "\(place.path)/cookies")
    #expect(result.status == 78 && result.messages.contains("not one of a Netscape cookie file"), "\(result)")
    #expect(
      result.messages.contains("nothing was written") && !result.messages.contains("--no-check"), "\(result)")
  }

  @Test func aNameThatIsNearlyRightIsTold() throws {
    #expect(try add(feed, "podcasts").status == 0)
    #expect(try place.tarn("remove", "podcats").messages.contains("did you mean 'podcasts'?"))
  }

  /// An administrator who let only a group read the settings means the new file, too.
  @Test(.enabled(if: geteuid() == 0, "only root's settings are for others to read"))
  func theFileIsAsOpenAsTheSettings() throws {
    func mode(_ name: String) throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: "\(place.path)/\(name)")[.posixPermissions] as? Int
    }
    #expect(try add(feed, "a").status == 0)
    #expect(try mode("conf.d/a.toml") == 0o644)
    try place.write("", "tarn.toml")
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: place.path + "/tarn.toml")
    #expect(try add(feed, "b").status == 0)
    #expect(try mode("conf.d/b.toml") == 0o640)
  }

  @Test(
    arguments: [
      ("/srv/iso", "iso"), ("/srv/My Files", "My-Files"), ("/srv/v1.2", "v1-2"), ("/srv/session", nil),
      ("/", nil),
      ("/srv/...", nil), ("/srv/b\u{FC}cher", "b\u{FC}cher"), ("/srv/-x-", "x"),
    ] as [(String, String?)]) func namesOfFolders(_ folder: String, _ name: String?)
  {
    #expect(MirrorAdding.name(of: folder) == name)
  }
}
