import Foundation
import Testing

/// A tmpfs, of 60 MB where nothing else is said.
enum SmallDisk {
  static let obstacle: String? = {
    if let obstacle = Tarn.obstacleWithServer { return obstacle }
    guard let place = try? TemporaryDirectory(), (try? mount(place.path)) == 0 else {
      return "needs root and tmpfs"
    }
    unmount(place.path)
    return nil
  }()

  static func mount(_ path: String, megabytes: Int = 60, files: Int? = nil) throws -> Int32 {
    let options = "size=\(megabytes)m" + (files.map { ",nr_inodes=\($0)" } ?? "")
    return try Program("/bin/mount", ["-t", "tmpfs", "-o", options, "tmpfs", path]).wait().status
  }

  /// Takes the last byte.
  static func fill(_ path: String) throws {
    let file = try #require(fopen(path + "/ballast", "a"))
    defer { fclose(file) }
    setvbuf(file, nil, _IONBF, 0)
    let page = [UInt8](repeating: 1, count: 4096)
    while fwrite(page, 1, page.count, file) == page.count {}
  }

  static func unmount(_ path: String) {
    _ = try? Program("/bin/umount", ["-l", path]).wait()
  }
}

/// A folder on a file system that does not hold what the feed names.
@Suite(.serialized, .enabled(if: SmallDisk.obstacle == nil, "\(SmallDisk.obstacle ?? "")"))
struct SmallDiskTests {
  /// A checksum list says no sizes: what is too much is found out while it arrives.
  @Test(arguments: ["1%", "10MiB"])
  func theReserveIsKeptWithoutSizes(reserve: String) throws {
    let server = try Nginx(locations: "")
    let place = try TemporaryDirectory()
    try #require(try SmallDisk.mount(place.path) == 0)
    defer { SmallDisk.unmount(place.path) }
    var lines = ""
    for (number, megabytes) in [40, 40, 1].enumerated() {
      let data = Data(repeating: UInt8(65 + number), count: megabytes << 20)
      let file = try server.files.write(data, to: "f\(number).bin")
      lines += "\(try Feeds.sha256(file))  f\(number).bin\n"
    }
    try server.files.write(lines, to: "SHA256SUMS")
    let folder = place.path + "/mirror"
    for _ in 1...2 {
      let outcome = try Tarn.sync(server.url("SHA256SUMS"), folder, "--reserve", reserve, "--retries", "0")
      #expect(outcome.status == 3, "\(outcome)")
      #expect((outcome.output + outcome.errors).contains("no-space"), "\(outcome)")
      let there = (0..<2).filter { place.exists("mirror/f\($0).bin") }
      #expect(there.count == 1, "one of the two fits: \(there)")
      #expect(place.exists("mirror/f2.bin"))
      let space = try FileManager.default.attributesOfFileSystem(forPath: place.path)
      let free = (space[.systemFreeSize] as? NSNumber)?.int64Value ?? 0
      #expect(free >= (reserve == "1%" ? 600_000 : 10 << 20), "\(free) bytes are left")
    }
    #expect(try Tarn.run(["status", folder]).status == 0)
  }

