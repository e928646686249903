import Foundation
import Testing

/// `tarn init`, off a terminal.
@Suite final class InitTests {
  private let place: LocalPlace

  init() throws {
    place = try LocalPlace()
    try place.publish(["a": "one\n"])
  }

  deinit { place.end() }

  @Test func aFileIsWrittenAndNeverOverwritten() throws {
    let first = try place.tarn("init", "--limit-rate", "2MiB/s")
    #expect(first.status == 0, "\(first)")
    #expect(first.output == "written: \(place.path)/tarn.toml\nnext: tarn add FEED FOLDER\n")
    let text = try #require(place.text("tarn.toml"))
    #expect(text.contains("\nlimit-rate = \"2MiB/s\"\n") && text.split(separator: "\n").count < 20)
    #expect(try place.tarn("config", "check").status == 0)
    let again = try place.tarn("init")
    #expect(again.status == 64 && again.messages.contains("is there already, and stays as it is"), "\(again)")
    #expect(place.text("tarn.toml") == text)
  }

  /// `tarn add` does not write into the file of `--config`.
  @Test func aFileOfItsOwnIsFilledByHand() throws {
    let result = try place.tarn("init", "--config", "own.toml")
    let check = "tarn config check --config \(place.path)/own.toml"
    #expect(
      result.output == "written: \(place.path)/own.toml\nnext: write a mirror into it, then: \(check)\n",
      "\(result)")
  }

  /// The hint names a command that has the option.
  @Test func aFeedThatCannotBeReadIsAddedWithoutAsking() throws {
    let result = try place.tarn("init", "./feed/none", "m")
    #expect(result.status == 66 && result.messages.contains("'tarn add --no-check' adds"), "\(result)")
    #expect(!place.exists("tarn.toml"))
  }

  /// What stands there in comments is right, once the marks are taken away.
  @Test func theExampleIsRight() throws {
    #expect(try place.tarn("init").status == 0)
    let text = try #require(place.text("tarn.toml"))
    try place.write("", "netrc")
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: place.path + "/netrc")
    let lines = text.split(separator: "\n").map { line in
      line.hasPrefix("#") && !line.hasPrefix("# ") ? String(line.dropFirst()) : String(line)
    }
    try place.write(
      lines.joined(separator: "\n").replacing("/path/to", with: place.path) + "\n", "tarn.toml")
    let check = try place.tarn("config", "check")
    #expect(check.status == 0 && check.output.contains("1 mirror"), "\(check)")
  }

  @Test func aFirstMirrorComesWithIt() throws {
    let result = try place.tarn("init", "feed/SHA256SUMS", "m", "--every", "2h", "--json")
    #expect(result.status == 0, "\(result)")
    #expect(result.output.contains("\"next\":\"tarn agent\""), "\(result.output)")
    #expect(place.exists("tarn.toml") && place.text("conf.d/m.toml")?.contains("every = \"2h\"") == true)
  }

  @Test func nothingIsLeftOfWhatFails() throws {
    let result = try place.tarn("init", "feed/none", "m")
    #expect(result.status == 64 || result.status == 66, "\(result)")
    #expect(!place.exists("tarn.toml") && !place.exists("conf.d/m.toml"))
    #expect(try place.tarn("init", "feed/SHA256SUMS").status == 64)
    #expect(try place.tarn("init", "--limit-rate", "fast").status == 64)
  }

  @Test func aNamedFileIsWrittenToo() throws {
    let result = try place.tarn("init", "--config", "mine.toml")
    #expect(result.status == 0 && place.exists("mine.toml") && !place.exists("tarn.toml"), "\(result)")
    #expect(try place.tarn("init", "--config", "mine.toml").status == 64)
    #expect(try place.tarn("init", "--config", "other.toml", "feed/SHA256SUMS", "m").status == 64)
    #expect(!place.exists("other.toml"))
  }
}
