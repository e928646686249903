import Glibc
import TarnControl
import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnServer

/// Who may ask what.
@Suite struct PeerTests {
  private static let hasPython = Program.exists("python3")
  private static let isRoot = geteuid() == 0

  private func peer(_ user: UInt32, _ group: UInt32 = 500, _ groups: [UInt32] = []) -> Peer {
    Peer(process: 1, user: user, group: group, groups: groups)
  }

  // MARK: - The rule

  @Test func theOwnerRootAndTheGroupAreAdmitted() {
    let policy = PeerPolicy(user: 100, group: 200, isPartial: false)
    #expect(policy.admits(peer(0)))
    #expect(policy.admits(peer(100)))
    #expect(policy.admits(peer(300, 200)))
    #expect(policy.admits(peer(300, 500, [7, 200])))
    #expect(!policy.admits(peer(300, 500, [7])))
    #expect(!policy.admits(peer(PeerPolicy.unmappedUser)))
  }

  /// An agent of root's own would take the settings of the system's.
  @Test func rootIsNotToldToStartAnAgentOfItsOwn() {
    let policy = PeerPolicy(user: 100, group: 200, isPartial: false)
    #expect(policy.kind(of: peer(0)) == .root && policy.kind(of: peer(100)) == .owner)
    #expect(policy.kind(of: peer(300)) == .other && policy.kind(of: nil) == .other)
    #expect(PeerPolicy(user: 0, group: nil, isPartial: false).kind(of: peer(0)) == .owner)
    #expect(PeerUser.root.wayToSessions.hasPrefix("'tarn get' without --background needs no agent; "))
    #expect(!PeerUser.root.wayToSessions.contains("of your own"))
    #expect(PeerUser.other.wayToSessions.hasPrefix("start one of your own: "))
  }

  @Test func withoutBitsForTheGroupItsMembersAreNot() {
    let policy = PeerPolicy(user: 100, group: nil, isPartial: false)
    #expect(!policy.admits(peer(300, 200, [200])))
    #expect(policy.admits(peer(100)))
  }

  @Test(arguments: [(0o600, false), (0o644, false), (0o660, true), (0o666, true)] as [(UInt32, Bool)])
  func theModeSaysWhetherTheGroupIs(mode: UInt32, hasGroup: Bool) throws {
    let directory = ScratchDirectory()
    let file = try SocketFile.bind(ControlSocket(path: directory.file("s"), mode: mode))
    defer { close(file.descriptor) }
    #expect(PeerPolicy(file).group == (hasGroup ? file.group : nil))
    #expect(PeerPolicy(file).user == geteuid())
  }

