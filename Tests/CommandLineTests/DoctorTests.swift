import Foundation
import TarnConfig
import TarnCore
import Testing

@testable import tarn

/// `tarn doctor`.
@Suite final class DoctorTests {
  private let place: LocalPlace

  init() throws {
    place = try LocalPlace()
    try place.publish(["a": "one\n"])
  }

  deinit { place.end() }

  private struct Report: Decodable {
    struct Finding: Decodable {
      var level: String
      var check: String
      var mirror: String?
      var message: String
      var mend: String?
    }
    var exitStatus: Int32
    var problems: Int
    var findings: [Finding]

    func all(_ level: String, _ check: String) -> [Finding] {
      findings.filter { $0.level == level && $0.check == check }
    }
  }

  private func settings(_ mirrors: String...) throws {
    try place.write(mirrors.joined(separator: "\n"), "tarn.toml")
  }

  private func mirror(_ name: String, feed: String? = nil, _ more: String = "every = \"1h\"") -> String {
    let feed = feed ?? "\(place.path)/feed/SHA256SUMS"
    return "[mirror.\(name)]\nfeed = \"\(feed)\"\nfolder = \"\(place.path)/\(name)\"\n\(more)\n"
  }

  private func doctor(_ options: String...) throws -> (report: Report, status: Int32) {
    let result = try place.tarn(["doctor", "--json"] + options)
    let report = try JSONDecoder().decode(Report.self, from: Data(result.output.utf8))
    #expect(report.exitStatus == result.status && result.messages == "", "\(result)")
    #expect(report.problems == report.findings.count { $0.level == "problem" })
    for finding in report.findings where finding.level != "ok" {
      #expect(finding.mend?.isEmpty == false, "no way out: \(finding)")
    }
    return (report, result.status)
  }

