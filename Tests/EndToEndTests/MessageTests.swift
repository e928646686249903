import Foundation
import Testing

/// Slips that users make: each ends with the status of its kind, and says what to do.
@Suite(.serialized, .enabled(if: Tarn.obstacle == nil, "\(Tarn.obstacle ?? "")"))
struct MessageTests {
  private let place: TemporaryDirectory

  init() throws {
    place = try TemporaryDirectory()
    try Feeds.publish(["a.txt": "a\n"], in: place)
  }

  private func tarn(_ arguments: String...) throws -> Outcome { try tarn(arguments) }

  private func tarn(_ arguments: [String]) throws -> Outcome {
    try Tarn.run(arguments, environment: ["HOME": place.path + "/home"], in: place.url)
  }

  private func expect(_ outcome: Outcome, _ status: Int32, _ words: String, without other: String = "\0") {
    #expect(outcome.status == status, "\(outcome)")
    #expect(outcome.errors.contains(words) && !outcome.errors.contains(other), "\(outcome)")
  }

  @Test func aProxyThatIsNoURLIsWrongUsage() throws {
    expect(try tarn("sync", "--proxy", "foo", "http://127.0.0.1:9/x", "m"), 64, "--proxy")
    #expect(!place.exists("m"))
  }

  /// `--quiet` prints nothing unless something is wrong, here as in every command.
  @Test func aQuietStatusTellsWhatIsWrongOnly() throws {
    #expect(try tarn("sync", "-q", "./SHA256SUMS", "good").status == 0)
    let calm = try tarn("status", "-q", "good")
    #expect(calm.status == 0 && calm.output.isEmpty && calm.errors.isEmpty, "\(calm)")
    try FileManager.default.createDirectory(
      atPath: place.path + "/bad/a.txt", withIntermediateDirectories: true)
    #expect(try tarn("sync", "-q", "--adopt", "./SHA256SUMS", "bad").status == 3)
    let both = try tarn("status", "-q", "good", "bad")
    #expect(both.status == 0 && both.errors.isEmpty, "\(both)")
    #expect(both.output.hasPrefix("\(place.path)/bad: failing\n"), "\(both)")
    #expect(both.output.hasSuffix("next: tarn explain \(place.path)/bad a.txt\n"), "\(both)")
    #expect(!both.output.contains("good"), "\(both)")
  }

