import Foundation
import Testing

/// What a signal ends, and what is said of the rest; feeds that could make Tarn wait for ever.
@Suite(.serialized, .enabled(if: Tarn.obstacle == nil, "\(Tarn.obstacle ?? "")"))
struct StopTests {
  private let place: TemporaryDirectory
  private var folder: String { place.path + "/mirror" }
  private var fifo: String { place.path + "/fifo" }

  init() throws {
    place = try TemporaryDirectory()
    try Feeds.publish(["a.txt": "a\n"], in: place)
    try #require(mkfifo(fifo, 0o600) == 0)
  }

  /// A shell that becomes Tarn after it has arranged its descriptors.
  private func shell(_ redirections: String, _ arguments: String) throws -> Program {
    try Program(
      "/bin/sh", ["-c", "exec \(redirections); exec '\(Tarn.path)' \(arguments)"],
      environment: Tarn.environment(), in: place.url)
  }

  // MARK: - The end

  /// Other threads may still use what the exit handlers of libraries free.
  @Test(arguments: [
    "--version", "sync ./SHA256SUMS mirror", "sync ./nothing mirror", "agent --config tarn.toml",
  ])
  func noExitHandlerRunsInTheEnd(words: String) throws {
    try place.write("", to: "tarn.toml")
    // ld.so tells of each library whose handlers it runs: ld.so(8), LD_DEBUG.
    let program = try Tarn.start(
      words.split(separator: " ").map(String.init),
      environment: [
        "LD_DEBUG": "files", "RUNTIME_DIRECTORY": place.path, "STATE_DIRECTORY": place.path + "/state",
      ],
      in: place.url)
    if words.hasPrefix("agent") {
      try waitUntil("it serves") { program.errorsSoFar.contains("0 mirrors") }
      program.signal(SIGTERM)
    }
    let outcome = try program.wait()
    #expect(outcome.errors.contains("calling init: "), "the probe works")
    #expect(!outcome.wasKilled && !outcome.errors.contains("calling fini: "), "\(outcome.status)")
  }

  // MARK: - Feeds

  @Test func aFIFOIsNoFeed() throws {
    for feed in [fifo, "file://" + fifo, "./fifo"] {
      let outcome = try Tarn.run(["sync", feed, folder, "--no-input"], in: place.url)
      #expect(outcome.status == 64 && outcome.errors.contains("tarn sync - FOLDER <"), "\(outcome)")
      #expect(!place.exists("mirror"))
    }
  }

  /// Read, and trusted as little: the name in it leads to no local file.
  @Test(arguments: ["/dev/fd/3", "/dev/stdin", "file:///dev/fd/3", "-"])
  func aDescriptorIsReadLikeStandardInput(feed: String) throws {
    let outcome = try shell("3<SHA256SUMS; exec <SHA256SUMS", "sync --json \(feed) mirror").wait()
    #expect(outcome.status == 3 && outcome.output.contains("no-usable-source"), "\(outcome)")
    #expect(!place.exists("mirror/a.txt"))
  }

  @Test(arguments: [
    ("sync", SIGINT, Int32(130)), ("plan", SIGINT, 130), ("sync", SIGTERM, 143), ("sync", SIGHUP, 143),
  ])
  func aSilentPipeIsLeftAtTheFirstSignal(command: String, signal: Int32, status: Int32) throws {
    let program = try shell("3<>fifo; exec <&3", "\(command) -v - mirror")
    try waitUntil("it reads") { program.errorsSoFar.contains("reading") }
    program.signal(signal)
    let outcome = try program.wait()
    #expect(outcome.status == status && !outcome.wasKilled, "\(outcome)")
    #expect(outcome.errors.contains("stopping"), "\(outcome)")
    // In a log nobody presses a key.
    #expect(!outcome.errors.contains("Ctrl-C"), "\(outcome)")
    #expect(!place.exists("mirror"))
  }

