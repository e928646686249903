import Foundation
import Testing

/// What a plan calls a change, with the built program over local feeds.
@Suite struct PlanTests {
  private let place: LocalPlace

  init() throws {
    place = try LocalPlace()
    try place.publish(["a.txt": "one\n", "b.txt": "two\n"])
  }

  private func set(_ attributes: [FileAttributeKey: Any], of name: String) throws {
    try FileManager.default.setAttributes(attributes, ofItemAtPath: place.path + "/" + name)
  }

  /// By `touch`, `cp -al` or `chown` nothing is another file.
  @Test func aFileAsItWasRecordedIsNoChange() throws {
    defer { place.end() }
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "m").status == 0)
    try set([.modificationDate: Date(timeIntervalSince1970: 1_700_000_000)], of: "m/a.txt")
    let hard = place.path + "/hard"
    try FileManager.default.linkItem(atPath: place.path + "/m/b.txt", toPath: hard)
    let plan = try place.tarn("plan", "--exit-code", "m")
    #expect(plan.status == 0 && plan.output == "nothing to do: 3 of 3 files current\n", "\(plan)")
    let json = try place.tarn("plan", "--json", "m")
    #expect(json.output.contains("\"inSync\":true"), "\(json)")
    let sync = try place.tarn("sync", "m")
    #expect(sync.status == 0 && sync.messages.contains("nothing to do: 3 already there"), "\(sync)")
    #expect(!(sync.messages + sync.output).contains("fetching"), "\(sync)")
  }

  /// The pass puts it back.
  @Test func anotherModeIsToBeRestored() throws {
    defer { place.end() }
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "m").status == 0)
    try set([.posixPermissions: 0o600], of: "m/a.txt")
    let plan = try place.tarn("plan", "--exit-code", "m")
    #expect(plan.status == 2 && plan.output.contains("restore       its mode  a.txt\n"), "\(plan)")
    #expect(plan.output.contains("to do: 1 to restore; 2 of 3 files current"), "\(plan)")
    #expect(try place.tarn("sync", "m").output.contains("1 restored"))
    #expect(try place.tarn("plan", "--exit-code", "m").status == 0)
  }

  /// What somebody else put there becomes Tarn's to keep.
  @Test func aFileOfSomebodyElsesIsToBeAdopted() throws {
    defer { place.end() }
    #expect(try place.tarn("sync", "--include", "a.txt", "./feed/SHA256SUMS", "m").status == 0)
    try place.write("two\n", "m/b.txt")
    let plan = try place.tarn("plan", "--exit-code", "--include", "*", "m")
    #expect(plan.status == 2 && plan.output.contains("1 to adopt"), "\(plan)")
  }

  @Test func whatIsKeptIsSaid() throws {
    defer { place.end() }
    #expect(try place.tarn("sync", "--local-changes", "keep", "./feed/SHA256SUMS", "m").status == 0)
    try place.write("mine\n", "m/a.txt")
    let plan = try place.tarn("plan", "--exit-code", "m")
    #expect(
      plan.status == 0 && plan.output == "nothing to do: 2 of 3 files current, 1 left as changed here\n",
      "\(plan)")
  }

  @Test func whatIsHeldAlreadyIsNotWhatWouldBe() throws {
    defer { place.end() }
    let files = Dictionary(uniqueKeysWithValues: (0..<12).map { ("f\($0)", "one\n") })
    try place.publish(files)
    #expect(try place.tarn("sync", "--delete", "./feed/SHA256SUMS", "m").status == 0)
    try place.publish(["f0": "one\n"])
    let before = try place.tarn("plan", "m")
    #expect(before.output.contains("11 deletions would be held as plan"), "\(before)")
    #expect(try place.tarn("sync", "m").status == 3)
    let plan = try place.tarn("plan", "--exit-code", "m")
    #expect(plan.status == 3 && plan.output.hasPrefix("hold "), "\(plan)")
    #expect(plan.output.contains("11 deletions held as plan"), "\(plan)")
    let next = try #require(plan.output.split(separator: "\n").last)
    #expect(next.hasPrefix("next: tarn approve m "), "\(plan)")
    let words = next.split(separator: " ").dropFirst(2).map(String.init)
    #expect(try place.tarn(words + ["-y"]).status == 0)
  }
}
