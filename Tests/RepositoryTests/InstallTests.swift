import Foundation
import Testing

private let installObstacle: String? = {
  if let missing = ["systemd-sysusers", "systemd-tmpfiles"].first(where: { !Command.exists($0) }) {
    return "\(missing) is not installed"
  }
  return geteuid() == 0 ? nil : "giving files to the user tarn needs root"
}()

/// What the files for sysusers and tmpfiles make of a root where nothing is, by systemd's own programs.
@Suite(.enabled(if: installObstacle == nil, "\(installObstacle ?? "")"))
final class InstallTests {
  private let root = FileManager.default.temporaryDirectory.appendingPathComponent(
    "tarn-install-\(UUID().uuidString)")

  init() throws {
    for (name, directory) in [("sysusers", "sysusers.d"), ("tmpfiles", "tmpfiles.d")] {
      let place = root.appendingPathComponent("usr/lib/\(directory)")
      try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
      try Repository.text("packaging/systemd/tarn.\(name).conf").write(
        to: place.appendingPathComponent("tarn.conf"), atomically: true, encoding: .utf8)
    }
    try FileManager.default.createDirectory(
      at: root.appendingPathComponent("etc"), withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: root) }

  /// Both end with 0 and say nothing of a mistake.
  private func install() throws {
    let users = try Command.run("systemd-sysusers", ["--root=\(root.path)", "tarn.conf"])
    #expect(users.status == 0, "\(users.errors)")
    let files = try tmpfiles()
    #expect(files.status == 0 && files.errors == "", "\(files.errors)")
  }

  private func tmpfiles() throws -> Command.Result {
    try Command.run("systemd-tmpfiles", ["--create", "--root=\(root.path)", "tarn.conf"])
  }

  private func attributes(_ path: String) throws -> (mode: UInt32, user: UInt32, group: UInt32) {
    var status = stat()
    try #require(lstat(root.path + path, &status) == 0, "\(path) is not there")
    return (status.st_mode & 0o7777, status.st_uid, status.st_gid)
  }

  /// User and group number of tarn, as the root's own files say.
  private func tarn() throws -> (user: UInt32, group: UInt32, line: String) {
    let text = try String(contentsOf: root.appendingPathComponent("etc/passwd"), encoding: .utf8)
    let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("tarn:") })
    let fields = line.split(separator: ":", omittingEmptySubsequences: false)
    return (try #require(UInt32(fields[2])), try #require(UInt32(fields[3])), String(line))
  }

  @Test func aUserWithoutALogin() throws {
    try install()
    let user = try tarn()
    #expect(user.line.hasSuffix(":/var/lib/tarn:/usr/sbin/nologin") && user.user > 0 && user.user < 1000)
    let groups = try String(contentsOf: root.appendingPathComponent("etc/group"), encoding: .utf8)
    #expect(groups.contains("tarn:x:\(user.group):"))
  }

  @Test func theDirectoriesThatNoUnitMakes() throws {
    try install()
    let user = try tarn()
    #expect(try attributes("/srv/mirrors") == (0o755, user.user, user.group))
    #expect(try attributes("/etc/tarn") == (0o755, 0, 0))
    #expect(try attributes("/etc/tarn/conf.d") == (0o755, 0, 0))
    #expect(try attributes("/etc/tarn/credentials") == (0o700, 0, 0))
    // The folders of the file are those that the units let the service write to.
    for unit in ["tarn.service", "tarn@.service"] {
      #expect(try Repository.text("packaging/systemd/\(unit)").contains("\nReadWritePaths=-/srv/mirrors\n"))
    }
  }

  /// It runs at every boot.
  @Test func whatAnAdministratorChoseStays() throws {
    try install()
    #expect(chmod(root.path + "/etc/tarn", 0o750) == 0)
    #expect(chown(root.path + "/srv/mirrors", 0, 0) == 0 && chmod(root.path + "/srv/mirrors", 0o2775) == 0)
    try install()
    #expect(try attributes("/etc/tarn").mode == 0o750)
    #expect(try attributes("/srv/mirrors") == (0o2775, 0, 0))
  }

  @Test func withoutTheUserItSaysSo() throws {
    let files = try tmpfiles()
    #expect(files.status != 0 && files.errors.contains("tarn"), "\(files.errors)")
  }
}