  /// A mirror of the settings has the folder's name: the bare word would mean that one.
  @Test func aFolderThatIsCalledLikeAMirrorIsToldApart() throws {
    try place.write(
      "[mirror.bad]\nfeed = \"http://127.0.0.1:9/x\"\nfolder = \"\(place.path)/other\"\n", to: "tarn.toml")
    try FileManager.default.createDirectory(
      atPath: place.path + "/bad/a.txt", withIntermediateDirectories: true)
    let config = ["--config", "tarn.toml"]
    let refused = try tarn(["sync", "./SHA256SUMS", "bad"] + config)
    #expect(refused.errors.contains("tarn sync --adopt ./SHA256SUMS ./bad"), "\(refused)")
    let failed = try tarn(["sync", "--adopt", "./SHA256SUMS", "bad"] + config)
    #expect(
      failed.output.hasSuffix("next: tarn explain ./bad a.txt --config \(place.path)/tarn.toml\n"),
      "\(failed)")
    try place.write("", to: "OTHER")
    let other = try tarn(["sync", "./OTHER", "bad"] + config)
    #expect(other.errors.contains(" ./bad --config ") && !other.errors.contains(" bad"), "\(other)")
    #expect(try tarn(["explain", "./bad", "a.txt"] + config).output.hasPrefix("a.txt: conflict\n"))
  }

  @Test func aFeedWithoutItsDotIsNamed() throws {
    expect(try tarn("sync", "SHA256SUMS", "m"), 64, "hint: tarn sync ./SHA256SUMS m")
    expect(try tarn("plan", "SHA256SUMS", "m"), 64, "./SHA256SUMS")
  }

  /// Addresses as browsers show them.
  @Test(arguments: [
    ("127.0.0.1:9/SHA256SUMS", "tarn sync https://127.0.0.1:9/SHA256SUMS 'my iso'"),
    ("www.example.org/a b/", "tarn sync 'https://www.example.org/a b/' 'my iso'"),
    ("http:/example.org/list", "tarn sync http://example.org/list 'my iso'"),
    ("https:example.org/list", "tarn sync https://example.org/list 'my iso'"),
  ])
  func aFeedWithoutItsSchemeIsNamed(word: String, command: String) throws {
    expect(try tarn("sync", word, "my iso"), 64, "hint: \(command)", without: "mirror of Tarn's")
  }

  @Test func feedAndFolderSwappedAreSwappedBack() throws {
    expect(
      try tarn("sync", "my iso", "http://127.0.0.1:9/list"), 64,
      "hint: tarn sync http://127.0.0.1:9/list 'my iso'")
  }

  /// `tarn sync --delete` in no mirror would make every known one delete, for good.
  @Test func optionsForAllMirrorsAreRefused() throws {
    try FileManager.default.createDirectory(atPath: place.path + "/home", withIntermediateDirectories: false)
    for folder in ["m", "n"] { #expect(try tarn("sync", "./SHA256SUMS", folder).status == 0) }
    expect(try tarn("sync", "--delete"), 64, "--delete would be remembered by all 2 known mirrors")
    #expect(try tarn("sync").status == 0)
    #expect(try tarn("sync", "--delete", "m", "n").status == 0)
    // Those of the settings remember none.
    let settings = ["a", "b"].map {
      "[mirror.\($0)]\nfeed = \"\(place.path)/SHA256SUMS\"\nfolder = \"\(place.path)/\($0)\"\n"
    }
    try place.write(settings.joined(), to: "t.toml")
    let config = place.path + "/t.toml"
    expect(
      try tarn("sync", "--retries", "1", "--config", config), 64,
      "--retries would be remembered by the 2 mirrors that the settings do not name")
    #expect(try tarn("forget", "n").status == 0)
    expect(
      try tarn("sync", "--retries", "1", "--config", config), 64,
      "--retries would be remembered by \(place.path)/m\n")
    #expect(try tarn("forget", "m").status == 0)
    #expect(try tarn("sync", "--retries", "1", "--config", config).status == 0)
  }

  /// Who set `--delete` while the server was away believes that it stands.
  @Test func optionsThatAreNotRememberedAreTold() throws {
    #expect(try tarn("sync", "--retries", "2", "./SHA256SUMS", "m").status == 0)
    try FileManager.default.moveItem(atPath: place.path + "/SHA256SUMS", toPath: place.path + "/away")
    expect(
      try tarn("sync", "--delete", "--keep-trash", "7d", "m"), 66,
      "nothing remembers '--delete --keep-trash 7d':")
    expect(
      try tarn("sync", "--no-delete", "--retries", "2", "m"), 66, "nothing remembers '--no-delete':")
    expect(try tarn("sync", "--once", "--delete", "m"), 66, "tarn: ", without: "nothing remembers")
    expect(try tarn("sync", "--retries", "2", "m"), 66, "tarn: ", without: "nothing remembers")
    try FileManager.default.moveItem(atPath: place.path + "/away", toPath: place.path + "/SHA256SUMS")
    #expect(try tarn("config", "show", "m").output.contains("delete = false"))
  }

  /// Of a host that is down each file fails: the log and the summary say it once for each cause, and JSON for each file.
  @Test func aHostThatIsDownIsOneProblem() throws {
    try place.write((1...60).map { "http://127.0.0.1:9/f\($0)\n" }.joined(), to: "urls")
    let sync = try tarn("sync", "--retries", "0", "./urls", "m")
    let log = sync.errors.split(separator: "\n").filter { $0.contains(" failed f") }
    #expect(sync.status == 3 && (1...2).contains(log.count), "\(sync)")
    let told = sync.output.split(separator: "\n").filter { $0.hasPrefix("  failed") }
    #expect(told.count == log.count && told.allSatisfy { $0.contains(" other files: ") }, "\(sync)")
    let json = try JSON.documents(try tarn("sync", "--retries", "0", "--json", "m").output)
    #expect(json.count { $0["type"] as? String == "problem" } == 60)
  }

  @Test func theHintToFollowAnotherFeedIsQuoted() throws {
    #expect(try tarn("sync", "./SHA256SUMS", "my dir").status == 0)
    try Data().write(to: place.url.appending(path: "a&b"))
    expect(
      try tarn("sync", "./a&b", "my dir"), 64, "tarn sync --change-feed '\(place.path)/a&b' 'my dir'")
  }

  /// 73 says that nothing was changed.
  @Test func aStateThatCannotBeLeavesNothing() throws {
    #expect(mkfifo(place.path + "/fifo", 0o600) == 0)
    for state in ["fifo", "fifo/x", "/proc/x"] {
      #expect(try tarn("sync", "--state", state, "./SHA256SUMS", "q/deep/er").status == 73)
      #expect(!place.exists("q"))
    }
  }

  /// Typed as it is, the advice makes no second mirror in a folder that is called like the name.
  @Test func theAdviceForAMirrorWithoutAFolderNamesIt() throws {
    for isThere in [false, true] {
      if isThere {
        try FileManager.default.createDirectory(
          atPath: place.path + "/far", withIntermediateDirectories: true)
      }
      try place.write(
        "[mirror.small]\nfeed = \"\(place.path)/SHA256SUMS\"\nfolder = \"\(place.path)/far\"\n",
        to: "tarn.toml")
      let commands = [
        ["explain", "small", "a.txt"], ["verify", "small"], ["approve", "small"], ["trash", "list", "small"],
      ]
      for command in commands {
        let outcome = try tarn(command + ["--config", "tarn.toml"])
        #expect(
          outcome.status == 73
            && outcome.errors.contains("tarn sync small --config \(place.path)/tarn.toml\n"),
          "\(command): \(outcome)")
      }
    }
    #expect(try tarn(["sync", "small", "--config", "tarn.toml"]).status == 0)
    #expect(place.exists("far/a.txt") && !place.exists("small"))
  }

  /// A password that was typed is not said again, to a log or a mail.
  @Test func noMessageRepeatsAPassword() throws {
    for address in [
      "http://us:'S3kr1t@h/x", "http://us:\"S3kr1t@h/x", "http://us:S3kr1t@h/x", "http:/us:S3kr1t@h/x",
    ] {
      for command in [
        ["sync", address], ["sync", address, "m"], ["sync", "m", address], ["plan", address],
        ["status", address],
        ["verify", address], ["sync", "--proxy", address, "http://h/x", "m", "n"], ["verify", "m", address],
        ["sync", "--json", address], ["sync", "--adopt", address, "."],
      ] {
        let outcome = try tarn(command)
        #expect(outcome.status >= 64, "\(command): \(outcome)")
        #expect(!(outcome.output + outcome.errors).contains("S3kr1t"), "\(command): \(outcome)")
      }
    }
  }

  /// `tarn sync FEED "$DIR"` without DIR is not meant for the working directory.
  @Test(arguments: [
    ["sync", "--adopt", "./SHA256SUMS", ""], ["sync", ""], ["sync", "", "m"], ["plan", "./SHA256SUMS", ""],
    ["status", ""], ["verify", ""], ["forget", ""], ["approve", ""], ["trash", "empty", "-y", ""],
    ["sync", "--state", "", "./SHA256SUMS", "m"], ["forget", "--state", "", "m"],
    ["pause", ""], ["resume", "m", ""], ["retry", ""], ["prioritize", ""], ["cancel", ""], ["schedule", ""],
    ["config", "unset", "", "keep"], ["config", "show", ""], ["remove", ""], ["get", ""],
  ])
  func anEmptyNameIsNotTheWorkingDirectory(arguments: [String]) throws {
    let outcome = try Tarn.run(arguments, environment: ["HOME": place.path + "/home"], in: place.url)
    expect(outcome, 64, "is empty\n  hint: is a variable not set?")
    #expect(!place.exists(".tarn") && !place.exists("m"))
  }

  /// Inside a mirror the working directory is one.
  @Test(arguments: [
    ["status", ""], ["status", "--check", ""], ["schedule", ""], ["config", "unset", "", "keep"],
    ["config", "show", ""], ["forget", ""], ["cancel", ""],
  ])
  func anEmptyNameIsNotTheMirrorAround(arguments: [String]) throws {
    #expect(try tarn("sync", "-q", "./SHA256SUMS", "m").status == 0)
    let outcome = try Tarn.run(
      arguments, environment: ["HOME": place.path + "/home"], in: place.url.appendingPathComponent("m"))
    expect(outcome, 64, "the name of the folder is empty\n  hint: is a variable not set?")
    #expect(place.exists("m/.tarn"))
  }

  @Test func aFileInTheFoldersPlaceIsNoSecondFeed() throws {
    expect(
      try tarn("sync", "http://127.0.0.1:9/list", place.path + "/a.txt"), 73, "a.txt is not a folder",
      without: "FOLDER")
  }

  @Test func nothingToDoIsSaid() throws {
    #expect(try tarn("sync", "-q", "./SHA256SUMS", "m").status == 0)
    let emptied = try tarn("trash", "empty", "m")
    #expect(emptied.status == 0 && emptied.output.contains("removed 0 files"), "\(emptied)")
    expect(try tarn("trash", "empty", "m", "gone.txt"), 64, "gone.txt")
    expect(try tarn("approve", "m"), 64, "nothing to approve")
    expect(try tarn("sync", "./SHA256SUMS", "a.txt"), 73, "is not a folder\n  hint:")
  }

  @Test func aDirectoryIsNoFeed() throws {
    try place.write("x\n", to: "dir/x")
    expect(try tarn("sync", "./dir", "m"), 64, "sha256sum * > SHA256SUMS", without: "--adopt")
    try place.write("\n", to: "dir/SHA256SUMS")
    for feed in ["./dir", "file://" + place.path + "/dir"] {
      expect(try tarn("sync", feed, "m"), 64, "dir/SHA256SUMS", without: "--adopt")
    }
    #expect(!place.exists("m") && !place.exists("dir/.tarn"))
  }

  /// One file has one text, however it is written.
  @Test func aFeedsPathIsKeptOnce() throws {
    #expect(try tarn("sync", "./SHA256SUMS", "m").status == 0)
    let path = place.path + "/SHA256SUMS"
    for feed in [path, "file://" + path, "./././SHA256SUMS", "../\(place.url.lastPathComponent)//SHA256SUMS"]
    {
      let outcome = try tarn("sync", feed, "m")
      #expect(outcome.status == 0, "\(feed): \(outcome)")
    }
    #expect(try tarn("status", "--json", "m").output.contains("\(path)\""))
  }

  @Test func restoringOverAFileNamesTheOption() throws {
    #expect(try tarn("sync", "-q", "./SHA256SUMS", "m").status == 0)
    try place.write("mine\n", to: "m/a.txt")
    #expect(try tarn("sync", "-q", "m").status == 0)
    expect(try tarn("trash", "restore", "m", "a.txt"), 64, "--to")
    #expect(try tarn("trash", "restore", "m", "a.txt", "--to", "b.txt").status == 0)
    #expect(place.text("m/b.txt") == "mine\n")
  }

  @Test func aStateThatCannotBeMovedIsWrongUsage() throws {
    #expect(try tarn("sync", "-q", "./SHA256SUMS", "m").status == 0)
    expect(try tarn("sync", "--state", "elsewhere", "m"), 64, "leave --state out")
  }

  @Test func forgettingNothingAsksForNoFeed() throws {
    expect(try tarn("forget", "nope"), 73, "nothing to forget", without: "tarn sync")
  }

  /// SQLite wants real paths as text, and a repaired one would be that of another directory.
  @Test(arguments: ["link", "link/sub", "--state link/state m"])
  func aLinkToANameThatIsNotUTF8IsRefused(folder: String) throws {
    let script =
      "mkdir $'real\\xfe'; ln -s $'real\\xfe' link; '\(Tarn.path)' sync ./SHA256SUMS \(folder); status=$?; "
      + "[ -z \"$(ls -A link)\" ] && [ ! -e m ] && exit $status"
    let outcome = try Program(
      "/bin/bash", ["-c", script], environment: Tarn.environment(), in: place.url
    ).wait()
    expect(outcome, 64, "real\\xfe", without: "through a link")
  }

  /// Names are bytes, also on the way from a local feed to its files.
  @Test func aLocalFileWhoseNameIsNotUTF8IsFetched() throws {
    let script =
      "mkdir feed && cd feed && echo x > $'n\\xff' && sha256sum n* > SHA256SUMS && '\(Tarn.path)' sync ./SHA256SUMS ../m "
      + "&& cmp $'n\\xff' $'../m/n\\xff' && '\(Tarn.path)' explain ../m $'n\\xff' --socket /none --json | grep -q fetched"
    let outcome = try Program(
      "/bin/bash", ["-c", script], environment: Tarn.environment(), in: place.url
    ).wait()
    #expect(outcome.status == 0, "\(outcome)")
  }

  /// What is said to be typed next can be typed: with the feed, and in quotes.
  @Test func theWayBackToALostMarkerIsAWholeCommand() throws {
    #expect(try tarn("sync", "-q", "./SHA256SUMS", "my mirror").status == 0)
    try place.remove("my mirror/.tarn")
    expect(try tarn("sync", "my mirror"), 64, "tarn sync --adopt FEED 'my mirror'")
    expect(try tarn("status", "my mirror"), 73, "tarn sync --adopt FEED 'my mirror'")
    expect(
      try tarn("sync", "--state", "s t", "./SHA256SUMS", "my mirror"), 64,
      "tarn sync --adopt --state 's t' ./SHA256SUMS 'my mirror'")
    #expect(try tarn("sync", "--adopt", "./SHA256SUMS", "my mirror").status == 0)
    try place.remove("my mirror/.tarn/id")
    expect(
      try tarn("sync", "my mirror"), 73, "tarn forget '\(place.path)/my mirror'")
  }

  /// What lies there is the mirror's to remove.
  @Test func aMirrorsRecordIsNoFolderForAnother() throws {
    #expect(try tarn("sync", "-q", "./SHA256SUMS", "m").status == 0)
    try FileManager.default.createSymbolicLink(
      atPath: place.path + "/link", withDestinationPath: place.path + "/m/.tarn")
    #expect(try tarn("sync", "-q", "--state", "record", "./SHA256SUMS", "n").status == 0)
    for folder in [
      "record/x", "record/partial", "record", "m/.tarn/partial", "m/.tarn/trash/new", "m/.tarn", "link/new",
      "other/.tarn",
    ] {
      let outcome = try tarn("sync", "./SHA256SUMS", folder)
      #expect(
        outcome.status == 64 && outcome.errors.contains("inside the record of a mirror"),
        "\(folder): \(outcome)")
    }
    for state in ["m/.tarn/partial", "m/.tarn/new/er", "record/trash", "record/new"] {
      let outcome = try tarn("sync", "--state", state, "./SHA256SUMS", "o")
      #expect(
        outcome.status == 64 && outcome.errors.contains("inside the record of a mirror"),
        "\(state): \(outcome)")
    }
    #expect(!place.exists("other") && !place.exists("m/.tarn/trash/new") && !place.exists("o"))
    #expect(try tarn("sync", "n").status == 0)
    #expect(try tarn("sync", "--state", "record", "n").status == 0)
  }

  /// Swift reads the words from there; without them a job would have printed the help, and ended with 0.
  @Test(.enabled(if: canRemount, "needs the right to mount"))
  func withoutProcNothingIsCalledDone() throws {
    let command = "mount -t tmpfs none /proc && exec '\(Tarn.path)' sync ./SHA256SUMS m"
    let outcome = try Program(
      "/usr/bin/env", ["unshare", "-m", "sh", "-c", command],
      environment: Tarn.environment(["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"]), in: place.url
    ).wait()
    #expect(outcome.status == 70 && outcome.errors.contains("mount /proc"), "\(outcome)")
    #expect(outcome.output.isEmpty && !place.exists("m"))
  }

  static let canRemount: Bool = {
    guard getuid() == 0, let unshare = Program.find("unshare") else { return false }
    return (try? Program(unshare, ["-m", "true"]).wait().status) == 0
  }()

  @Test(.enabled(if: canRemount, "needs the right to mount"))
  func whatNobodyCanWriteIsVerifiedWithoutALock() throws {
    #expect(try tarn("sync", "-q", "./SHA256SUMS", "m").status == 0)
    let remount = "mount --bind m m && mount -o remount,bind,ro m m && cd . && exec '\(Tarn.path)' verify"
    func verify(_ options: String) throws -> Outcome {
      try Program(
        "/usr/bin/env", ["unshare", "-m", "sh", "-c", "\(remount) \(options) m"],
        environment: Tarn.environment(["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"]), in: place.url
      ).wait()
    }
    let good = try verify("")
    #expect(good.status == 0 && good.output.contains("all good"), "\(good)")
    try place.write("b\n", to: "m/a.txt")
    #expect(try verify("").status == 3)
    expect(try verify("--repair"), 74, "read-only file system")
  }
}
