import Foundation
import Testing

/// The table of what can be wrong with the input: an exit status for each, and nothing changed.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
struct BadInputTests {
  private let server: Nginx
  /// Has `slow.bin`.
  private let held: HeldServer
  private let place: TemporaryDirectory
  private var folder: String { place.path + "/mirror" }

  init() throws {
    held = try HeldServer(.bodies)
    server = try Nginx(
      locations: """
        location = /slow.bin { \(held.location) }
        location = /broken { return 500; }
        location = /secret { return 401; }
        location = /away { return 302 http://localhost:$server_port/secret; }
        """)
    place = try TemporaryDirectory()
  }

  /// A folder that the user made, and that is no mirror yet, stays as it is when the feed cannot be had.
  @Test func anEmptyFolderSurvivesABadFeed() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    try FileManager.default.setAttributes([.posixPermissions: 0o750], ofItemAtPath: folder)
    #expect(try Tarn.sync(server.url("missing/SHA256SUMS"), folder).status == 66)
    let modes = try FileManager.default.attributesOfItem(atPath: folder)
    #expect(modes[.posixPermissions] as? Int == 0o750)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
    try FileManager.default.removeItem(atPath: folder)
    #expect(try Tarn.sync(server.url("missing/SHA256SUMS"), folder).status == 66)
    #expect(!FileManager.default.fileExists(atPath: folder))
  }

  /// A wrong password is no missing one.
  @Test func aRefusalOfCredentialsSaysWhichWereGiven() throws {
    let none = try Tarn.sync(server.url("secret"), folder)
    #expect(none.status == 66 && none.errors.contains("asks for: --netrc-file FILE, --netrc or"), "\(none)")
    #expect(!none.errors.contains("it refused"), "\(none)")
    try place.write("machine 127.0.0.1 login ann password wrong\n", to: "netrc")
    try place.write("Authorization: Bearer wrong\n", to: "headers")
    for (option, file, words) in [
      ("--netrc-file", "netrc", "machine HOST login NAME password WORD"),
      ("--header-file", "headers", "check the file of --header-file"),
    ] {
      chmod("\(place.path)/\(file)", 0o600)
      let outcome = try Tarn.sync(server.url("secret"), folder, option, "\(place.path)/\(file)")
      #expect(outcome.status == 66 && outcome.errors.contains("; it refused "), "\(outcome)")
      #expect(outcome.errors.contains(words) && !outcome.errors.contains("wrong"), "\(outcome)")
      let plan = try Tarn.run(["plan", server.url("secret"), folder, option, "\(place.path)/\(file)"])
      #expect(
        plan.status == 66 && plan.errors.contains("; it refused ") && plan.errors.contains(words), "\(plan)")
    }
  }

  /// What is for the feed's host did not go to the host that refused.
  @Test func aRefusalByAnotherHostIsNotOneOfTheHeaders() throws {
    try place.write("Authorization: Bearer right\n", to: "headers")
    try place.write("machine localhost login ann password right\n", to: "netrc")
    for file in ["headers", "netrc"] { chmod("\(place.path)/\(file)", 0o600) }
    let headers = try Tarn.sync(server.url("away"), folder, "--header-file", "\(place.path)/headers")
    #expect(
      headers.status == 66 && headers.errors.contains("; that was http://localhost:")
        && headers.errors.contains("goes to the feed's own scheme, host and port only")
        && !headers.errors.contains("it refused"),
      "\(headers)")
    let netrc = try Tarn.sync(server.url("away"), folder, "--netrc-file", "\(place.path)/netrc")
    #expect(
      netrc.status == 66 && netrc.errors.contains("; that was http://localhost:")
        && netrc.errors.contains("over https only"), "\(netrc)")
  }

  /// Damage anywhere in the ledger, also where only reading finds it: set aside, rebuilt, nothing deleted.
  @Test(arguments: [1, 2, 3, 5])
  func aDamagedLedgerIsRebuilt(page: Int) throws {
    let wanted = Feeds.sample(200)
    try Feeds.publish(wanted, in: server.files)
    let feed = server.url("SHA256SUMS")
    try #require(try Tarn.sync(feed, folder).status == 0)
    let ledger = folder + "/.tarn/ledger.sqlite"
    let file = try #require(FileHandle(forUpdatingAtPath: ledger))
    try file.seek(toOffset: UInt64(page) * 4096)
    try file.write(contentsOf: Data((0..<4096).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 11) }))
    try file.close()
    #expect(try Tarn.sync(feed, folder).status == 0)
    #expect(try Tarn.sync(feed, folder).status == 0)
    for path in wanted.keys { #expect(place.exists("mirror/" + path)) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder + "/.tarn/trash").isEmpty)
  }

  /// Without its record an old version may be anybody's file: it is left, and the words say what happened and what to do.
  @Test func anOldVersionBesideADamagedLedgerIsToldWhy() throws {
    let feed = server.url("SHA256SUMS")
    try Feeds.publish(["a": "old\n", "b": "same\n"], in: server.files)
    try #require(try Tarn.sync(feed, folder, "--no-keep-list").status == 0)
    try Feeds.publish(["a": "new\n", "b": "same\n"], in: server.files)
    try place.remove("mirror/.tarn/ledger.sqlite")
    try place.write("damaged", to: "mirror/.tarn/ledger.sqlite")
    let outcome = try Tarn.sync(feed, folder, "--no-keep-list")
    #expect(outcome.status == 3 && place.text("mirror/a") == "old\n", "\(outcome)")
    #expect(outcome.errors.contains("it leaves all other files"), "\(outcome)")
    #expect(outcome.output.contains("Tarn has no record of"), "\(outcome)")
    #expect(outcome.output.contains("move it away to get the mirror's"), "\(outcome)")
    try place.remove("mirror/a")
    #expect(try Tarn.run(["sync", folder]).status == 0 && place.text("mirror/a") == "new\n")
  }

  /// Every name that a pass tells can be asked about, whatever its bytes.
  @Test func everyNameThatIsToldIsExplained() throws {
    try Feeds.publish(["good": "good\n"], in: server.files)
    let good = try #require(server.files.text("SHA256SUMS"))
    try server.files.write(good + "\(Self.sum)  ../x\n\(Self.sum)  a\u{202E}b\n", to: "SHA256SUMS")
    #expect(try Tarn.sync(server.url("SHA256SUMS"), folder).status == 3)
    for name in ["../x", "a\u{202E}b"] {
      let outcome = try Tarn.run(["explain", folder, name])
      #expect(outcome.status == 0 && outcome.output.contains("refused"), "\(outcome)")
    }
    let shell = try Program(
      "/bin/sh", ["-c", "exec '\(Tarn.path)' explain mirror \"$(printf 'lat\\351')\""],
      environment: Tarn.environment(), in: place.url)
    let outcome = try shell.wait()
    #expect(outcome.status == 0 && outcome.output.contains("lat\\xe9"), "\(outcome)")
  }

  private static let sum = String(repeating: "0", count: 64)

  /// A feed, by what the server says: its name, type by extension, contents.
  struct Bad: Sendable, CustomTestStringConvertible {
    var name: String
    var contents: String?
    var status: Int32
    var testDescription: String { "\(name): \(status)" }
  }

  private static let header = #"{"header":{"format":"mirror-manifest/1","complete":true}}"#
  static let table = [
    Bad(name: "missing/SHA256SUMS", contents: nil, status: 66),
    Bad(name: "broken", contents: nil, status: 66),
    Bad(name: "empty/SHA256SUMS", contents: "", status: 65),
    Bad(
      name: "login.html",
      contents:
        "<!DOCTYPE html><html><head><title>Sign in</title></head><body><form action=\"/login\" method=\"post\">"
        + "<input name=\"password\" type=\"password\"></form></body></html>\n", status: 65),
    Bad(
      name: "cut.ndjson",
      contents: header + "\n" + #"{"path":"a.txt","size":1,"hashes":{"sha-256":"\#(sum)"}}"# + "\n",
      status: 65),
    Bad(name: "half.ndjson", contents: header + "\n" + #"{"path":"a.txt","si"#, status: 65),
    Bad(
      name: "half.json", contents: #"{"manifest":{"format":"mirror-manifest/1"},"files":[{"path":"a"#,
      status: 65),
    Bad(
      name: "half.meta4",
      contents: "<?xml version=\"1.0\"?><metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file na",
      status: 65),
    Bad(name: "binary/SHA256SUMS", contents: "\u{0}\u{1}\u{2}\u{3}binary\u{0}", status: 65),
  ]

  @Test(arguments: table)
  func aBadFeedChangesNothing(bad: Bad) throws {
    // A folder that follows a good feed first: what it holds has to survive.
    try Feeds.publish(["kept.txt": "kept\n"], in: server.files)
    let first = try Tarn.sync(server.url("SHA256SUMS"), folder, "--delete")
    try #require(first.status == 0, "\(first)")
    if let contents = bad.contents { try server.files.write(contents, to: bad.name) }
    let again = try Tarn.sync(server.url(bad.name), folder, "--change-feed", "--delete", "--retries", "0")
    #expect(again.status == bad.status, "\(again)")
    #expect(!again.errors.isEmpty)
    #expect(place.text("mirror/kept.txt") == "kept\n")

    let fresh = try Tarn.sync(server.url(bad.name), place.path + "/fresh", "--retries", "0")
    #expect(fresh.status == bad.status, "\(fresh)")
    #expect(place.files().filter { $0.hasPrefix("fresh/") && !$0.hasPrefix("fresh/.tarn") } == [])
  }

  @Test func nobodyListening() throws {
    let port = try Loopback.freePort()
    let outcome = try Tarn.sync("http://127.0.0.1:\(port)/SHA256SUMS", folder, "--retries", "0")
    #expect(outcome.status == 66, "\(outcome)")
  }

  @Test func aLocalFeedThatIsNotThere() throws {
    let outcome = try Tarn.sync(place.path + "/no/such/SHA256SUMS", folder)
    #expect(outcome.status == 66, "\(outcome)")
  }

  @Test(arguments: [
    ["sync", "--no-such-option"], ["no-such-command"], ["sync", "http://127.0.0.1:9/x"],
    ["sync", "http://127.0.0.1:9/x", "/", "--adopt"],
    ["sync", "http://user:password@127.0.0.1:9/x", "./folder"],
    ["sync", "http://127.0.0.1:9/x", "./folder", "--connections", "many"], ["explain"], ["approve"],
  ])
  func wrongUseIsSixtyFour(arguments: [String]) throws {
    let outcome = try Tarn.run(arguments, in: place.url)
    #expect(outcome.status == 64, "\(outcome)")
    #expect(outcome.output.isEmpty && !outcome.errors.isEmpty, "\(outcome)")
  }

  /// A repaired name would lead to another directory.
  @Test(arguments: [
    "mkdir \"$1\"; exec \"$0\" sync ./list \"$1\"", "mkdir \"$1\"; cd \"$1\"; exec \"$0\" sync ../list m",
  ])
  func aFolderThatIsNotUTF8IsRefused(script: String) throws {
    try place.write("", to: "list")
    let outcome = try Program(
      "/bin/bash", ["-c", "set -- $'folder\\xfe'; " + script, Tarn.path],
      environment: Tarn.environment(), in: place.url
    ).wait()
    #expect(outcome.status == 64, "\(outcome)")
    #expect(outcome.errors.contains("not UTF-8") && outcome.errors.contains("\\xfe"), "\(outcome)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: place.path).count == 2)
  }

  @Test func twoSpellingsOfOneNameAreTwoMirrors() throws {
    try Feeds.publish(["a.txt": "a\n"], in: server.files)
    let home = ["HOME": place.path]
    for name in ["caf\u{E9}", "cafe\u{301}"] {
      let folder = place.path + "/" + name
      let outcome = try Tarn.run(
        ["sync", server.url("SHA256SUMS"), folder, "--no-input"], environment: home)
      #expect(outcome.status == 0, "\(outcome)")
    }
    let status = try Tarn.run(["status", "--json"], environment: home)
    let document = try #require(JSON.documents(status.output).first)
    #expect((document["mirrors"] as? [Any])?.count == 2, "\(status)")
  }

  @Test func theHomeDirectoryIsRefused() throws {
    let outcome = try Tarn.run(
      ["sync", server.url("SHA256SUMS"), place.path, "--adopt", "--no-input"],
      environment: ["HOME": place.path])
    #expect(outcome.status == 64, "\(outcome)")
  }

  @Test func aPasswordInAURLIsNotRepeated() throws {
    let outcome = try Tarn.sync("http://user:hunter2@127.0.0.1:9/SHA256SUMS", folder)
    #expect(outcome.status == 64, "\(outcome)")
    #expect(!(outcome.output + outcome.errors).contains("hunter2"))
  }

  @Test func aFolderWithFilesNeedsAdopt() throws {
    try Feeds.publish(["a.txt": "a\n"], in: server.files)
    try place.write("mine\n", to: "mirror/mine.txt")
    let refused = try Tarn.sync(server.url("SHA256SUMS"), folder)
    #expect(refused.status == 64, "\(refused)")
    let command = refused.errors.split(separator: "\n").first {
      $0.contains("tarn sync") && $0.contains("--adopt")
    }
    #expect(
      command?.contains(folder) == true && command?.contains(server.url("SHA256SUMS")) == true, "\(refused)")
    #expect(!place.exists("mirror/.tarn"))
    let adopted = try Tarn.sync(server.url("SHA256SUMS"), folder, "--adopt")
    #expect(adopted.status == 0, "\(adopted)")
    #expect(place.text("mirror/mine.txt") == "mine\n")
    #expect(place.text("mirror/a.txt") == "a\n")
  }

  @Test func aMarkerThatIsGoneStopsEverything() throws {
    try Feeds.publish(["a.txt": "a\n"], in: server.files)
    try #require(try Tarn.sync(server.url("SHA256SUMS"), folder).status == 0)
    try place.remove("mirror/.tarn/id")
    try place.remove("mirror/a.txt")
    let outcome = try Tarn.sync(server.url("SHA256SUMS"), folder)
    #expect(outcome.status == 73, "\(outcome)")
    #expect(!place.exists("mirror/a.txt"))
  }

  @Test func aWrongDigestIsAFailedEntry() throws {
    try Feeds.publish(["good.txt": "good\n"], in: server.files)
    try server.files.write("other bytes\n", to: "bad.txt")
    let list = (server.files.text("SHA256SUMS") ?? "") + "\(Self.sum)  bad.txt\n"
    try server.files.write(list, to: "SHA256SUMS")
    let outcome = try Tarn.sync(server.url("SHA256SUMS"), folder, "--retries", "0")
    #expect(outcome.status == 3, "\(outcome)")
    #expect((outcome.output + outcome.errors).contains("bad.txt"), "\(outcome)")
    #expect(!place.exists("mirror/bad.txt"))
    #expect(place.text("mirror/good.txt") == "good\n")
  }

  @Test func namesThatLeaveTheFolderAreRefusedAndNamed() throws {
    try Feeds.publish(["good.txt": "good\n"], in: server.files)
    let sum = try Feeds.sha256(server.files.url.appendingPathComponent("good.txt"))
    let list = ["good.txt", "../out.txt", "/etc/out.txt", "a/../../out.txt", ".tarn/id"].map {
      "\(sum)  \($0)\n"
    }
    try server.files.write(list.joined(), to: "SHA256SUMS")
    let outcome = try Tarn.sync(server.url("SHA256SUMS"), folder, "--retries", "0")
    #expect(outcome.status == 3, "\(outcome)")
    for name in ["../out.txt", "/etc/out.txt", ".tarn/id"] {
      #expect((outcome.output + outcome.errors).contains(name))
    }
    #expect(
      place.files().filter { !$0.hasPrefix("mirror/.tarn/") } == ["mirror/SHA256SUMS", "mirror/good.txt"])
  }

  /// Else a pass from below would follow a feed of the attacker's and send it the secrets that its ledger names.
  @Test func aFeedCannotPlantAMirror() throws {
    try Feeds.publish(["good.txt": "good\n"], in: server.files)
    let sum = try Feeds.sha256(server.files.url.appendingPathComponent("good.txt"))
    let list = ["good.txt", "sub/.tarn", "deep/er/.tarn/id", "deep/er/.tarn/ledger.sqlite", "sub/hi"].map {
      "\(sum)  \($0)\n"
    }
    for name in ["sub/.tarn", "deep/er/.tarn/id", "deep/er/.tarn/ledger.sqlite", "sub/hi"] {
      try server.files.write("good\n", to: name)
    }
    try server.files.write(list.joined(), to: "SHA256SUMS")
    let outcome = try Tarn.sync(server.url("SHA256SUMS"), folder, "--retries", "0")
    #expect(outcome.status == 3, "\(outcome)")
    #expect(outcome.errors.contains("[path-reserved]"), "\(outcome)")
    let found = place.files().filter { !$0.hasPrefix("mirror/.tarn/") }
    #expect(found == ["mirror/SHA256SUMS", "mirror/good.txt", "mirror/sub/hi"])
  }

  /// A mirror that the user moved below another one: neither named nor touched, not even by deletions.
  @Test func aMirrorBelowAnotherIsLeftAlone() throws {
    try Feeds.publish(["a.txt": "a\n", "sub/b.txt": "b\n"], in: server.files)
    let feed = server.url("SHA256SUMS")
    try #require(try Tarn.sync(feed, folder, "--delete").status == 0)
    try #require(try Tarn.sync(feed, place.path + "/beside").status == 0)
    try FileManager.default.moveItem(atPath: place.path + "/beside/.tarn", toPath: folder + "/sub/.tarn")
    let inner = place.files().filter { $0.hasPrefix("mirror/sub/.tarn/") }
    #expect(inner.contains("mirror/sub/.tarn/id"))
    try Feeds.publish(["a.txt": "a\n"], in: server.files)
    let outcome = try Tarn.sync(feed, folder, "--delete")
    #expect(outcome.status == 0, "\(outcome)")
    #expect(!(outcome.output + outcome.errors).contains(".tarn/"), "\(outcome)")
    #expect(!place.exists("mirror/sub/b.txt"))
    #expect(place.files().filter { $0.hasPrefix("mirror/sub/.tarn/") } == inner)
  }

  /// What comes through a pipe may be anybody's: `curl ... | tarn sync - FOLDER`.
  @Test func aFeedOnStandardInputReadsNoLocalFile() throws {
    try server.files.write("good\n", to: "good.txt")
    let secret = try place.write("secret\n", to: "secret.txt")
    let sources = [
      ("file", secret.absoluteString), ("beside", "secret.txt"), ("path", secret.path),
      ("good.txt", server.url("good.txt")),
    ]
    let files = sources.map { #"{"path":"\#($0)","url":"\#($1)"}"# }.joined(separator: ",")
    try place.write(#"{"manifest":{"format":"mirror-manifest/1"},"files":[\#(files)]}"#, to: "feed")
    let outcome = try Program(
      "/bin/sh", ["-c", "exec \"$0\" sync - mirror --no-input < feed", Tarn.path],
      environment: Tarn.environment(), in: place.url
    ).wait()
    #expect(outcome.status == 3, "\(outcome)")
    #expect(outcome.errors.contains("[no-usable-source]"), "\(outcome)")
    #expect(outcome.errors.contains("standard input"), "\(outcome)")
    let found = place.files().filter { $0.hasPrefix("mirror/") && !$0.hasPrefix("mirror/.tarn/") }
    #expect(found == ["mirror/good.txt"])
  }

  /// What a local feed names elsewhere is refused, and the rest goes on.
  @Test func aLocalFeedNamesNoFileElsewhere() throws {
    let secret = try place.write("secret\n", to: "secret.txt")
    try place.write("good\n", to: "feeds/good.txt")
    let urls = [secret.absoluteString, secret.path, "../secret.txt", "%2e%2e/secret.txt", "good.txt"]
    let files = urls.enumerated().map { #"{"path":"f\#($0)","url":"\#($1)"}"# }.joined(separator: ",")
    try place.write(#"{"manifest":{"format":"mirror-manifest/1"},"files":[\#(files)]}"#, to: "feeds/list")
    let outcome = try Tarn.run(["sync", "./feeds/list", "mirror", "--no-input"], in: place.url)
    #expect(outcome.status == 3, "\(outcome)")
    #expect(outcome.errors.contains("[no-usable-source]") && outcome.errors.contains("own directory"))
    let found = place.files().filter { $0.hasPrefix("mirror/") && !$0.hasPrefix("mirror/.tarn/") }
    #expect(found == ["mirror/f4"])
  }

  /// A server of http:// addresses, asked by https://.
  @Test func aServerWithoutTLSIsNotAskedForACertificate() throws {
    let url = "https" + server.url("SHA256SUMS").dropFirst("http".count)
    let outcome = try Tarn.sync(url, folder)
    #expect(outcome.status == 66 && outcome.errors.contains("may begin with http://"), "\(outcome)")
    #expect(!outcome.errors.contains("OpenSSL") && !outcome.errors.contains("--cacert"), "\(outcome)")
    #expect(!outcome.errors.contains("trying again"), "\(outcome)")
  }

  @Test func aDigestThatCannotBeCheckedIsSaid() throws {
    for name in ["a.txt", "b.txt"] { try server.files.write("a\n", to: name) }
    let sum = try Feeds.sha256(server.files.url.appendingPathComponent("b.txt"))
    try server.files.write(
      #"{"manifest":{"format":"mirror-manifest/1"},"files":[{"path":"a.txt","hashes":{"blake3":"00"}},"#
        + #"{"path":"b.txt","hashes":{"blake3":"00","sha-256":"\#(sum)"}}]}"#, to: "manifest.json")
    let outcome = try Tarn.sync(server.url("manifest.json"), folder)
    #expect(outcome.status == 3, "\(outcome)")
    #expect(outcome.errors.contains("[digest-unsupported]"), "\(outcome)")
    #expect(!place.exists("mirror/a.txt"))
    #expect(place.text("mirror/b.txt") == "a\n")
    let status = try Tarn.run(["status", folder])
    #expect(status.output.contains("digest-unsupported"), "\(status)")
  }

  @Test func aSecondTarnIsTurnedAway() throws {
    try Feeds.publish(["slow.bin": String(repeating: "slow", count: 500_000)], in: server.files)
    let first = try Tarn.start(["sync", server.url("SHA256SUMS"), folder, "--no-input"])
    defer {
      first.signal(SIGKILL)
      _ = try? first.wait()
    }
    try waitUntil("the first pass is at work") { !place.contents(below: "mirror/.tarn/partial").isEmpty }
    let second = try Tarn.sync(server.url("SHA256SUMS"), folder)
    #expect(second.status == 75, "\(second)")
    #expect(second.errors.contains("\(first.pid)"), "it says which process: \(second)")
    let status = try Tarn.run(["status", folder])
    #expect(status.status == 0, "status works beside a running pass: \(status)")
  }

  @Test(arguments: [(SIGINT, Int32(130)), (SIGTERM, Int32(143))])
  func aSignalEndsThePassAndKeepsTheBytes(signal: Int32, status: Int32) throws {
    try Feeds.publish(["slow.bin": String(repeating: "slow", count: 500_000)], in: server.files)
    let pass = try Tarn.start(["sync", server.url("SHA256SUMS"), folder, "--no-input"])
    try waitUntil("bytes have arrived") {
      place.contents(below: "mirror/.tarn/partial").contains { $0.hasPrefix("slow") }
    }
    pass.signal(signal)
    let outcome = try pass.wait()
    #expect(outcome.status == status && !outcome.wasKilled, "\(outcome)")
    #expect(!place.exists("mirror/slow.bin"))
    #expect(!place.contents(below: "mirror/.tarn/partial").isEmpty)
  }

  /// The options that the unit and its example of settings give are options of `tarn sync`.
  @Test func theServiceUsesOptionsThatExist() throws {
    let root = Tool.directory.deletingLastPathComponent().deletingLastPathComponent()
    let help = try Tarn.run(["sync", "--help"]).output
    var used: Set<String> = []
    for (file, key) in [
      ("config/example.env", "TARN_OPTIONS="), ("packaging/systemd/tarn@.service", "ExecStart="),
    ] {
      let text = try String(contentsOf: root.appendingPathComponent(file), encoding: .utf8)
      for line in text.split(separator: "\n") where line.hasPrefix(key) {
        let words = line.dropFirst(key.count).split(whereSeparator: { " \"".contains($0) })
        used.formUnion(words.filter { $0.hasPrefix("--") }.map(String.init))
      }
    }
    #expect(used.count >= 3)
    for option in used.sorted() { #expect(help.contains(option), "\(option)") }
  }

  @Test func versionAndHelpGoToStandardOutput() throws {
    for arguments in [["--version"], ["--help"], ["sync", "--help"]] {
      let outcome = try Tarn.run(arguments)
      #expect(outcome.status == 0 && !outcome.output.isEmpty && outcome.errors.isEmpty, "\(outcome)")
    }
  }
}
