import Foundation
import Testing

/// What Tarn says is so, and what it tells to type next can be typed and helps.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
struct WordsTests {
  private let server: Nginx
  private let place: TemporaryDirectory

  init() throws {
    server = try Nginx(
      locations: """
        location = /big.bin {
          limit_rate_after 1536k;
          if (-f $document_root/slow) { set $limit_rate 20k; }
        }
        """)
    place = try TemporaryDirectory()
    try place.write("", to: "home/.keep")
    try publish(2)
  }

  private var feed: String { server.url("SHA256SUMS") }

  private func publish(_ count: Int) throws {
    let files = (0..<count).map { ("f\($0 + 10)", "text \($0)\n") }
    try Feeds.publish(Dictionary(uniqueKeysWithValues: files), in: server.files)
  }

  private func tarn(_ arguments: String...) throws -> Outcome {
    try Tarn.run(arguments, environment: ["HOME": place.path + "/home"], in: place.url)
  }

  private func expect(_ outcome: Outcome, _ status: Int32, _ words: String, without other: String = "\0") {
    let text = outcome.output + outcome.errors
    #expect(outcome.status == status && text.contains(words) && !text.contains(other), "\(outcome)")
  }

  // MARK: - Explain

  /// A first pass over a large file, ended by Ctrl-C: what is kept of it is told, and goes on.
  @Test func aTransferIsPendingDuringThePassAndAfterIt() throws {
    let sum = try Feeds.sha256(
      server.files.write(String(repeating: "0123456789abcdef", count: 1 << 18), to: "big.bin"))
    try server.files.write("\(sum)  big.bin\n", to: "SHA256SUMS")
    try server.files.write("", to: "slow")
    let pass = try Tarn.start(
      ["sync", feed, "m"], environment: ["HOME": place.path + "/home"], in: place.url)
    try waitUntil("it is being fetched") {
      let answer = place.exists("m/.tarn/id") ? try tarn("explain", "m", "big.bin") : nil
      return !pass.isRunning || answer?.output.contains("is being fetched now") == true
    }
    #expect(pass.isRunning, "the pass was over before it could be asked")
    pass.signal(SIGINT)
    #expect(try pass.wait().status == 130)
    try server.files.remove("slow")
    let answer = try tarn("explain", "m", "big.bin")
    expect(answer, 0, "big.bin: pending\n  the feed lists it, and it is not fetched whole yet: ")
    expect(answer, 0, "of 4.0 MiB kept, and the next pass goes on with it\nnext: tarn sync m\n")
    expect(try tarn("sync", "m"), 0, "in sync")
  }

  @Test func whatIsLeftOutOrLeftAsItIsNamesTheOption() throws {
    expect(try tarn("sync", "--exclude", "f11*", "--no-keep-list", feed, "m"), 0, "in sync")
    expect(try tarn("explain", "m", "f11"), 0, "--exclude 'f11*' leaves it out")
    expect(try tarn("sync", "--exclude", "", "--local-changes", "keep", "m"), 0, "in sync")
    try place.remove("m/f10")
    try place.write("mine\n", to: "m/f11")
    // Nothing to do, though neither is there: the words say why, here and in the status.
    expect(try tarn("sync", "m"), 0, "2 left as changed here")
    expect(try tarn("status", "m"), 0, "0 of 2 current, 2 left as changed here (--local-changes keep)")
    let next = "next: to undo all local changes, now and from then on: tarn sync --local-changes restore m\n"
    for path in ["f10", "f11"] { expect(try tarn("explain", "m", path), 0, next) }
    expect(try tarn("sync", "--local-changes", "report", "m"), 3, "2 in conflict")
    for path in ["f10", "f11"] { expect(try tarn("explain", "m", path), 0, next) }
    expect(try tarn("sync", "--local-changes", "restore", "m"), 0, "1 restored, 1 put back")
  }

  // MARK: - Approval

  @Test func afterAnApprovalAMirrorIsInSync() throws {
    try publish(20)
    expect(try tarn("sync", "--delete", feed, "m"), 0, "in sync")
    try publish(2)
    expect(try tarn("sync", "m"), 3, "18 deletions held")
    expect(try tarn("status", "m"), 0, "m: held\n")
    expect(try tarn("approve", "-y", "m"), 0, "18")
    expect(try tarn("status", "m"), 0, "m: in sync\n", without: "next:")
    expect(try tarn("status", "--check", "m"), 0, "in sync within")
  }

  // MARK: - A damaged ledger

  private func damageTheLedger() throws {
    for end in ["-wal", "-shm"] { try? place.remove("m/.tarn/ledger.sqlite" + end) }
    try place.write("no ledger at all", to: "m/.tarn/ledger.sqlite")
  }

