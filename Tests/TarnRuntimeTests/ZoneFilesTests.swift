import Foundation
import Glibc
import TarnRuntime
import Testing

@Suite struct ZoneFilesTests {
  /// A time zone directory of its own: `Europe/Berlin`, a FIFO, a file that is too large, and one outside of it.
  private final class Directory {
    let root = FileManager.default.temporaryDirectory.appendingPathComponent("tarn-\(UUID().uuidString)")
    var zones: String { root.path + "/zones" }

    init() throws {
      let files = FileManager.default
      try files.createDirectory(atPath: zones + "/Europe", withIntermediateDirectories: true)
      try Data("TZif-berlin".utf8).write(to: URL(fileURLWithPath: zones + "/Europe/Berlin"))
      try Data("TZif-secret".utf8).write(to: root.appendingPathComponent("secret"))
      try Data(count: ZoneFiles.mostBytes + 1).write(to: URL(fileURLWithPath: zones + "/Large"))
      mkfifo(zones + "/Fifo", 0o600)
    }

    deinit { try? FileManager.default.removeItem(at: root) }

    func files(_ variable: String? = nil, localtime: String = "/does/not/exist") -> ZoneFiles {
      var environment = ["TZDIR": zones]
      environment["TZ"] = variable
      return ZoneFiles(environment: environment, localtime: localtime)
    }
  }

  private static let berlin = Array("TZif-berlin".utf8)

  @Test func aZoneIsReadByItsName() throws {
    let directory = try Directory()
    #expect(try directory.files().bytes(of: "Europe/Berlin") == Self.berlin)
  }

  @Test(arguments: [
    ("Europe/Nowhere", ENOENT), ("Europe", EISDIR), ("Fifo", ESPIPE), ("Large", EFBIG), ("../secret", EINVAL),
    ("Europe/../../secret", EINVAL), ("/etc/passwd", EINVAL), ("", EINVAL), ("Europe//Berlin", EINVAL),
    ("Europe/", EINVAL), (".hidden", EINVAL), ("Europe/Berlin\0x", EINVAL),
  ])
  func otherNamesAreRefused(name: String, number: Int32) throws {
    let directory = try Directory()
    let failure = #expect(throws: ZoneFiles.Failure.self) { try directory.files().bytes(of: name) }
    #expect(failure?.number == number)
    #expect(failure?.operation == "read the time zone \(name)")
  }

  @Test func theVariableDecides() throws {
    let directory = try Directory()
    #expect(try directory.files("Europe/Berlin").local() == .file(Self.berlin))
    #expect(try directory.files(":Europe/Berlin").local() == .file(Self.berlin))
    #expect(try directory.files(directory.zones + "/Europe/Berlin").local() == .file(Self.berlin))
    #expect(try directory.files("").local() == .utc)
    #expect(try directory.files("CET-1CEST,M3.5.0,M10.5.0/3").local() == .text("CET-1CEST,M3.5.0,M10.5.0/3"))
    #expect(try directory.files("../secret").local() == .text("../secret"))
    #expect(throws: ZoneFiles.Failure.self) { try directory.files(":Nowhere").local() }
    #expect(throws: ZoneFiles.Failure.self) { try directory.files("/does/not/exist").local() }
  }

  @Test func withoutItTheMachineDoes() throws {
    let directory = try Directory()
    #expect(try directory.files(localtime: directory.zones + "/Europe/Berlin").local() == .file(Self.berlin))
    #expect(try directory.files().local() == .utc)
    #expect(throws: ZoneFiles.Failure.self) { try directory.files(localtime: directory.zones).local() }
  }

  /// A relative TZDIR would depend on where the process was started.
  @Test func aRelativeDirectoryIsPassedOver() {
    let files = ZoneFiles(environment: ["TZDIR": "."])
    #expect(throws: ZoneFiles.Failure.self) { try files.bytes(of: "Package.swift") }
  }
}