  /// Whoever asks how far it is ends nothing, not even before there is anything to tell; nor where the parent ignores it.
  @Test(arguments: ["true", "trap '' USR1"])
  func theQuestionHowFarItIsEndsNothing(before: String) throws {
    let program = try Program(
      "/bin/sh", ["-c", "\(before); exec 3<>fifo; exec <&3; exec '\(Tarn.path)' sync -v - mirror"],
      environment: Tarn.environment(), in: place.url)
    // From the moment on that its first thread is made: until then the loader is at work, not Tarn.
    try waitUntil("it takes signals") {
      (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(program.pid)/task"))?.count ?? 0 > 1
    }
    for _ in 0..<50 { program.signal(SIGUSR1) }
    try waitUntil("it reads") { program.errorsSoFar.contains("reading") }
    program.signal(SIGUSR1)
    program.signal(SIGTERM)
    let outcome = try program.wait()
    #expect(outcome.status == 143 && !outcome.wasKilled, "\(outcome)")
  }

  /// Not even in the first moment, before anybody waits for signals: the first thing that Tarn does is a look at its
  /// descriptors.
  @Test(.enabled(if: Program.find("strace") != nil, "strace is not installed"))
  func anEarlyQuestionEndsNothing() throws {
    let strace = try #require(Program.find("strace"))
    let outcome = try Program(
      strace,
      [
        "-f", "-o", place.path + "/trace", "-e", "trace=fcntl", "-e", "inject=fcntl:signal=USR1:when=1",
        Tarn.path, "sync", "./SHA256SUMS", "mirror",
      ], environment: Tarn.environment(), in: place.url
    ).wait()
    #expect(place.text("trace")?.contains("F_GETFD") == true)
    #expect(outcome.status == 0 && !outcome.wasKilled, "\(outcome)")
    #expect(place.text("mirror/a.txt") == "a\n")
  }

  @Test func aClosedStandardInputIsSaidToBeClosed() throws {
    let outcome = try shell("<&-", "sync - mirror").wait()
    #expect(outcome.status == 66 && outcome.errors.contains("standard input is closed"), "\(outcome)")
  }

  // MARK: - Approval and the trash

  /// A command that hears of the signal in the middle of its first group.
  private func interrupted(at call: String, _ arguments: String...) throws -> Outcome {
    let held = try HeldTarn(at: call, 21, arguments, trace: place.path + "/trace-\(call)")
    held.program.signal(SIGINT)
    try waitUntil("it has heard") { held.program.errorsSoFar.contains("stopping") }
    held.letGo()
    return try held.program.wait()
  }

  @Test(.enabled(if: Program.find("strace") != nil, "strace is not installed"))
  func anApprovalAndAnEmptyingStopAfterTheirGroup() throws {
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    var list = ""
    for number in 0..<1200 {
      try place.write("", to: "feed/f\(number)")
      list += "\(empty)  f\(number)\n"
    }
    try place.write(list, to: "feed/SHA256SUMS")
    let feed = place.path + "/feed/SHA256SUMS"
    try #require(try Tarn.sync(feed, folder, "--delete", "--no-keep-list", "-q").status == 0)
    try place.write("\(empty)  f0\n", to: "feed/SHA256SUMS")
    try #require(try Tarn.sync(feed, folder, "-q").status == 3)

    let stopped = try interrupted(at: "renameat2", "approve", "-y", folder)
    #expect(stopped.status == 130 && stopped.errors.contains("stopping"), "\(stopped)")
    let held = try left(of: 1199, groups: [512, 1024]) {
      stopped.output.contains("\(grouped($0)) files moved to the trash")
        && stopped.output.contains("\($1) files still held")
    }
    let status = try Tarn.run(["status", folder])
    #expect(status.output.contains("\(held)"), "\(status)")
    let rest = try Tarn.run(["approve", "-y", folder])
    #expect(rest.status == 0 && rest.output.contains("\(held) files moved"), "\(rest)")

    let cut = try interrupted(at: "unlinkat", "trash", "empty", "-y", folder)
    #expect(cut.status == 130, "\(cut)")
    let kept = try left(of: 1199, groups: [512, 1024]) {
      cut.output.contains("removed \(grouped($0)) files")
        && cut.output.contains("\($1) files stay in the trash")
    }
    let whole = try Tarn.run(["trash", "empty", "-y", folder])
    #expect(whole.status == 0 && whole.output.contains("removed \(kept) files"), "\(whole)")
  }

  /// How many files a stop left, if it came after one of these groups.
  private func left(of total: Int, groups: [Int], _ isSaid: (Int, Int) -> Bool) throws -> Int {
    total - (try #require(groups.first { isSaid($0, total - $0) }, "no whole groups are said to be done"))
  }

  private func grouped(_ count: Int) -> String {
    count < 1000 ? "\(count)" : "\(count / 1000),\(count % 1000)"
  }
}