  private func ownFiles() throws -> Set<String> {
    Set(try FileManager.default.contentsOfDirectory(atPath: place.path + "/m/.tarn"))
  }

  /// Nobody knows the feed any more: nothing is done until it is given, and every word says so.
  @Test func aDamagedLedgerAsksForTheFeed() throws {
    expect(try tarn("sync", feed, "m"), 0, "in sync")
    try damageTheLedger()
    let before = try ownFiles()
    let hint = "tarn sync FEED \(place.path)/m"
    expect(try tarn("sync", "m"), 74, hint, without: "a new one was made")
    #expect(try ownFiles() == before, "nothing is set aside for a pass that cannot be")
    for command in ["status", "verify"] { expect(try tarn(command, "m"), 74, hint) }
    let requests = try server.requests {
      expect(
        try tarn("sync", feed, "m"), 0, "a new one was made: the pass hashes what is in the folder")
    }
    #expect(requests.filter(\.isBody).map(\.uri) == ["/SHA256SUMS"])
    expect(try tarn("sync", "m"), 0, "in sync")
  }

  @Test func verifyTakesTheMirrorAroundTheWorkingDirectory() throws {
    expect(try tarn("verify"), 64, "this directory is in no mirror")
    expect(try tarn("sync", "--no-keep-list", feed, "m"), 0, "in sync")
    let inside = try Tarn.run(["verify"], in: place.url.appendingPathComponent("m"))
    expect(inside, 0, "all good: 2 files checked")
  }

  /// In quotes the shell leaves the ~ as it is.
  @Test func aTildeInQuotesIsNoHome() throws {
    expect(try tarn("sync", feed, "~/my files"), 64, "a new directory of the name ~")
    #expect(!place.exists("~"))
    try place.write("", to: "~/other")
    expect(try tarn("sync", feed, "~/my files"), 0, "in sync")
  }

  @Test func aLedgerThatRecordsNothingVerifiesNothing() throws {
    expect(try tarn("sync", feed, "m"), 0, "in sync")
    for end in ["", "-wal", "-shm"] { try? place.remove("m/.tarn/ledger.sqlite" + end) }
    expect(try tarn("verify", "m"), 3, "nothing verified: no file is recorded\nnext: tarn sync FEED m\n")
    expect(try tarn("status", "m"), 0, "next: tarn sync FEED \(place.path)/m\n")
    expect(try tarn("sync", "--no-keep-list", feed, "m"), 0, "2 adopted")
    expect(try tarn("verify", "m"), 0, "all good: 2 files checked")
    try place.remove("m/f10")
    expect(try tarn("verify", "m"), 3, "1 missing; 1 file checked")
    // That nothing is wanted was found by a pass: then there is nothing to miss.
    expect(try tarn("sync", "--exclude", "*", feed, "empty"), 0, "in sync")
    expect(try tarn("verify", "empty"), 0, "all good: 0 files checked")
  }

  // MARK: - Small texts

  /// The list of the user's mirrors remembers on which file system each was.
  @Test func aMirrorThatIsNotMountedIsSaidToBeThat() throws {
    expect(try tarn("sync", feed, "mt"), 0, "in sync")
    let list = "home/.local/state/tarn/mirrors"
    var fields = try #require(place.text(list)).split(separator: "\t").map(String.init)
    try #require(fields.count == 3)
    fields[1] = "1"
    try place.write(fields.joined(separator: "\t"), to: list)
    try place.remove("mt")
    try FileManager.default.createDirectory(
      atPath: place.path + "/mt", withIntermediateDirectories: false)
    for arguments in [["sync", "mt"], ["sync", feed, "mt"], ["status", "mt"], ["plan", feed, "mt"]] {
      let outcome = try Tarn.run(arguments, environment: ["HOME": place.path + "/home"], in: place.url)
      expect(outcome, 73, "was a mirror on another file system", without: "make it one")
      expect(outcome, 73, "hint: mount it; or, to begin anew here: tarn forget \(place.path)/mt")
    }
    expect(try tarn("forget", "mt"), 0, "forgot mt")
    expect(try tarn("sync", feed, "mt"), 0, "in sync")
  }

  @Test func aFileWithoutCertificatesIsNamed() throws {
    try place.write("no certificate\n", to: "my ca.pem")
    let url = feed.replacingOccurrences(of: "http://", with: "https://")
    let outcome = try tarn("sync", "--cacert", "my ca.pem", url, "m")
    expect(outcome, 66, "no authority's certificate could be read from \(place.path)/my ca.pem")
    expect(outcome, 66, "hint: give --cacert a file of certificates in PEM", without: "clock")
  }
}
