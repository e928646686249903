import Foundation
import Testing

/// What is said of mirrors whose settings cannot be taken, without an agent that goes on with older ones.
@Suite(.enabled(if: Tarn.obstacle == nil, "\(Tarn.obstacle ?? "")"))
struct FaultySettingsTests {
  private let place: TemporaryDirectory
  private let good: String

  init() throws {
    place = try TemporaryDirectory()
    try place.write("", to: "home/.keep")
    let source = try TemporaryDirectory()
    try Feeds.publish(["f1": "one\n"], in: source)
    for name in ["f1", "SHA256SUMS"] { try place.write(source.text(name) ?? "", to: "source/\(name)") }
    good = """
      [mirror.files]
      feed = "\(place.path)/source/SHA256SUMS"
      folder = "\(place.path)/files"

      """
    try place.write(good, to: "tarn.toml")
    #expect(try tarn("sync", "files").status == 0)
  }

  private func tarn(_ arguments: String...) throws -> Outcome {
    let environment = [
      "HOME": place.path + "/home", "STATE_DIRECTORY": place.path + "/state",
      "RUNTIME_DIRECTORY": place.path + "/run",
    ]
    return try Tarn.run(
      arguments + ["--config", place.path + "/tarn.toml"], environment: environment, in: place.url)
  }

  /// Each with its place, an excerpt and a hint; and what the ledgers know.
  @Test func statusTellsTheErrorsAndWhatIsRecorded() throws {
    try place.write(good + "evry = \"1h\"\nkeep = -1\n\n[mirror.new]\nfeed = 7\n", to: "tarn.toml")
    let all = try tarn("status")
    #expect(all.status == 78 && all.output.contains("files") && all.output.contains("in sync"), "\(all)")
    for part in ["tarn.toml:4:1: ", "4 | evry", "write 'every'", ":5:8: ", ":8:8: ", "3 errors"] {
      #expect(all.errors.contains(part), "\(part): \(all.errors)")
    }
    // Who names a mirror that is there is answered.
    let named = try tarn("status", "files")
    #expect(named.status == 0 && named.output.contains("in sync"), "\(named)")
    #expect(named.errors.contains("tarn.toml:4:1: "))
    let json = try tarn("status", "--json")
    let document = try #require(try JSON.documents(json.output).first)
    #expect(json.status == 78 && (document["mirrors"] as? [[String: Any]])?.count == 1, "\(json)")
    #expect(try JSON.documents(json.errors).first?["exitStatus"] as? Int == 78)
    let check = try tarn("status", "--check")
    #expect(check.status == 3 && check.output.hasPrefix("late: the settings are not taken: "), "\(check)")
  }

  /// Nothing can be read of them, but the list of this user's mirrors.
  @Test func whatIsNoTOMLIsToldToo() throws {
    try place.write("[mirror.files\n", to: "tarn.toml")
    let all = try tarn("status")
    #expect(all.status == 78 && all.output.contains("in sync"), "\(all)")
    #expect(all.errors.contains("tarn.toml:1:") && all.errors.contains("[mirror.files"), "\(all)")
    let unknown = try tarn("status", "nothing")
    #expect(unknown.status >= 64 && unknown.errors.contains("tarn.toml:1:"), "\(unknown)")
  }
}