  @Test func whomANamespaceDoesNotKnowTheKernelHasJudged() {
    let policy = PeerPolicy(user: 100, group: 200, isPartial: true)
    #expect(policy.admits(peer(PeerPolicy.unmappedUser)))
    #expect(!policy.admits(peer(300)))
    #expect(!PeerPolicy.isPartial(uidMap: "         0          0 4294967295\n"))
    #expect(
      PeerPolicy.isPartial(uidMap: "         0          0          1\n       999        999          1\n"))
    #expect(PeerPolicy.isPartial(uidMap: "         0     100000      65536\n"))
  }

  // MARK: - Two users

  @Test(.enabled(if: isRoot && hasPython, "only root can be another user, and python3 is the client"))
  func anotherUserIsRefusedWithAReason() throws {
    let stage = try Stage(mode: 0o666, group: .number(65_400))
    let user = ["--uid", "65321", "--gid", "65322"]
    let refused = try Program.foreign(user + [stage.path, "GET", "/v1/status"])
    #expect(refused.status == "403")
    let failure = try #require(ControlJSON.decode(ControlFailure.self, from: Array(refused.body.utf8)))
    #expect(failure.code == "peer-refused")
    #expect(failure.message == "user 65321 may not steer this agent")
    #expect(failure.hint == "user 0 and root may, and members of group 65400")
    for route in [["POST", "/v1/reload"], ["GET", "/v1/events/stream"], ["GET", "/v1/nothing"]] {
      #expect(try Program.foreign(user + [stage.path] + route).status == "403")
    }
    #expect(stage.agent.asked == [])
  }

  @Test(.enabled(if: isRoot && hasPython, "only root can be another user, and python3 is the client"))
  func membersOfTheGroupAreAdmittedWhenTheModeSaysSo() throws {
    let stage = try Stage(mode: 0o660, group: .number(65_400))
    let ask = [stage.path, "GET", "/v1/status"]
    #expect(try Program.foreign(["--uid", "65321", "--gid", "65400"] + ask).status == "200")
    #expect(
      try Program.foreign(["--uid", "65321", "--gid", "65322", "--groups", "4,65400"] + ask).status == "200")
    #expect(
      try Program.foreign(["--uid", "65321", "--gid", "65322", "--groups", "4"] + ask).status == "EACCES")
    let owners = try Stage(mode: 0o600, group: .number(65_400))
    #expect(
      try Program.foreign(["--uid", "65321", "--gid", "65400", owners.path, "GET", "/v1/status"]).status
        == "EACCES")
  }

  /// Who may steer the agent may not have its sessions: their files are written with its rights.
  @Test(.enabled(if: isRoot && hasPython, "only root can be another user, and python3 is the client"))
  func sessionsAreOfTheAgentsUserOnly() throws {
    let stage = try Stage(mode: 0o660, group: .number(65_400))
    let member = ["--uid", "65321", "--gid", "65400", stage.path]
    #expect(try Program.foreign(member + ["GET", "/v1/status"]).status == "200")
    let routes = ControlRoute.allCases.filter(\.isOfSessions)
    #expect(routes.count == 7)
    for route in routes {
      for method in route.methods {
        let refused = try Program.foreign(member + [method, route.rawValue])
        #expect(refused.status == "403", "\(method) \(route)")
        guard method != "HEAD" else { continue }
        let failure = try #require(ControlJSON.decode(ControlFailure.self, from: Array(refused.body.utf8)))
        #expect(failure.code == "sessions-of-another-user" && failure.kind == .permission)
        #expect(failure.hint?.hasPrefix("start one of your own: systemctl --user start tarn; ") == true)
        #expect(failure.hint?.hasSuffix("'tarn get' without --background needs no agent") == true)
      }
    }
    #expect(stage.agent.asked == [#"status [] 20"#])
    #expect(try Program.foreign([stage.path, "GET", "/v1/sessions"]).status == "200")
  }

  @Test(.enabled(if: isRoot && hasPython, "only root can be another user, and python3 is the client"))
  func everyoneMayReadTheRedactedStatusAndNothingElse() throws {
    let stage = try Stage()
    var mirror = StatusDocument(
      name: "iso", feed: "https://u:secret@example.org/secret?x", folder: "/secret/iso", state: "failing")
    mirror.lastFailure = "secret"
    let status = StatusAnswer(mirrors: [mirror])
    stage.agent.state.withLock { $0.status = status }
    let user = ["--uid", "65321", "--gid", "65322", stage.everyone]
    let answer = try Program.foreign(user + ["GET", "/v1/status?mirror=iso&problems=5"])
    #expect(answer.status == "200")
    #expect(!answer.body.contains("secret"))
    let shown = try #require(ControlJSON.decode(StatusAnswer.self, from: Array(answer.body.utf8)))
    #expect(shown.mirrors.map(\.state) == ["failing"])
    #expect(shown.mirrors.map(\.feed) == ["https://example.org"])
    // The metrics of mirrors hold no path and no address; of sessions they tell the owner alone.
    #expect(try Program.foreign(user + ["GET", "/metrics"]).status == "200")
    for route in ControlRoute.allCases where ![.status, .metrics].contains(route) {
      let method = route.methods[0]
      #expect(try Program.foreign(user + [method, route.rawValue]).status == "403")
    }
    #expect(try Program.foreign(user + ["POST", "/v1/status"]).status == "405")
    #expect(stage.agent.asked == [#"status ["iso"] 0"#, "metrics false"])
  }

  @Test func theSocketForEveryoneIsNoOracleForFolders() throws {
    let stage = try Stage()
    let client = RawClient(stage.everyone)
    let folder = client.request("GET", "/v1/status?mirror=/srv/secret")
    stage.agent.fail(ControlFailure(.notFound, code: "x", "no mirror /srv/secret", hint: "secret"))
    let name = client.request("GET", "/v1/status?mirror=secret")
    #expect(folder?.status == 404)
    #expect(folder?.body == name?.body)
    stage.agent.fail(ControlFailure(.defect, code: "x", "at /srv/secret", hint: "secret"))
    let defect = client.request("GET", "/v1/status")
    #expect(defect?.status == 500)
    #expect(defect?.body.contains("secret") == false)
  }

  @Test func theRootOfThisTestIsServedOnTheSocketForEveryoneAsEveryoneIs() throws {
    let stage = try Stage()
    #expect(RawClient(stage.everyone).request("POST", "/v1/reload")?.status == 403)
    #expect(RawClient(stage.everyone).request("GET", "/v1/events/stream")?.status == 403)
    #expect(RawClient(stage.everyone).request("HEAD", "/v1/status")?.status == 200)
  }

  // MARK: - Foreign programs

  @Test(.enabled(if: Program.exists("curl"), "curl is not installed"))
  func curlUnderstands() throws {
    let stage = try Stage()
    let curl = ["curl", "-sS", "--max-time", "20", "--unix-socket", stage.path]
    let status = try Program.run(curl + ["http://tarn/v1/status"])
    #expect(status.status == 0)
    #expect(status.output == #"{"mirrors":[],"schema":"tarn-status/1"}"#)
    let command = #"{"verb":"sync","target":{"mirror":"m"}}"#
    let done = try Program.run(curl + ["--json", command, "http://tarn/v1/command"])
    #expect(done.output == #"{"message":"done","run":7,"schema":"tarn-control/1","wasSo":false}"#)
    #expect(stage.agent.asked == ["status [] 20", "sync m -"])
  }

  @Test(.enabled(if: hasPython, "python3 is not installed"))
  func pythonUnderstands() throws {
    let stage = try Stage()
    let answer = try Program.foreign([stage.path, "PUT", "/v1/limit", #"{"bytesPerSecond":5}"#])
    #expect(answer.status == "200")
    #expect(answer.body.contains(#""message":"limited""#))
    let long = try Program.foreign([stage.path, "POST", "/v1/command", String(repeating: "x", count: 90_000)])
    #expect(long.status == "413")
  }
}
