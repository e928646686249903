import Foundation
import Testing

/// The name of a configured mirror, where no folder is called so.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class NameTests: AgentHouse {
  init() throws {
    try super.init(files: ["f1": "one\n", "f2": "two\n"])
    try settings(mirror())
  }

  private func mirror(_ more: String = "") -> String {
    """
    [mirror.m]
    feed = "\(server.url("SHA256SUMS"))"
    folder = "\(place.path)/files"
    \(more)

    """
  }

  @Test func verifyRepairsByName() throws {
    #expect(try tarn("sync", "-q", "m").status == 0)
    try place.remove("files/f1")
    let repair = try tarn("verify", "--repair", "m")
    #expect(repair.status == 0 && place.text("files/f1") == "one\n", "\(repair)")
    try settings(mirror("dry-run = true"))
    try place.remove("files/f1")
    let plan = try tarn("verify", "--repair", "m")
    #expect(plan.output.contains("to do: 1 to restore") && !place.exists("files/f1"), "\(plan)")
    // The same words plan, with an agent and without.
    let sync = try tarn("sync", server.url("SHA256SUMS"), place.path + "/files")
    #expect(sync.output.contains("to do: 1 to restore") && !place.exists("files/f1"), "\(sync)")
  }

  @Test func forgetTakesAName() throws {
    #expect(try tarn("sync", "-q", "m").status == 0)
    let forgotten = try tarn("forget", "m")
    #expect(forgotten.status == 0 && !place.exists("files/.tarn") && place.exists("files/f1"), "\(forgotten)")
    #expect(forgotten.errors.contains("the settings still name it"), "\(forgotten)")
    try place.remove("files")
    let never = try tarn("forget", "m")
    #expect(never.status == 64 && never.errors.contains("was never synced"), "\(never)")
  }

  @Test func nothingIsApprovedWhereSettingsOnlyPlan() throws {
    try settings(mirror("dry-run = true"))
    let refused = try tarn("approve", "m", "1a2b3c4d")
    #expect(refused.status == 64 && refused.errors.contains("'dry-run' is in the settings"), "\(refused)")
  }

  /// A request without its secret would tell another story than the one that is wanted.
  @Test func aCredentialThatIsNotThereFailsThePass() throws {
    try settings(mirror("header-file = { credential = \"h\" }"))
    let asked = try server.requests {
      let sync = try tarn("sync", "m")
      #expect(sync.status == 78 && sync.errors.contains("$CREDENTIALS_DIRECTORY"), "\(sync)")
    }
    #expect(asked.isEmpty, "\(asked)")
  }
}
