import Foundation
import Testing

/// `tarn get`, against nginx.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
struct GetTests {
  private let server: Nginx
  /// Behind `slow/`.
  private let held: HeldServer
  private let place: TemporaryDirectory
  private var out: String { place.path + "/out/" }

  init() throws {
    held = try HeldServer(.bodies)
    server = try Nginx(
      locations: """
        location /slow/ { \(held.location) }
        location /named { add_header Content-Disposition 'attachment; filename="said.txt"'; return 200 "named"; }
        location /evil { add_header Content-Disposition 'attachment; filename="../../evil"'; return 200 "evil"; }
        location /secret { return 401; }
        location /agent { return 200 $http_user_agent; }
        location /busy { return 503; }
        location /folder/ { return 200 "index"; }
        location /away { return 302 /a.txt; }
        """)
    place = try TemporaryDirectory()
    try server.files.write("hello\n", to: "a.txt")
    try FileManager.default.createDirectory(atPath: out, withIntermediateDirectories: true)
  }

  private var variables: [String: String] {
    ["HOME": place.path + "/home", "XDG_STATE_HOME": place.path + "/state"]
  }

  private func get(_ arguments: String...) throws -> Outcome {
    try Tarn.run(["get"] + arguments, environment: variables, in: place.url)
  }

  /// Of all files in `out`.
  private var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: out).sorted()) ?? [] }

  /// Records of downloads that are not over.
  private var records: [String] {
    (try? FileManager.default.contentsOfDirectory(atPath: place.path + "/state/tarn/get")) ?? []
  }

  @Test func aFileIsThereAndNothingElse() throws {
    let outcome = try get(server.url("a.txt"), "--to", out)
    #expect(outcome.status == 0 && outcome.output.contains("\(out)a.txt"), "\(outcome)")
    #expect(place.text("out/a.txt") == "hello\n" && names == ["a.txt"])
    #expect(records.isEmpty)
  }

  @Test func aFileWithoutANameIsTold() throws {
    let outcome = try get(server.url("folder/"), "--to", out)
    #expect(outcome.status == 0 && names == ["unnamed"], "\(outcome)")
    #expect(outcome.errors.contains("--name NAME"), "\(outcome)")
    let named = try get(server.url("folder/"), "--to", out, "--name", "index")
    #expect(named.status == 0 && !named.errors.contains("--name"), "\(named)")
    #expect(names == ["index", "unnamed"])
  }

  @Test func withoutAPlaceItGoesHere() throws {
    #expect(try get(server.url("a.txt")).status == 0)
    #expect(place.text("a.txt") == "hello\n")
  }

  @Test func theServersNameIsMadeSafe() throws {
    #expect(try get(server.url("named"), server.url("evil"), server.url("away"), "--to", out).status == 0)
    #expect(names == ["a.txt", "evil", "said.txt"])
  }

  @Test func aDigestIsChecked() throws {
    let sum = try Feeds.sha256(server.files.url.appendingPathComponent("a.txt"))
    #expect(try get(server.url("a.txt"), "--to", out + "good", "--sha256", sum).status == 0)
    let wrong = String(repeating: "0", count: 64)
    let outcome = try get(server.url("a.txt"), "--to", out + "bad", "--sha256", wrong, "--retries", "0")
    #expect(outcome.status == 65 && outcome.errors.contains("sha-256"), "\(outcome)")
    #expect(names == ["good"])
  }

  @Test func whatTheServerDoesNotHaveIsSaid() throws {
    let outcome = try get(server.url("nothing"), "--to", out)
    #expect(outcome.status == 66 && outcome.errors.contains("404"), "\(outcome)")
    let words = ["tarn: ", "\n  hint: check the URL"]
    #expect(words.allSatisfy(outcome.errors.contains) && !outcome.errors.contains("error: "), "\(outcome)")
    #expect(names.isEmpty && records.isEmpty)
    let several = try get(server.url("nothing"), server.url("a.txt"), "--to", out)
    #expect(several.status == 3 && place.text("out/a.txt") == "hello\n", "\(several)")
  }

  /// What is there is no obstacle when the rest is tried again.
  @Test func whatFailedIsTriedAgain() throws {
    let words = [server.url("late.txt"), server.url("a.txt"), "--to", out]
    for _ in 0..<2 {
      let outcome = try Tarn.run(["get"] + words, environment: variables, in: place.url)
      #expect(outcome.status == 3 && outcome.errors.contains("404"), "\(outcome)")
      #expect(!outcome.errors.contains("is there already") && names == ["a.txt"], "\(outcome)")
    }
    try server.files.write("late\n", to: "late.txt")
    let outcome = try Tarn.run(["get"] + words, environment: variables, in: place.url)
    #expect(outcome.status == 0 && names == ["a.txt", "late.txt"] && records.isEmpty, "\(outcome)")
  }

  /// Status 3, JSON for each.
  @Test func programsHearOfEach() throws {
    let outcome = try get(server.url("nothing"), server.url("a.txt"), "--to", out, "--json")
    let tasks = try JSON.documents(outcome.output).filter { $0["request"] != nil }
    let states = tasks.map { $0["state"] as? String }
    #expect(Set(states) == ["failed", "finished"] && outcome.status == 3, "\(outcome)")
  }

  @Test(arguments: [
    ("fail", Int32(73), ["a.txt"]), ("replace", Int32(0), ["a.txt"]),
    ("keep-both", Int32(0), ["a (1).txt", "a.txt"]),
  ])
  func aNameThatIsTaken(existing: String, status: Int32, files: [String]) throws {
    try place.write("old", to: "out/a.txt")
    let outcome = try get(server.url("a.txt"), "--to", out, "--existing", existing)
    #expect(outcome.status == status, "\(outcome)")
    #expect(outcome.errors.contains("hint: --existing replace") == (existing == "fail"), "\(outcome)")
    #expect(names == files)
    #expect(place.text("out/a.txt") == (existing == "replace" ? "hello\n" : "old"))
  }

  /// I3: the same command goes on with what was fetched, with a digest and without.
  @Test(arguments: [true, false]) func aKilledDownloadGoesOn(hasDigest: Bool) throws {
    let bytes = (0..<(8 << 20)).map { UInt8(truncatingIfNeeded: $0 >> 12) }
    let file = try server.files.write(Data(bytes), to: "slow/large.bin")
    let words =
      ["get", server.url("slow/large.bin"), "--to", out + "large.bin"]
      + (hasDigest ? ["--sha256", try Feeds.sha256(file)] : [])
    let first = try Tarn.start(words, environment: variables, in: place.url)
    try waitUntil("some of it is written") { !first.isRunning || first.written > 3 << 20 }
    first.signal(SIGKILL)
    let killed = try first.wait()
    #expect(killed.wasKilled && !place.exists("out/large.bin"), "\(killed)")
    #expect(records.count == 1)
    held.open()
    let requests = try server.requests {
      let outcome = try Tarn.run(words, environment: variables, in: place.url)
      #expect(outcome.status == 0, "\(outcome)")
    }
    #expect(requests.map(\.status) == ["206"], "\(requests)")
    #expect(requests.reduce(0) { $0 + $1.bytes } < UInt64(bytes.count) * 3 / 4)
    #expect(try Data(contentsOf: place.url.appendingPathComponent("out/large.bin")) == Data(bytes))
    #expect(names == ["large.bin"] && records.isEmpty)
  }

  /// What was finished before is not asked for again, unless its file is gone.
  @Test func ofSeveralTheRestGoesOn() throws {
    try server.files.write(Data(repeating: 7, count: 8 << 20), to: "slow/large.bin")
    let words = ["get", "-N", "1", server.url("a.txt"), server.url("slow/large.bin"), "--to", out]
    let first = try Tarn.start(words, environment: variables, in: place.url)
    try waitUntil("some of it is written") { !first.isRunning || first.written > 3 << 20 }
    first.signal(SIGKILL)
    _ = try first.wait()
    held.open()
    let requests = try server.requests {
      let outcome = try Tarn.run(words, environment: variables, in: place.url)
      #expect(outcome.status == 0, "\(outcome)")
    }
    #expect(requests.map { "\($0.status) \($0.uri)" } == ["206 /slow/large.bin"])
    #expect(names == ["a.txt", "large.bin"] && records.isEmpty)
  }

  @Test(arguments: [(SIGINT, Int32(130)), (SIGTERM, Int32(143))])
  func aSignalKeepsWhatWasFetched(signal: Int32, status: Int32) throws {
    try server.files.write(Data(repeating: 7, count: 8 << 20), to: "slow/large.bin")
    let program = try Tarn.start(
      ["get", server.url("slow/large.bin"), "--to", out], environment: variables, in: place.url)
    try waitUntil("some of it is written") { !program.isRunning || program.written > 3 << 20 }
    program.signal(signal)
    let outcome = try program.wait()
    #expect(outcome.status == status, "\(outcome)")
    #expect(records.count == 1)
  }

  /// What was fetched went with the one before.
  @Test func aFolderThatWasMadeAgainIsTaken() throws {
    try server.files.write(Data(repeating: 7, count: 8 << 20), to: "slow/large.bin")
    let words = ["get", server.url("slow/large.bin"), "--to", out]
    let first = try Tarn.start(words, environment: variables, in: place.url)
    try waitUntil("some of it is written") { !first.isRunning || first.written > 3 << 20 }
    first.signal(SIGINT)
    _ = try first.wait()
    // Were it removed, the new one might get its inode.
    try FileManager.default.moveItem(atPath: place.path + "/out", toPath: place.path + "/gone")
    try FileManager.default.createDirectory(atPath: out, withIntermediateDirectories: false)
    held.open()
    let outcome = try Tarn.run(words, environment: variables, in: place.url)
    #expect(outcome.status == 0, "\(outcome)")
    #expect(names == ["large.bin"] && records.isEmpty)
    let told = outcome.errors.split(separator: "\n").filter { $0.contains("begins anew there") }
    #expect(told.count == 1 && told[0].contains("removed, renamed or not mounted"), "\(outcome)")
  }

  @Test func aSecondOneOfTheSameIsRefused() throws {
    try server.files.write(Data(repeating: 7, count: 8 << 20), to: "slow/large.bin")
    let words = ["get", server.url("slow/large.bin"), "--to", out]
    let first = try Tarn.start(words, environment: variables, in: place.url)
    try waitUntil("it has begun") { !first.isRunning || !names.isEmpty }
    let outcome = try Tarn.run(words, environment: variables, in: place.url)
    #expect(outcome.status == 75 && outcome.errors.contains("process \(first.pid)"), "\(outcome)")
    first.signal(SIGINT)
    _ = try first.wait()
  }

  @Test func aListIsRead() throws {
    try place.write("# some files\n\(server.url("a.txt"))\n\n  \(server.url("named"))  \n", to: "list.txt")
    let outcome = try get("-i", "list.txt", "--to", out, "-N", "1")
    #expect(outcome.status == 0, "\(outcome)")
    #expect(names == ["a.txt", "said.txt"])
  }

  @Test(arguments: [
    (["ftp://h/a"], Int32(64), "only http and https"), ([String](), Int32(64), "a URL is expected"),
    (["http://127.0.0.1:9/a", "--existing", "maybe"], Int32(64), "keep-both"),
    (["http://127.0.0.1:9/a", "--sha256", "12"], Int32(64), "64 hexadecimal digits"),
    (["http://127.0.0.1:9/a", "--retries", "0"], Int32(66), "refused"),
  ]) func mistakesAreSaid(words: [String], status: Int32, text: String) throws {
    let outcome = try Tarn.run(["get"] + words, environment: variables, in: place.url)
    #expect(outcome.status == status && outcome.errors.contains(text), "\(outcome)")
  }

  /// As other programs of this user make theirs.
  @Test(arguments: [("022", 0o644), ("077", 0o600), ("002", 0o664)])
  func aFileHasTheModeThatTheUserSays(mask: String, mode: Int) throws {
    let outcome = try Program(
      "/bin/sh",
      ["-c", "umask \(mask); exec \"$0\" get \"$1\" --to \"$2\"", Tarn.path, server.url("a.txt"), out],
      environment: ProcessInfo.processInfo.environment.merging(variables) { $1 }, in: place.url
    ).wait()
    #expect(outcome.status == 0, "\(outcome)")
    let attributes = try FileManager.default.attributesOfItem(atPath: out + "a.txt")
    #expect(attributes[.posixPermissions] as? Int == mode)
  }

  /// Nothing listens there: so the proxy was asked.
  @Test func aProxyIsAsked() throws {
    let outcome = try get(server.url("a.txt"), "--proxy", "http://127.0.0.1:9", "--retries", "0")
    #expect(outcome.status == 66 && outcome.errors.contains("refused"), "\(outcome)")
    #expect(try get(server.url("a.txt"), "--proxy", "what").status == 64)
  }

  /// Its lines stand above what it draws, and what it draws goes.
  @Test func aTerminalKeepsEachResult() throws {
    try server.files.write(Data(repeating: 7, count: 6 << 20), to: "slow/large.bin")
    let terminal = try PseudoTerminal()
    let words = ["get", "-N", "1", server.url("slow/large.bin"), server.url("a.txt"), "--to", out]
    let program = try Tarn.start(
      words + [server.url("slow/large.bin?again"), "--existing", "keep-both"],
      environment: variables.merging(["TERM": "xterm", "NO_COLOR": "1"]) { $1 }, in: place.url,
      terminal: terminal.path)
    try waitUntil("it draws") { terminal.shown.contains("of 3 files") || !program.isRunning }
    held.open()
    try waitUntil("it is over") {
      _ = terminal.shown
      return !program.isRunning
    }
    #expect(try program.wait().status == 0)
    #expect(terminal.shown.contains("of 3 files"), "it drew nothing")
    #expect(
      terminal.lines == ["\(out)large.bin  6.0 MiB", "\(out)a.txt  6 B", "\(out)large (1).bin  6.0 MiB"],
      "\(terminal.lines)")
  }

  /// Of a shell: `<(echo URL)` is a descriptor, too.
  @Test(arguments: [
    "echo \"$1\" | \"$0\" get -i /dev/stdin --to \"$2\"", "echo \"$1\" | \"$0\" get -i - --to \"$2\"",
    "mkfifo f; echo \"$1\" > f & while [ ! -p f ]; do :; done; \"$0\" get -i f --to \"$2\"",
    "echo \"$1\" > list; \"$0\" get -i /dev/fd/3 --to \"$2\" 3< list",
    "echo \"$1\" | \"$0\" get -i /proc/self/fd/0 --to \"$2\"",
  ]) func aListMayComeByAPipe(line: String) throws {
    let outcome = try Program(
      "/bin/sh", ["-c", line, Tarn.path, server.url("a.txt"), out], environment: Tarn.environment(variables),
      in: place.url
    ).wait()
    #expect(outcome.status == 0 && names == ["a.txt"], "\(outcome)")
  }

  @Test func whatTheServerWantsToSeeIsHinted() throws {
    let outcome = try get(server.url("secret"), "--to", out)
    #expect(
      outcome.status == 66 && outcome.errors.contains("hint: give the credentials that the server asks for"),
      "\(outcome)"
    )
    try place.write("User-Agent: mine\n", to: "headers")
    #expect(try get(server.url("agent"), "--to", out, "--header-file", "headers").status == 0)
    #expect(place.text("out/agent") == "mine")
  }

  /// A mirror's folder is what its feed says.
  @Test func nothingGoesIntoAMirror() throws {
    let sum = try Feeds.sha256(server.files.url.appendingPathComponent("a.txt"))
    try server.files.write("\(sum)  a.txt\n", to: "SHA256SUMS")
    let made = try Tarn.run(
      ["sync", server.url("SHA256SUMS"), place.path + "/mirror"], environment: variables)
    #expect(made.status == 0, "\(made)")
    try FileManager.default.createSymbolicLink(
      atPath: place.path + "/link", withDestinationPath: place.path + "/mirror")
    for to in ["mirror/", "mirror/new/b.txt", "link/b.txt"] {
      let outcome = try get(server.url("a.txt"), "-p", "--to", place.path + "/" + to)
      #expect(outcome.status == 73 && outcome.errors.contains("lies in the mirror"), "\(outcome)")
    }
    #expect(!FileManager.default.fileExists(atPath: place.path + "/mirror/new"))
  }

  @Test func aMissingFolderIsMadeOnDemand() throws {
    let outcome = try get(server.url("a.txt"), "--to", out + "new/a.txt")
    #expect(outcome.status == 73 && outcome.errors.contains("No such file"), "\(outcome)")
    #expect(outcome.errors.contains("hint: -p creates missing folders"), "\(outcome)")
    #expect(try get(server.url("a.txt"), "--to", out + "new/a.txt", "-p").status == 0)
    #expect(place.text("out/new/a.txt") == "hello\n")
  }
}