  /// Not even the ledger's log can be made: the trash is emptied all the same, and what cannot be done says how to go on.
  @Test(arguments: [[], ["f0.bin"]]) func aFullDiskIsFreedOfTheTrash(names: [String]) throws {
    let server = try Nginx(locations: "")
    let place = try TemporaryDirectory()
    try #require(try SmallDisk.mount(place.path, megabytes: 20) == 0)
    defer { SmallDisk.unmount(place.path) }
    let folder = place.path + "/mirror"
    for version in 1...2 {
      let file = try server.files.write(Data(repeating: UInt8(version), count: 5 << 20), to: "f0.bin")
      try server.files.write("\(try Feeds.sha256(file))  f0.bin\n", to: "SHA256SUMS")
      #expect(try Tarn.sync(server.url("SHA256SUMS"), folder, "--no-keep-list").status == 0)
    }
    try SmallDisk.fill(place.path)
    let sync = try Tarn.run(["sync", folder])
    #expect(sync.status == 74, "\(sync)")
    #expect(sync.errors.contains("no space") && sync.errors.contains("/mirror/.tarn/"), "\(sync)")
    #expect(sync.errors.contains("tarn trash empty \(folder)"), "\(sync)")
    let verify = try Tarn.run(["verify", folder])
    #expect(verify.status == 0, "\(verify)")
    #expect(try Tarn.run(["trash", "list", folder]).output.contains("f0.bin"))
    let empty = try Tarn.run(["trash", "empty", "-y", folder] + names)
    #expect(empty.status == 0 && empty.output.contains("removed 1 file, 5.0 MiB"), "\(empty)")
    #expect(place.contents(below: "mirror/.tarn/trash").isEmpty)
    let space = try FileManager.default.attributesOfFileSystem(forPath: place.path)
    #expect((space[.systemFreeSize] as? NSNumber)?.int64Value ?? 0 > 4 << 20)
    #expect(!(try Tarn.run(["trash", "list", folder]).output.contains("f0.bin")))
    #expect(try Tarn.run(["sync", folder]).status == 0)
  }

  /// However much is free, no file can be made: each command says so, and none offers a pass that would fail the same way.
  @Test func whereNoFileCanBeMadeEachCommandSaysSo() throws {
    let server = try Nginx(locations: "")
    let place = try TemporaryDirectory()
    try #require(try SmallDisk.mount(place.path, files: 60) == 0)
    defer { SmallDisk.unmount(place.path) }
    var lines = ""
    for number in 1...300 {
      let file = try server.files.write(Data("\(number)\n".utf8), to: "f\(number)")
      lines += "\(try Feeds.sha256(file))  f\(number)\n"
    }
    try server.files.write(lines, to: "SHA256SUMS")
    let folder = place.path + "/mirror"
    let first = try Tarn.sync(server.url("SHA256SUMS"), folder)
    #expect(first.status == 3 && first.output.contains("can hold no more files"), "\(first)")
    let placed = (1...300).count { place.exists("mirror/f\($0)") }
    #expect(placed > 30)
    let asked = try server.requests().count { $0.uri.hasPrefix("/f") }
    #expect(asked <= placed + 60, "\(asked) requests for \(placed) files")

    let second = try Tarn.run(["sync", folder])
    #expect(second.status == 74, "\(second)")
    #expect(second.errors.contains("can hold no more files") && second.errors.contains("hint: "), "\(second)")
    let status = try Tarn.run(["status", folder]).output
    #expect(status.contains("can hold no more files") && status.contains("  hint "), "\(status)")
    #expect(!status.contains("next: tarn sync"), "\(status)")
    let remount = try Program("/bin/mount", ["-o", "remount,nr_inodes=600", place.path])
    try #require(try remount.wait().status == 0)
    #expect(try Tarn.run(["sync", folder]).status == 0)
    #expect(try Tarn.run(["status", folder]).output.contains("in sync"))
  }

  /// The doctor of one user, who has one mirror. It does not ask the server.
  private func doctor(_ home: TemporaryDirectory, afterSync words: [String]) throws -> Outcome {
    let environment = ["HOME": home.path, "STATE_DIRECTORY": home.path + "/state"]
    #expect(try Tarn.run(["sync", "--retries", "0"] + words, environment: environment).status == 3)
    return try Tarn.run(["doctor", "--offline"], environment: environment)
  }