  @Test func aHealthyMirrorIsFine() throws {
    try settings(mirror("m"))
    #expect(try place.tarn("sync", "m").status == 0)
    let (report, status) = try doctor()
    #expect(status == 0 && report.all("ok", "ledger").map(\.mirror) == ["m"], "\(report)")
    #expect(report.all("ok", "space").count == 1 && report.all("ok", "folder").count == 1)
    #expect(report.all("ok", "settings").count == 1 && report.all("warning", "agent").count == 1)
    let text = try place.tarn("doctor")
    #expect(text.output.contains("ok       ledger       m: its record is whole\n"), "\(text.output)")
    #expect(
      text.output.contains("warning  agent        none runs, so no mirror is kept current on schedule\n"))
    #expect(try place.tarn("doctor", "--quiet").output == "")
  }

  @Test func aMissingRecordIsNotWhole() throws {
    try settings(mirror("m"))
    #expect(try place.tarn("sync", "m").status == 0)
    for name in ["", "-wal", "-shm"] { try? place.remove("m/.tarn/ledger.sqlite\(name)") }
    let (report, status) = try doctor()
    #expect(status == 3, "\(report)")
    #expect(report.all("problem", "ledger").map(\.mend) == ["tarn sync m"], "\(report)")
    // What it says helps.
    #expect(try place.tarn("sync", "m").status == 0)
    #expect(try doctor().report.all("ok", "ledger").count == 1)
  }

  @Test func whatMendsIsForTheSettingsThatAreAskedFor() throws {
    let file = "\(place.path)/my settings.toml"
    try place.write(mirror("m"), "my settings.toml")
    let (report, _) = try doctor("--config", file)
    #expect(
      report.all("warning", "folder").map(\.mend) == ["tarn sync m --config '\(file)'"], "\(report)")
    #expect(report.all("warning", "agent").map(\.mend) == ["tarn agent --config '\(file)'"], "\(report)")
  }

  @Test func aMachineWithoutMirrorsIsToldWhatToDo() throws {
    let (report, status) = try doctor()
    #expect(
      status == 0 && report.all("warning", "settings").map(\.mend) == ["tarn add FEED FOLDER"], "\(report)")
  }

  @Test func aUserWithoutHomeHasNoPlaces() {
    let none = SettingsPaths(environment: [:], isRoot: false, workingDirectory: "/")
    let found = Doctor.places(none, socket: none.socket)
    #expect(found.map(\.check) == [.settings, .agent, .agent], "\(found)")
    #expect(found.map(\.level) == [.problem, .problem, .warning])
    let home = SettingsPaths(
      environment: ["HOME": "/h", "XDG_RUNTIME_DIR": "/r"], isRoot: false, workingDirectory: "/")
    #expect(Doctor.places(home, socket: home.socket) == [])
    #expect(Doctor.places(none, socket: "/s").count == 2)
  }

  @Test func faultsOfTheSettingsAreTold() throws {
    try settings(mirror("m", "evry = \"1h\""))
    let (report, status) = try doctor()
    #expect(status == 3 && report.all("problem", "settings").first?.message.contains("tarn.toml:4:1") == true)
    #expect(report.all("problem", "settings").first?.mend == "tarn config check")
    try settings(mirror("m", ""))
    let idle = try doctor().report.all("warning", "settings").map(\.message)
    #expect(idle == ["only on command, without every or schedule: m"])
  }

  @Test func aDamagedRecordIsFound() throws {
    try settings(mirror("m"))
    #expect(try place.tarn("sync", "m").status == 0)
    let path = place.path + "/m/.tarn/ledger.sqlite"
    let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    try handle.seek(toOffset: 100)
    try handle.write(contentsOf: Data(repeating: 0x5A, count: 8000))
    try handle.close()
    let (report, status) = try doctor()
    let found = report.all("problem", "ledger")
    #expect(
      status == 3 && found.count == 1 && found.first?.mend?.hasPrefix("tarn sync m") == true, "\(report)")
  }

  @Test func aNewMirrorHasNoDamagedRecord() throws {
    try place.makeDirectory("m")
    try place.write("mine\n", "m/own")
    try settings(mirror("m", "every = \"1h\"\nadopt = true"))
    let (report, status) = try doctor("--offline")
    #expect(status == 0 && report.all("problem", "ledger").isEmpty, "\(report)")
    #expect(report.all("warning", "folder").map(\.mend) == ["tarn sync m"], "\(report)")
  }

  @Test func aFolderThatIsGoneIsFound() throws {
    try settings(mirror("m"))
    #expect(try place.tarn("sync", "m").status == 0)
    try place.remove("m/.tarn")
    let (report, status) = try doctor()
    #expect(status == 3 && report.all("problem", "folder").first?.mirror == "m", "\(report)")
  }

  @Test func aMirrorThatFailsIsTold() throws {
    try place.publish(["b": "two\n"], "feed/OTHER")
    try settings(mirror("m", feed: "\(place.path)/feed/OTHER"), mirror("n"))
    #expect(try place.tarn("sync", "m").status == 0 && place.tarn("sync", "n").status == 0)
    try place.write("wrong\n", "feed/b")
    try place.remove("m/b")
    #expect(try place.tarn("sync", "m").status == 3)
    let (report, status) = try doctor("--offline")
    let found = report.all("problem", "state")
    #expect(status == 3 && found.map(\.mirror) == ["m"] && found[0].mend == "tarn status m", "\(report)")
    #expect(found.first?.message.hasPrefix("failing (") == true, "\(found)")
  }

  /// Its passes end in part, so none of them leaves a failure of its own.
  @Test func aMirrorThatNeverWorkedIsTold() throws {
    try place.publish(["b": "two\n"], "feed/OTHER")
    try place.write("wrong\n", "feed/b")
    try settings(mirror("m", feed: "\(place.path)/feed/OTHER"))
    #expect(try place.tarn("sync", "m").status == 3)
    let (report, status) = try doctor("--offline")
    let found = report.all("problem", "state")
    #expect(status == 3 && found.map(\.mirror) == ["m"] && found[0].mend == "tarn status m", "\(report)")
    #expect(found.first?.message.hasPrefix("failing (b: ") == true, "\(found)")
    #expect(found.first?.message.hasSuffix(", last success never)") == true, "\(found)")
  }

  @Test func aCredentialOfTheServiceIsNoFault() throws {
    try settings(mirror("m", feed: "http://127.0.0.1:1/x", "header-file = { credential = \"token\" }"))
    let feeds = try doctor().report.findings.filter { $0.check == "feed" }
    #expect(
      feeds.map(\.level) == ["ok"] && feeds[0].message.contains("header-file is a credential"), "\(feeds)")
  }

  @Test func feedsAreAskedUnlessItIsOffline() throws {
    try settings(
      mirror("refused", feed: "http://127.0.0.1:1/x?token=hush"), mirror("file", feed: "\(place.path)/none"),
      mirror("again", feed: "http://127.0.0.1:1/y"), mirror("unknown", feed: "https://host.invalid/x"))
    let (report, status) = try doctor()
    #expect(status == 3)
    let refused = report.all("problem", "feed")
    #expect(refused.map(\.mirror).sorted { ($0 ?? "") < ($1 ?? "") } == ["again", "file"], "\(refused)")
    #expect(refused.contains { $0.mend == "curl -sSI http://127.0.0.1:1/" }, "\(refused)")
    #expect(report.all("problem", "dns").map(\.mend) == ["getent ahosts host.invalid"], "\(report)")
    #expect(!report.findings.contains { $0.message.contains("hush") || $0.mend?.contains("hush") == true })
    let offline = try doctor("--offline").report
    #expect(!offline.findings.contains { ["feed", "dns", "tls"].contains($0.check) })
  }

  /// `tarn sync` refuses it, so doctor names the way that works.
  @Test func aFolderWithFilesIsNotMadeAMirror() throws {
    try place.makeDirectory("m")
    try place.write("mine", "m/notes")
    try settings(mirror("m", "every = \"1h\""))
    let found = try doctor("--offline").report.all("problem", "folder")
    #expect(found.map(\.message) == ["\(place.path)/m is not empty, and no mirror of Tarn's"], "\(found)")
    #expect(found.first?.mend?.hasSuffix("sync --adopt m") == true, "\(found)")
    try settings(mirror("m", "every = \"1h\"\nadopt = true"))
    #expect(try doctor("--offline").report.all("warning", "folder").map(\.message) == ["it was never synced"])
  }

  /// `tarn sync` only plans there, and would mend nothing.
  @Test func aMirrorThatOnlyPlansIsInOrder() throws {
    try settings(mirror("m", "every = \"1h\"\ndry-run = true"))
    let (report, status) = try doctor("--offline")
    let found = report.all("ok", "folder").map(\.message)
    #expect(status == 0 && found == ["it was never synced: its passes only plan (dry-run)"], "\(report)")
  }

  @Test func aMirrorMadeByHandIsLookedAtToo() throws {
    #expect(try place.tarn("sync", "\(place.path)/feed/SHA256SUMS", "byhand").status == 0)
    let report = try doctor().report
    #expect(report.all("ok", "ledger").map(\.mirror) == ["\(place.path)/byhand"], "\(report)")
  }

  @Test func theProxyOfTheEnvironmentIsToldWithoutItsPassword() throws {
    try settings(mirror("m"))
    let result = try TarnBinary.run(
      ["doctor", "--json"],
      environment: ["CONFIGURATION_DIRECTORY": place.path, "https_proxy": "http://joe:hush@127.0.0.1:1"])
    #expect(result.output.contains("$https_proxy is http://***@127.0.0.1:1"), "\(result.output)")
    #expect(!result.output.contains("hush"))
  }

  @Test(
    arguments: [
      ("loaded", "active", "enabled", true, "ok", nil),
      ("loaded", "active", "disabled", true, "warning", "systemctl --user enable tarn"),
      ("loaded", "failed", "enabled", false, "problem", "journalctl --user -u tarn -e"),
      ("loaded", "inactive", "enabled", false, "warning", "systemctl --user enable --now tarn"),
      ("loaded", "inactive", "disabled", true, "ok", nil), ("not-found", "inactive", "", false, "ok", nil),
      ("masked", "inactive", "masked", false, "problem", "systemctl --user unmask tarn"),
    ] as [(String, String, String, Bool, String, String?)])
  func unitsAreJudged(
    _ load: String, _ active: String, _ file: String, _ hasAgent: Bool, _ level: String, _ mend: String?
  ) {
    let unit = UnitState(
      "LoadState=\(load)\nActiveState=\(active)\nUnitFileState=\(file)\nResult=exit-code\nother\n")
    let found = unit.findings(isSystem: false, hasAgent: hasAgent)
    #expect(found.map(\.level.rawValue) == [level])
    #expect(mend.map { found.first?.mend?.hasPrefix($0) == true } ?? (found.first?.mend == nil))
  }

  @Test(
    arguments: [
      ("strict", "yes", "-/srv/mirrors", "/srv/mirrors/iso", false), ("strict", "yes", "", "/srv/iso", true),
      ("strict", "yes", "/srv/mirror", "/srv/mirrors", true), ("strict", "yes", "", "/var/lib/tarn/x", false),
      ("no", "yes", "", "/home", true), ("no", "no", "", "/srv/x", false),
      ("full", "no", "", "/srv/x", false),
      ("strict", "yes", "/home", "/home", false),
    ])
  func confinementIsSeen(
    _ system: String, _ home: String, _ writable: String, _ folder: String, _ isOut: Bool
  ) {
    let unit = UnitState(
      "LoadState=loaded\nProtectSystem=\(system)\nProtectHome=\(home)\nReadWritePaths=\(writable)\n")
    #expect(unit.keepsOut(folder) == isOut)
  }

  @Test(
    arguments: [
      ("/", "ext4"), ("/srv/x", "ext4"), ("/srv/nas", "nfs4"), ("/srv/nas/a", "nfs4"), ("/srv/nasty", "ext4"),
      ("/srv/a b/c", "exfat"), ("/over/x", "fuse.sshfs"),
    ])
  func fileSystemsOfPaths(_ path: String, _ kind: String) {
    let table = """
      22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
      30 22 0:40 / /srv/nas rw,relatime - nfs4 host:/x rw
      31 22 8:1 / /srv/a\\040b rw - exfat /dev/sda1 rw
      32 22 0:41 / /over rw - xfs /dev/sdb rw
      33 32 0:42 / /over rw - fuse.sshfs host: rw
      broken
      """
    #expect(Doctor.fileSystem(of: path, table) == kind)
  }

  @Test(arguments: [
    ("https://example.org/a?b", "https://example.org"), ("http://h:81", "http://h:81"), ("/srv/x", "/srv/x"),
  ]) func originsOfFeeds(_ url: String, _ origin: String) {
    #expect(Doctor.origin(url) == origin)
  }

  /// A full disk is no problem of a mirror that fetches nothing.
  @Test func whatIsMissingOnADiskIsSaid() {
    /// Sizes in MiB.
    func room(_ free: UInt64, pending: UInt64?) -> String {
      let room = Doctor.room(free: free << 20, pending: pending.map { $0 << 20 }, reserve: 10 << 20)
      return "\(room.level): \(room.message)"
    }
    #expect(room(0, pending: nil) == "warning: only 0 B are free: a pass cannot record what it does")
    #expect(room(5, pending: nil) == "ok: 5.0 MiB free")
    #expect(room(50, pending: 20) == "ok: 50.0 MiB free, 20.0 MiB to come")
    let coming = "20.0 MiB are still to be downloaded, and 10.0 MiB stay free (reserve)"
    #expect(room(5, pending: 20) == "problem: 5.0 MiB are free, \(coming): 25.0 MiB are missing")
    #expect(room(25, pending: 20) == "warning: 25.0 MiB are free, \(coming): 5.0 MiB are missing")
    let short = "warning: 5.0 MiB are free, and 10.0 MiB stay free (reserve): 5.0 MiB are missing"
    #expect(room(5, pending: 0) == short)
  }

  @Test func aMirrorThatNeverWorkedIsToldOnce() {
    let new = Finding(.warning, .folder, of: "m", "it was never synced", mend: "tarn sync m")
    let space = Finding(.ok, .space, of: "m", "much")
    let failing = Finding(.problem, .state, of: "m", "failing (gone)", mend: "tarn status m")
    #expect(Doctor.joined([new, space], [failing]) == [space, failing])
    #expect(Doctor.joined([new, space], []) == [new, space])
  }

  // MARK: - What the agent says

  @Test(
    arguments: [
      (
        "polling", "watcher-missing: the program tarn-watch was not found", "problem",
        "put tarn-watch beside tarn"
      ),
      ("polling", "watch-limit: no more", "problem", "echo "),
      ("polling", "unreadable: a", "problem", "tarn status m"),
      ("polling", "unsupported: nfs", "warning", "tarn status m"),
      ("polling", "overflow: too much", nil, nil), ("polling", "starting to watch", nil, nil),
      ("watching", "", nil, nil), ("off", "the next pass finds local changes", nil, nil),
    ] as [(String, String, String?, String?)])
  func aMirrorThatIsNotWatchedIsTold(_ mode: String, _ reason: String, _ level: String?, _ mend: String?) {
    var document = StatusDocument(name: "m", feed: "/f", folder: "/srv/m", state: "idle")
    (document.watch.mode, document.watch.reason) = (mode, reason)
    let found = Doctor.blind([document, document])
    #expect(found.map(\.level.rawValue) == [level].compactMap(\.self))
    #expect(found.allSatisfy { $0.mend?.hasPrefix(mend ?? "-") == true && $0.message.hasSuffix(reason) })
  }

  @Test func hooksThatFailAreTold() {
    var (bad, lossy) = (HookStatus(name: "it's", state: "failing"), HookStatus(name: "tell", state: "good"))
    (bad.failures, bad.message, lossy.dropped) = (6, "the answer was HTTP 500", 2)
    let found = Doctor.hooks([HookStatus(name: "fine", state: "good"), bad, lossy])
    #expect(found.map(\.level) == [.problem, .warning])
    #expect(found.map(\.message).first == "it's: fails, 6 attempts: the answer was HTTP 500")
    #expect(found.first?.mend?.contains("[hook.\"it's\"]") == true, "\(found)")
    #expect(Doctor.hooks([lossy]).map(\.message) == ["tell: 2 events lost since the agent began"])
    #expect(Doctor.hooks([HookStatus(name: "fine", state: "good")]).map(\.level) == [.ok])
    #expect(Doctor.hooks([]) == [])
  }

  @Test func hostsOfAuthorities() {
    #expect(Doctor.host(of: "example.org:8443") == "example.org" && Doctor.host(of: "[::1]:80") == "::1")
  }
}
