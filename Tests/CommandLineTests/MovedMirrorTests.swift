import Foundation
import Testing

/// Mirrors by hand whose folders are moved, linked or restored.
@Suite struct MovedMirrorTests {
  private let place: LocalPlace

  init() throws {
    place = try LocalPlace()
    try place.publish(["a.txt": "one\n", "b.txt": "two\n"])
  }

  private func known() throws -> [String] {
    struct Answer: Decodable {
      struct Mirror: Decodable { var folder: String }
      var mirrors: [Mirror]
    }
    return try JSONDecoder().decode(Answer.self, from: Data(place.tarn("status", "--json").output.utf8))
      .mirrors
      .map(\.folder)
  }

  /// However it is called.
  @Test func aFolderThatALinkLeadsToIsOneMirror() throws {
    defer { place.end() }
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "a").status == 0)
    try FileManager.default.createDirectory(
      at: place.url.appendingPathComponent("disk"), withIntermediateDirectories: true)
    try place.move("a", to: "disk/a")
    try place.link("a", to: "disk/a")
    #expect(try place.tarn("sync", "./a").status == 0)
    #expect(try place.tarn("sync", from: "a").status == 0)
    #expect(try known().count == 1)
    let all = try place.tarn("sync")
    #expect(all.status == 0 && all.output.components(separatedBy: "in sync").count == 2, "\(all)")
    let twice = try place.tarn("status", "--check", "./a", "./disk/a", "./a")
    #expect(twice.output.contains(" 1 mirror,"), "\(twice)")
    #expect(try place.tarn("forget", ".", from: "disk/a").status == 0)
    #expect(try place.tarn("status").messages.contains("no mirror is known"))
  }

  /// To give the feed again is no order to fetch all again, without the options that it had.
  @Test(arguments: [false, true]) func aFeedMakesNoMirrorAnewThatWasMoved(isEmptied: Bool) throws {
    defer { place.end() }
    #expect(try place.tarn("sync", "--exclude", "b.txt", "./feed/SHA256SUMS", "h").status == 0)
    try place.move("h", to: "h2")
    if isEmptied {
      try FileManager.default.createDirectory(
        at: place.url.appendingPathComponent("h"), withIntermediateDirectories: true)
    }
    for command in ["sync", "plan"] {
      for option in [[], ["--adopt"]] {
        let refused = try place.tarn([command] + option + ["./feed/SHA256SUMS", "h"])
        #expect(
          refused.status == 73 && refused.messages.contains("h was a mirror, and its folder was moved")
            && refused.messages.contains("tarn sync PLACE")
            && refused.messages.contains("tarn sync --recreate ./feed/SHA256SUMS h\n"),
          "\(command): \(refused)")
      }
    }
    #expect(!place.exists("h/a.txt"))
    if isEmptied { try place.remove("h") }
    try place.move("h2", to: "h")
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "h").status == 0)
    #expect(!place.exists("h/b.txt"), "its options are there")
    try place.remove("h")
    #expect(try place.tarn("sync", "--recreate", "./feed/SHA256SUMS", "h").status == 0)
    #expect(place.exists("h/b.txt"))
  }

  /// Each of its files is another inode then, and a copy with the same time.
  @Test(.enabled(if: Self.hasOtherDisk, "there is no other file system at /dev/shm"))
  func whatMovedToAnotherDiskIsStillTarns() throws {
    defer { place.end() }
    #expect(try place.tarn("sync", "--delete", "./feed/SHA256SUMS", "m").status == 0)
    let disk = "/dev/shm/\(place.url.lastPathComponent)"
    try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: disk) }
    let move = Process()
    move.executableURL = URL(fileURLWithPath: "/bin/mv")
    move.arguments = [place.path + "/m", disk + "/m"]
    try move.run()
    move.waitUntilExit()
    #expect(move.terminationStatus == 0)
    let moved = try place.tarn("sync", disk + "/m")
    #expect(moved.status == 0, "\(moved)")
    try place.publish(["a.txt": "two\n"])
    try place.remove("feed/b.txt")
    let later = try place.tarn("sync", disk + "/m")
    #expect(later.status == 0 && later.output.contains("1 moved to the trash"), "\(later)")
    let trash = try place.tarn("trash", disk + "/m").output
    #expect(trash.contains("b.txt") && trash.contains("a.txt") && !trash.contains("not Tarn's"), "\(trash)")
    #expect(try place.tarn("forget", disk + "/m").status == 0)
  }

  private static let hasOtherDisk: Bool = {
    func device(_ path: String) -> UInt64? {
      (try? FileManager.default.attributesOfItem(atPath: path))?[.systemNumber] as? UInt64
    }
    return device("/dev/shm") != nil
      && device("/dev/shm") != device(FileManager.default.temporaryDirectory.path)
  }()

  /// What the next pass would undo is not done.
  @Test func whatIsNotTheFeedsIsNotRestoredWhereItBelongs() throws {
    defer { place.end() }
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "m").status == 0)
    try place.write("mine\n", "m/a.txt")
    #expect(try place.tarn("sync", "m").status == 0)
    try place.remove("m/a.txt")
    let refused = try place.tarn("trash", "restore", "m", "a.txt")
    #expect(
      refused.status == 64 && refused.messages.contains("a.txt is a file of the feed")
        && refused.messages.contains("--to PATH")
        && refused.messages.contains("tarn sync --local-changes keep \(place.path)/m"), "\(refused)")
    #expect(!place.exists("m/a.txt"))
    #expect(try place.tarn("trash", "restore", "m", "a.txt", "--to", "mine.txt").status == 0)
    #expect(place.text("m/mine.txt") == "mine\n")
    // The feed's own bytes are welcome, and any where local changes are kept.
    try place.write("mine\n", "m/b.txt")
    #expect(try place.tarn("sync", "m").status == 0)
    try place.remove("m/b.txt")
    #expect(try place.tarn("sync", "--local-changes", "keep", "m").status == 0)
    #expect(try place.tarn("trash", "restore", "m", "b.txt").status == 0)
    #expect(place.text("m/b.txt") == "mine\n")
  }

  /// Whoever approved a plan by mistake gets its files back at once.
  @Test func severalFilesAreRestored() throws {
    defer { place.end() }
    #expect(try place.tarn("sync", "--local-changes", "keep", "./feed/SHA256SUMS", "m").status == 0)
    for name in ["a.txt", "b.txt"] { try place.write("mine\n", "m/\(name)") }
    #expect(try place.tarn("sync", "--local-changes", "restore", "m").status == 0)
    for name in ["a.txt", "b.txt"] { try place.remove("m/\(name)") }
    #expect(try place.tarn("sync", "--local-changes", "keep", "m").status == 0)
    let both = try place.tarn("trash", "restore", "m", "a.txt", "none.txt", "b.txt")
    #expect(both.status == 64 && both.output.contains("restored a.txt"), "\(both)")
    #expect(both.messages.contains("the trash has no 'none.txt'"), "\(both)")
    #expect(place.text("m/a.txt") == "mine\n" && !place.exists("m/b.txt"))
    #expect(try place.tarn("trash", "restore", "m", "b.txt", "--to", "c", "d").status == 64)
    let rest = try place.tarn("trash", "restore", "--json", "m", "b.txt")
    #expect(rest.status == 0 && rest.output.contains("\"b.txt\""), "\(rest)")
    #expect(place.text("m/b.txt") == "mine\n")
  }
}