  /// A checksum list says no sizes, and what failed for lack of space is no longer pending.
  @Test func theDoctorTellsOfFilesThatDidNotFit() throws {
    let server = try Nginx(locations: "")
    let (place, home) = (try TemporaryDirectory(), try TemporaryDirectory())
    try #require(try SmallDisk.mount(place.path, megabytes: 3) == 0)
    defer { SmallDisk.unmount(place.path) }
    var lines = ""
    for number in 0..<3 {
      let file = try server.files.write(
        Data(repeating: UInt8(65 + number), count: 1_468_000), to: "f\(number).bin")
      lines += "\(try Feeds.sha256(file))  f\(number).bin\n"
    }
    try server.files.write(lines, to: "SHA256SUMS")
    let outcome = try doctor(home, afterSync: [server.url("SHA256SUMS"), place.path + "/mirror"])
    #expect(
      outcome.status == 3 && outcome.output.contains("files did not fit in the last pass"), "\(outcome)")
  }

  /// A mirror made by hand remembers its reserve.
  @Test(arguments: [["--reserve", "0"], []]) func theDoctorKnowsTheReserve(options: [String]) throws {
    let server = try Nginx(locations: "")
    let (place, home) = (try TemporaryDirectory(), try TemporaryDirectory())
    try #require(try SmallDisk.mount(place.path, megabytes: 3) == 0)
    defer { SmallDisk.unmount(place.path) }
    let file = try server.files.write("one\n", to: "f1")
    let other = String(repeating: "0", count: 64)
    try server.files.write("\(try Feeds.sha256(file))  f1\n\(other)  gone\n", to: "SHA256SUMS")
    let words = [server.url("SHA256SUMS"), place.path + "/mirror"] + options
    _ = try doctor(home, afterSync: words)
    let space = try FileManager.default.attributesOfFileSystem(forPath: place.path)
    let free = (space[.systemFreeSize] as? NSNumber)?.intValue ?? 0
    try place.write(String(repeating: "x", count: max(0, free - (512 << 10))), to: "ballast")
    let outcome = try Tarn.run(
      ["doctor", "--offline"], environment: ["HOME": home.path, "STATE_DIRECTORY": home.path + "/state"])
    #expect(outcome.output.contains(" are free"), "\(outcome)")
    #expect(outcome.output.contains("(reserve)") == options.isEmpty, "\(outcome)")
  }

  /// What is reported does not fit at the end either: it was not taken for too large beside what failed later.
  @Test func whatIsSmallIsNotReportedBesideWhatIsLarge() throws {
    let server = try Nginx(locations: "")
    let place = try TemporaryDirectory()
    try #require(try SmallDisk.mount(place.path, megabytes: 20) == 0)
    defer { SmallDisk.unmount(place.path) }
    var sizes = ["huge.bin": 30 << 20]
    for number in 1...12 { sizes["m\(number).bin"] = (1 << 20) + number * 170_000 }
    for number in 1...50 { sizes["s\(number).txt"] = 8 }
    var lines = ""
    for (name, size) in sizes.sorted(by: { $0.key < $1.key }) {
      let text = Data(repeating: UInt8(lines.utf8.count & 127), count: size - 4) + Data(name.utf8.suffix(4))
      lines += "\(try Feeds.sha256(server.files.write(text, to: name)))  \(name)\n"
    }
    try server.files.write(lines, to: "SHA256SUMS")
    let outcome = try Tarn.sync(server.url("SHA256SUMS"), place.path + "/mirror", "--reserve", "0", "--json")
    #expect(outcome.status == 3, "\(outcome)")
    let problems = try JSON.documents(outcome.output).filter { $0["type"] as? String == "problem" }
    let failed = Set(problems.compactMap { $0["path"] as? String })
    let space = try FileManager.default.attributesOfFileSystem(forPath: place.path)
    let free = (space[.systemFreeSize] as? NSNumber)?.intValue ?? 0
    #expect(failed.contains("huge.bin"))
    #expect(failed.allSatisfy { sizes[$0] ?? 0 > free - (256 << 10) }, "\(free) free: \(failed)")
    #expect(
      sizes.keys.allSatisfy { place.exists("mirror/\($0)") != failed.contains($0) })
  }
}
