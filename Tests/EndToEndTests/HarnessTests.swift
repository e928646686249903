import Foundation
import Testing

/// The harness itself, without the binary: it can tell what it is there to tell.
@Suite(.serialized) struct HarnessTests {
  static let nginxObstacle: String? = Nginx.path == nil ? "nginx is not installed" : nil
  private static let fetcher = Program.find("curl") ?? Program.find("python3")

  @Test func aProgramsEndAndStreamsAreSeen() throws {
    let outcome = try Program("/bin/sh", ["-c", "echo out; echo err >&2; exit 7"]).wait()
    #expect(
      outcome.status == 7 && outcome.output == "out\n" && outcome.errors == "err\n" && !outcome.wasKilled)
  }

  @Test func aKilledProgramIsToldFromOneThatEnded() throws {
    let program = try Program("/bin/sh", ["-c", "kill -9 $$"])
    let outcome = try program.wait()
    #expect(outcome.wasKilled && outcome.status == SIGKILL)
  }

  @Test(arguments: [SIGTERM, SIGINT])
  func aSignalReachesTheProgram(signal: Int32) throws {
    let program = try Program("/usr/bin/tail", ["-f", "/dev/null"])
    program.signal(signal)
    let outcome = try program.wait()
    #expect(outcome.wasKilled && outcome.status == signal)
  }

  @Test func aProgramThatHangsIsEnded() throws {
    let program = try Program("/usr/bin/tail", ["-f", "/dev/null"])
    #expect(throws: Program.TimedOut.self) { try program.wait(limit: 0.05) }
    #expect(!program.isRunning)
  }

  @Test(.enabled(if: nginxObstacle == nil && fetcher != nil, "nginx, and curl or python3, are needed"))
  func theServersLogHasBodiesAndRanges() throws {
    let server = try Nginx()
    try server.files.write("0123456789", to: "file one.txt")
    let curl = try #require(Self.fetcher)
    let fetch = { (range: Bool) throws in
      let url = server.url("file%20one.txt")
      let arguments =
        curl.hasSuffix("curl")
        ? ["-s", "-f", url] + (range ? ["-r", "4-"] : [])
        : [
          "-c",
          "import urllib.request as u; print(u.urlopen(u.Request('\(url)', headers=\(range ? "{'Range':'bytes=4-'}" : "{}"))).read())",
        ]
      try #require(try Program(curl, arguments).wait().status == 0)
    }
    let whole = try server.requests { try fetch(false) }
    #expect(whole.map(\.status) == ["200"] && whole.map(\.bytes) == [10] && whole.map(\.isBody) == [true])
    let part = try server.requests { try fetch(true) }
    #expect(part.map(\.status) == ["206"] && part.map(\.bytes) == [6] && part.map(\.range) == ["bytes=4-"])
    #expect(try server.requests {}.isEmpty)
  }

  @Test(
    .enabled(if: nginxObstacle == nil && Program.find("python3") != nil, "nginx and python3 are needed"),
    arguments: ["html", "json"])
  func theProbeSeesEveryAwkwardName(kind: String) throws {
    let tree = try TemporaryDirectory()
    let made = try Tool.run("awkward_tree.py", [tree.path])
    try #require(made.status == 0, "\(made)")
    let server = try Nginx(files: tree)
    let probe = try Tool.run("index_probe.py", [server.url(kind + "/")])
    try #require(probe.status == 0, "\(probe)")
    let offer = try #require(JSONSerialization.jsonObject(with: Data(probe.output.utf8)) as? [String: Any])
    let offered = try #require(offer["files"] as? [String: [Any]])
    let inventory = try #require(
      JSONSerialization.jsonObject(with: Data(made.output.utf8)) as? [[String: Any]])
    // nginx leaves out names that begin with a dot.
    let visible = inventory.filter { entry in
      let path = entry["path"] as? String ?? ""
      return !path.hasPrefix("2e") && !path.contains("2f2e")
    }
    #expect(Set(offered.keys) == Set(visible.compactMap { $0["path"] as? String }))
    #expect((offer["unserved"] as? [Any])?.count == 0)
  }
}
