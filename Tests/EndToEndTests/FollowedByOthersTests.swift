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
  private func asThem(_ words: [String], group: String = user) throws -> Program {
    try Program(
      try #require(Program.find("setpriv")),
      ["--reuid", Self.user, "--regid", group, "--clear-groups", Tarn.path] + words,
      environment: Tarn.environment(theirs), in: place.url.appendingPathComponent("theirs"))
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
}
