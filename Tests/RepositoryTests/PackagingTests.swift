import Foundation
import Testing

/// The units, the example and the scripts are what the README says.
@Suite struct PackagingTests {
  static let hasSystemd = Command.exists("systemd-analyze")
  private static let units = ["tarn@.service", "tarn@.timer", "tarn.service"]

  /// Copies of the units in a directory of their own, with a program that exists; `change` may spoil the service.
  private func withUnits(_ change: (String) -> String = { $0 }, _ body: (URL) throws -> Void) throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
      "tarn-units-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    for name in Self.units {
      let text = try Repository.text("packaging/systemd/\(name)").replacingOccurrences(
        of: "/usr/bin/tarn ", with: "/bin/true ")
      try change(text).write(to: directory.appendingPathComponent(name), atomically: true, encoding: .utf8)
    }
    try body(directory)
  }

  /// `verify` ends with 0 even for a key that it does not know: only empty messages will do.
  private func verify(_ directory: URL) throws -> String {
    let units = Self.units.map { directory.appendingPathComponent($0).path }
    let result = try Command.run("systemd-analyze", ["verify", "--man=no"] + units)
    return result.errors + (result.status == 0 ? "" : "status \(result.status)")
  }

  @Test(.enabled(if: hasSystemd, "systemd-analyze is not installed"))
  func systemdHasNoComplaint() throws {
    try withUnits { directory in
      let complaints = try verify(directory)
      #expect(complaints == "")
    }
  }

  @Test(.enabled(if: hasSystemd, "systemd-analyze is not installed"))
  func systemdComplainsOfAKeyItDoesNotKnow() throws {
    try withUnits({ $0.replacingOccurrences(of: "[Service]", with: "[Service]\nProtectEverything=yes") }) {
      directory in
      let complaints = try verify(directory)
      #expect(complaints.contains("ProtectEverything"))
    }
  }

  @Test(.enabled(if: hasSystemd, "systemd-analyze is not installed"))
  func theServiceIsConfined() throws {
    try withUnits { directory in
      let unit = directory.appendingPathComponent("tarn@.service").path
      let result = try Command.run("systemd-analyze", ["security", "--offline=true", "--threshold=20", unit])
      #expect(result.status == 0, "\(result.output.suffix(300)) \(result.errors)")
    }
    #expect(
      try Repository.text("packaging/systemd/tarn@.service").contains("\nSystemCallErrorNumber=EPERM\n"))
  }

  @Test(.enabled(if: hasSystemd, "systemd-analyze is not installed"))
  func theAgentsServiceIsConfined() throws {
    try withUnits { directory in
      let unit = directory.appendingPathComponent("tarn.service").path
      let result = try Command.run("systemd-analyze", ["security", "--offline=true", "--threshold=15", unit])
      #expect(result.status == 0, "\(result.output.suffix(300)) \(result.errors)")
    }
    let unit = try Repository.text("packaging/systemd/tarn.service")
    #expect(unit.contains("\nSystemCallErrorNumber=EPERM\n") && unit.contains("\nType=notify\n"))
    // The peers of its socket are known by their users.
    #expect(!unit.split(separator: "\n").contains { $0.hasPrefix("PrivateUsers=") })
  }

  /// A user's manager can confine less: no mounts of its own, no other user.
  @Test func theUsersServiceIsConfined() throws {
    let unit = try Repository.text("packaging/systemd/user/tarn.service")
    let lines = Set(unit.split(separator: "\n").map(String.init))
    for line in [
      "NoNewPrivileges=yes", "LockPersonality=yes", "MemoryDenyWriteExecute=yes", "RestrictRealtime=yes",
      "RestrictNamespaces=yes", "SystemCallArchitectures=native", "SystemCallFilter=@system-service",
      "SystemCallErrorNumber=EPERM",
    ] {
      #expect(lines.contains(line), "\(line)")
    }
    #expect(lines.contains { $0.hasPrefix("RestrictAddressFamilies=") && !$0.contains("~") })
  }

  @Test(.enabled(if: hasSystemd, "systemd-analyze is not installed"))
  func systemdFindsTheUsersServiceConfined() throws {
    // 9.3 without any of it.
    let result = try Command.run(
      "systemd-analyze",
      ["security", "--offline=true", "--threshold=65", "packaging/systemd/user/tarn.service"])
    #expect(result.status == 0, "\(result.output.suffix(300)) \(result.errors)")
  }

  /// The boot's id lies in /proc/sys, which ProcSubset=pid hides; without it every pass counts as the first of a new
  /// boot, and bytes that a killed one left are fetched again (I3).
  @Test func theServiceCanReadWhichBootItIs() throws {
    let lines = try Repository.text("packaging/systemd/tarn@.service").split(separator: "\n")
    let hiding = lines.filter { $0.hasPrefix("ProcSubset=") || $0.hasPrefix("InaccessiblePaths=") }
    #expect(hiding == [])
    #expect(
      try Repository.text("Sources/TarnRuntime/BootID.swift").contains("/proc/sys/kernel/random/boot_id"))
  }

  /// With RestrictSUIDSGID= the kernel answers openat2 with ENOSYS, and no folder can be opened (boot_test.py
  /// shows it).
  @Test(arguments: ["tarn.service", "tarn@.service"]) func theServiceHasOpenat2(unit: String) throws {
    let lines = try Repository.text("packaging/systemd/\(unit)").split(separator: "\n")
    #expect(!lines.contains { $0.hasPrefix("RestrictSUIDSGID=") })
    #expect(try Repository.text("Sources/LinuxShim/shim.c").contains("SYS_openat2"))
  }

  @Test(.enabled(if: hasSystemd, "systemd-analyze is not installed"))
  func theCalendarIsOne() throws {
    let timer = try Repository.text("packaging/systemd/tarn@.timer")
    let expressions = timer.split(separator: "\n").filter { $0.hasPrefix("OnCalendar=") }.map {
      $0.dropFirst(11)
    }
    #expect(expressions.count == 1)
    for expression in expressions {
      #expect(try Command.run("systemd-analyze", ["calendar", String(expression)]).status == 0)
    }
    #expect(try Command.run("systemd-analyze", ["calendar", "sometimes"]).status != 0)
  }

  /// A signal to all of the service would end `tarn-watch` before the agent does, and be told as its death.
  @Test(arguments: ["tarn.service", "user/tarn.service"]) func onlyTheAgentIsToldToStop(unit: String) throws {
    #expect(try Repository.text("packaging/systemd/\(unit)").contains("\nKillMode=mixed\n"))
  }

  // MARK: - tarn-watch

  /// The commands of the page put it where the agent looks for it.
  @Test func theAgentsCommandsInstallTarnWatch() throws {
    let page = try Repository.text("packaging/INSTALL.md")
    let block = try #require(
      page.components(separatedBy: "## As a service").dropFirst().first?
        .components(separatedBy: "```").dropFirst().first)
    let places = ["tarn", "tarn-watch"].map { name in
      block.split(separator: "\n").first { $0.contains(" .build/release/\(name) ") }?
        .split(separator: " ").last.map(String.init)
    }
    let tarn = try #require(places[0])
    let directory = URL(fileURLWithPath: tarn).deletingLastPathComponent().path
    let looked = try Repository.text("Sources/TarnWatch/WatcherChild.swift")
    #expect(looked.contains("directory + \"/../libexec/tarn/tarn-watch\""))
    #expect(
      places[1] == URL(fileURLWithPath: directory + "/../libexec/tarn/tarn-watch").standardized.path)
  }

  /// Both programs are built, and Debian's library is there for the build and for the machine that runs it.
  @Test func tarnWatchIsBuiltAndHasItsLibrary() throws {
    let library = try Repository.text("packaging/lib.sh")
    #expect(library.contains(" libinotifytools0-dev\n"))
    // Not by the package manager, which would link Swift's runtime into it.
    let built = try #require(library.components(separatedBy: "\n  \"$compiler\" ").dropFirst().first)
    let package = try Repository.text("Package.swift")
    let products = package.components(separatedBy: ".executable(name: \"").dropFirst().compactMap {
      $0.split(separator: "\"").first.map(String.init)
    }
    #expect(products.sorted() == ["tarn", "tarn-watch"])
    #expect(library.contains("--product tarn >&2") && !library.contains("--product tarn-watch"))
    #expect(built.contains("-o \"$place/tarn-watch\"") && built.contains("-linotifytools >&2"))
    for path in ["packaging/INSTALL.md", "Tests/Tools/boot_test.py"] {
      #expect(try Repository.text(path).contains("libinotifytools0"), "\(path)")
    }
  }

  // MARK: - The Debian package

  @Test func everyUnitIsInThePackage() throws {
    let script = try Repository.text("packaging/deb")
    let units = Repository.sources(in: "packaging/systemd", suffixes: [""]).map {
      String($0.path.dropFirst("packaging/systemd/".count))
    }
    #expect(units.count > 5)
    for unit in units { #expect(script.contains("\"$units/\(unit)\""), "\(unit)") }
  }

  /// Where the mirror of the example looks, the package has the feed, and where it writes, the units let it.
  @Test func theFirstMirrorIsTheExample() throws {
    let settings = try Repository.text("packaging/debian/example.toml")
    #expect(settings.contains("\nfeed = \"/usr/share/tarn/example/SHA256SUMS\"\n"))
    #expect(settings.contains("\nfolder = \"/srv/mirrors/example\"\n"))
    let script = try Repository.text("packaging/deb")
    #expect(script.contains("share=$root/usr/share/tarn\n"))
    #expect(script.contains("cp -r \"$ROOT/config/example\" \"$share/example\"\n"))
  }

  /// The user tarn writes the list of folders: root may not follow it.
  @Test func aPurgeRemovesRecordsAsTheirOwner() throws {
    let script = try Repository.text("packaging/debian/tarn.postrm")
    let removal = try #require(script.components(separatedBy: "setpriv --reuid tarn").dropFirst().first)
    #expect(removal.contains("rm -rf \"$record\""))
    #expect(!script.components(separatedBy: "setpriv")[0].contains("rm -rf"))
  }

  /// A record elsewhere, by `state`, stays: a purge says where it is.
  @Test func aPurgeNamesTheRecordsThatItLeaves() throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
      "tarn-purge-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: directory) }
    func write(_ text: String, _ path: String) throws {
      let file = directory.appendingPathComponent(path)
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try text.write(to: file, atomically: true, encoding: .utf8)
    }
    let folders = ["plain", "moved", "full"].map { directory.path + "/" + $0 }
    try write(folders.map { "id\tfs\t\($0)\n" }.joined(), "list")
    try write("id\n", "plain/.tarn/id")
    try write("id\n/srv/state\n", "moved/.tarn")
    try write("mine\n", "full/.tarn/trash/a")
    let script = try Repository.text("packaging/debian/tarn.postrm")
    let removal = try #require(script.components(separatedBy: "sh -c '").last)
    let body = removal.components(separatedBy: "' </dev/null")[0]
      .replacingOccurrences(of: "/var/lib/tarn/mirrors", with: directory.path + "/list")
    let result = try Command.run("sh", ["-c", body])
    #expect(result.status == 0 && result.errors.isEmpty, "\(result)")
    #expect(result.output.contains("the record of \(folders[1]) is in /srv/state, "), "\(result)")
    #expect(result.output.contains("the trash in \(folders[2])/.tarn holds files: it stays"), "\(result)")
    let left = folders.map { FileManager.default.fileExists(atPath: $0 + "/.tarn") }
    #expect(left == [false, true, true])
  }

  // MARK: - The example of an environment file

  @Test func theExampleNamesAFeedAFolderAndOptions() throws {
    let values = try Environment.parse(Repository.text("config/example.env"))
    #expect(values.keys.sorted() == ["FEED", "FOLDER", "TARN_OPTIONS"])
    #expect(values["FEED"]?.hasPrefix("https://") == true)
    #expect(values["FOLDER"]?.hasPrefix("/") == true)
    let service = try Repository.text("packaging/systemd/tarn@.service")
    #expect(service.contains("sync --no-input $TARN_OPTIONS ${FEED} ${FOLDER}\n"))
  }

  @Test(arguments: ["FEED", "A B=c", "=x", "X=$HOME", "X=`date`", "X=two words", "X=\"open"])
  func aBadEnvironmentFileIsSeen(line: String) {
    #expect(throws: Environment.Failure.self) { try Environment.parse(line) }
  }

  // MARK: - Scripts and the example feed

  @Test(arguments: ["packaging/run", "packaging/test", "packaging/deb", ".ci/run"])
  func theCommandsAreThereAndParse(path: String) throws {
    let full = Repository.root.appendingPathComponent(path).path
    #expect(FileManager.default.isExecutableFile(atPath: full))
    #expect(try Command.run("bash", ["-n", full]).status == 0)
    let readme = try Repository.text("README.md")
    #expect(path == ".ci/run" || readme.contains("\n\(path)\n"))
  }

  /// It ended in the middle, with a word of cat's alone.
  @Test func aBinaryWithoutItsCheckoutsIsRefusedAtOnce() throws {
    let script = Repository.root.appendingPathComponent("packaging/deb").path
    let result = try Command.run(
      "env", ["TARN_RELEASE_SCRATCH=/nonexistent", script, "--binary", "/bin/true", "/tmp"])
    #expect(result.status == 1 && result.output == "", "\(result)")
    #expect(result.errors.hasPrefix("deb: the notices of the libraries are not in /nonexistent/checkouts; "))
    #expect(result.errors.contains("swift package resolve --scratch-path /nonexistent\n"))
  }

  /// README says what is run, and what only with an option.
  @Test func theReadmeNamesTheOptionsOfTheTests() throws {
    let readme = try Repository.text("README.md")
    let script = Repository.root.appendingPathComponent("packaging/test").path
    let usage = try Command.run("bash", [script, "--help"]).output
    for option in ["--quick", "--all"] {
      #expect(readme.contains("`\(option)`") && usage.contains("packaging/test \(option)"), "\(option)")
    }
    #expect(!readme.contains("every test") && !usage.contains("everything:"))
  }

  @Test func theExampleFeedListsEveryFileAndNoOther() throws {
    let base = Repository.root.appendingPathComponent("config/example")
    let result = try Command.run(
      "sh", ["-c", "cd '\(base.path)' && sha256sum --check --strict --quiet SHA256SUMS"])
    #expect(result.status == 0, "\(result.output)\(result.errors)")
    let listed = try Repository.text("config/example/SHA256SUMS").split(separator: "\n").map {
      String($0.dropFirst(66))
    }
    let present = Repository.sources(in: "config/example", suffixes: [""]).map {
      String($0.path.dropFirst(15))
    }
    #expect(Set(listed + ["SHA256SUMS"]) == Set(present))
  }
}

/// What systemd's EnvironmentFile= takes, less what it takes by accident.
enum Environment {
  struct Failure: Error {
    var line: String
  }

  static func parse(_ text: String) throws -> [String: String] {
    var values: [String: String] = [:]
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
      guard let sign = line.firstIndex(of: "=") else { throw Failure(line: String(line)) }
      let name = line[..<sign]
      var value = line[line.index(after: sign)...]
      guard !name.isEmpty, name.allSatisfy({ $0.isUppercase || $0 == "_" }),
        !value.contains(where: { "$`".contains($0) })
      else { throw Failure(line: String(line)) }
      if value.hasPrefix("\"") {
        guard value.count > 1, value.hasSuffix("\"") else { throw Failure(line: String(line)) }
        value = value.dropFirst().dropLast()
      } else if value.contains(" ") {
        throw Failure(line: String(line))
      }
      values[String(name)] = String(value)
    }
    return values
  }
}
