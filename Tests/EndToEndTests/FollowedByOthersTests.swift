import Foundation
import Testing

/// Whoever follows all that is known, while an agent of somebody else's knows more than that user may read.
@Suite(
  .serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"),
  .enabled(
    if: geteuid() == 0 && Program.find("setpriv") != nil, "only root is somebody else, by means of setpriv"))
final class FollowedByOthersTests: AgentHouse {
  /// A user that no file of the system knows.
  private static let user = "4321"
  private var theirs: [String: String] {
    ["HOME": place.path + "/theirs", "RUNTIME_DIRECTORY": place.path + "/run"]
  }

  init() throws {
    try super.init(files: ["f1": "one\n"])
    for (name, mode) in [("run", 0o755), ("theirs", 0o755)] {
      try place.write("", to: name + "/.keep")
      try FileManager.default.setAttributes(
        [.posixPermissions: mode], ofItemAtPath: place.path + "/" + name)
    }
    for path in ["", "/theirs"] { chmod(place.path + path, 0o755) }
    chown(place.path + "/theirs", 4321, 4321)
  }

  /// - Parameter group: theirs, or that of the agent, whose members may ask it.
  private func asThem(
    _ words: [String], group: String = user, in directory: String = "theirs"
  ) throws -> Program {
    try Program(
      try #require(Program.find("setpriv")),
      ["--reuid", Self.user, "--regid", group, "--clear-groups", Tarn.path] + words,
      environment: Tarn.environment(theirs), in: place.url.appendingPathComponent(directory))
  }

  private func sync(_ folder: String) throws {
    let outcome = try asThem(["sync", "-q", server.url("SHA256SUMS"), folder]).wait()
    #expect(outcome.status == 0, "\(outcome)")
  }

  /// - Parameter mayAsk: that user is of the agent's group; its mirror is for nobody else all the same.
  @Test(arguments: [false, true]) func whatThatUserMayNotReadIsLeftOut(mayAsk: Bool) throws {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    try sync("own")
    let follower = try asThem(["events", "--follow"], group: mayAsk ? "0" : Self.user)
    defer { follower.signal(SIGKILL) }
    try waitUntil("it follows") { follower.outputSoFar.contains("own  fetched  f1") }
    // Each is found in a round of its own.
    for name in ["second", "third"] {
      try sync(name)
      try waitUntil("it goes on: \(follower.errorsSoFar)") {
        follower.outputSoFar.contains("\(name)  fetched  f1") || !follower.isRunning
      }
    }
    #expect(follower.isRunning, "\(follower.errorsSoFar)")
    #expect(!follower.outputSoFar.contains("  files  "), "\(follower.outputSoFar)")
    follower.signal(SIGINT)
    #expect(try follower.wait().status == 130)
  }

  private func folders(_ words: String..., in directory: String = "theirs") throws -> [String] {
    let status = try asThem(["status", "--json"] + words, in: directory).wait()
    let mirrors = try JSON.documents(status.output).first?["mirrors"] as? [[String: Any]] ?? []
    return mirrors.map { $0["folder"] as? String ?? "\(status)" }
  }

  /// The agent tells no folder, and its settings have the name for another mirror.
  @Test func aMirrorOfTheirsThatIsCalledLikeTheAgentsIsNotHidden() throws {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    let mine = place.path + "/theirs/mine"
    try place.write(
      "[mirror.files]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(mine)\"\n",
      to: "theirs/.config/tarn/tarn.toml")
    #expect(try asThem(["sync", "-q", "files"]).wait().status == 0)
    #expect(try folders() == ["files", mine])
    #expect(try folders("files") == [mine])
    let check = try asThem(["status", "--check", "--json"]).wait()
    let verdicts = try JSON.documents(check.output).first?["check"] as? [[String: Any]]
    #expect(verdicts?.count == 2, "\(check)")
  }

  /// Inside the folder of a mirror as well.
  @Test func aNameOfTheAgentsIsNotTheMirrorAroundIt() throws {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    try sync("own")
    #expect(try folders("files", in: "theirs/own") == ["files"])
    #expect(try folders("f1", in: "theirs/own") == [place.path + "/theirs/own"])
  }
}
