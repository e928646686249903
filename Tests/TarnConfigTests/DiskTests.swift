import Foundation
import TarnCore
import TarnSchedule
import Testing

@testable import TarnConfig

@Suite struct DiskTests {
  private func withDirectory(_ body: (String) throws -> Void) throws {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent(
      "tarn-config-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: url) }
    try body(url.path)
  }

  private func failure(_ path: String, limit: Int = 100) -> SettingsReadFailure? {
    do throws(SettingsReadFailure) {
      _ = try DiskSettings().read(path, limit: limit)
      return nil
    } catch {
      return error
    }
  }

  @Test func regularFilesAreRead() throws {
    try withDirectory { directory in
      let path = directory + "/a.toml"
      try Data("keep = 1\n".utf8).write(to: URL(fileURLWithPath: path))
      symlink(path, directory + "/link.toml")
      #expect(try DiskSettings().read(path, limit: 9) == Array("keep = 1\n".utf8))
      #expect(try DiskSettings().read(directory + "/link.toml", limit: 9).count == 9)
      #expect(failure(path, limit: 8) == .tooLong)
      #expect(DiskSettings().realPath(directory + "/link.toml") == DiskSettings().realPath(path))
      #expect(DiskSettings().realPath(directory + "/none") == nil)
      try Data(count: 200_000).write(to: URL(fileURLWithPath: path))
      #expect(try DiskSettings().read(path, limit: 200_000).count == 200_000)
    }
  }

  /// Neither waits for a writer nor reads without end.
  @Test func whatIsNoFileIsRefused() throws {
    try withDirectory { directory in
      mkfifo(directory + "/pipe", 0o600)
      symlink("loop", directory + "/loop")
      #expect(failure(directory + "/pipe") == .notRegular)
      #expect(failure(directory) == .notRegular)
      #expect(failure("/dev/zero") == .notRegular)
      #expect(failure(directory + "/none") == .missing)
      if case .other(let text) = failure(directory + "/loop") {
        #expect(!text.isEmpty)
      } else {
        Issue.record("no loop")
      }
    }
  }

  @Test func directoriesAreListed() throws {
    try withDirectory { directory in
      for name in ["b.toml", "a.toml"] { try Data().write(to: URL(fileURLWithPath: "\(directory)/\(name)")) }
      close(open(directory + "/x", O_CREAT | O_WRONLY, 0o600))
      let bytes: [CChar] =
        Array(directory.utf8.map { CChar(bitPattern: $0) }) + [0x2F, CChar(bitPattern: 0xFF), 0]
      close(open(bytes, O_CREAT | O_WRONLY, 0o600))
      let found = try DiskSettings().names(in: directory)
      #expect(Set(found.names) == [".", "..", "a.toml", "b.toml", "x"])
      #expect(found.others == ["\\xff"])
      #expect(throws: SettingsReadFailure.missing) { try DiskSettings().names(in: directory + "/none") }
    }
  }

  @Test func permissionsAreSeen() throws {
    try withDirectory { directory in
      let path = directory + "/secret"
      try Data("x".utf8).write(to: URL(fileURLWithPath: path))
      chmod(path, 0o640)
      let attributes = try DiskSettings().attributes(path)
      #expect(attributes == SettingsFileAttributes(isRegular: true, mode: 0o640, isReadable: true))
      #expect(try DiskSettings().attributes(directory).isRegular == false)
      #expect(symlink("gone", directory + "/dead") == 0)
      #expect(DiskSettings().target(ofLink: directory + "/dead") == "gone")
      #expect(DiskSettings().target(ofLink: path) == nil)
      #expect(throws: SettingsReadFailure.missing) { try DiskSettings().attributes(directory + "/none") }
    }
  }

  /// From the files to the settings, and again after a change.
  @Test func settingsOnADisk() throws {
    try withDirectory { directory in
      func write(_ text: String, _ name: String, mode: mode_t = 0o644) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: "\(directory)/\(name)"))
        chmod("\(directory)/\(name)", mode)
      }
      try FileManager.default.createDirectory(
        atPath: directory + "/tarn/conf.d", withIntermediateDirectories: true)
      try write("Authorization: Bearer hunter2", "token")
      try write("[mirror.a]\nfeed = \"/feed\"\nfolder = \"\(directory)/a\"", "tarn/tarn.toml")
      try write("[mirror.a]\nheader-file = \"\(directory)/token\"", "tarn/conf.d/a.toml")
      let paths = Sample.paths(["XDG_CONFIG_HOME": directory], isRoot: false)
      let loader = SettingsLoader(
        paths: paths, purpose: .run, reading: DiskSettings(), now: Timestamp(nanoseconds: 0)
      ) { _ in .utc }
      let open = loader.load()
      #expect(open.problems.map(\.code) == [.secretExposed])
      #expect(open.problems.first?.hint == "chmod 600 \(directory)/token")
      chmod(directory + "/token", 0o600)
      let loaded = loader.load()
      #expect(loaded.problems == [])
      #expect(loaded.settings?.mirror("a")?.secrets == [.headerFile: .file("\(directory)/token")])
      #expect(!SettingsText.show(loaded).contains("hunter2"))
    }
  }
}
