import Foundation
import TarnConfig
import TestSupport
import Testing

@testable import tarn

/// `tarn schedule`: what it prints is what systemd takes.
@Suite struct ScheduleTests {
  private static let hasSystemd = FileManager.default.isExecutableFile(atPath: "/usr/bin/systemd-analyze")
  private static let names = ["podcasts", "a-b", "50%off", "naïve", "cost$", "'q\""]

  private struct Document: Decodable {
    struct File: Decodable {
      var path: String
      var text: String
    }
    var unit: String
    var timer: File
    var service: File
  }

  /// A directory with settings for the mirrors, as the system's.
  private func withSettings(_ lines: (String) -> String, _ body: (URL) throws -> Void) throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("tarn-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    var text = ""
    for (index, name) in Self.names.enumerated() {
      let key = name.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\"", with: "\\\"")
      text += "[mirror.\"\(key)\"]\nfeed = \"https://example.org/\(index)/SHA256SUMS\"\n"
      text += "folder = \"/srv/mirrors/\(index) of %n\"\n\(lines(name))\n"
    }
    try Data(text.utf8).write(to: directory.appendingPathComponent("tarn.toml"))
    try body(directory)
  }

  private func schedule(_ mirror: String, in directory: URL) throws -> Document {
    let result = try TarnBinary.run(
      ["schedule", "--json", mirror], environment: ["CONFIGURATION_DIRECTORY": directory.path])
    #expect(result.status == 0, "\(result.messages)")
    return try JSONDecoder().decode(Document.self, from: Data(result.output.utf8))
  }

  private func run(_ program: String, _ arguments: [String]) throws -> (status: Int32, output: String) {
    let process = Process()
    let pipe = Pipe()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/\(program)")
    process.arguments = arguments
    process.standardOutput = pipe
    process.standardError = pipe
    try process.run()
    process.killWhenLate()
    let data = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: data, as: UTF8.self))
  }

  /// Writes the files where systemd looks for them, below the directory, beside the template.
  private func install(_ document: Document, in directory: URL) throws -> [String] {
    let template = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("packaging/systemd/tarn@.service")
    let text = try String(contentsOf: template, encoding: .utf8)
      .replacingOccurrences(of: "/usr/bin/tarn ", with: "/bin/true ")
    try text.write(to: directory.appendingPathComponent("tarn@.service"), atomically: true, encoding: .utf8)
    let root = "/etc/systemd/system/"
    var units: [String] = []
    for file in [document.timer, document.service] {
      #expect(file.path.hasPrefix(root))
      let url = directory.appendingPathComponent(String(file.path.dropFirst(root.count)))
      try FileManager.default.createDirectory(
        at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
      try file.text.write(to: url, atomically: true, encoding: .utf8)
    }
    units.append(directory.appendingPathComponent(document.unit).path)
    units.append(
      directory.appendingPathComponent(document.unit.replacingOccurrences(of: ".timer", with: ".service"))
        .path)
    return units
  }

  @Test(
    .enabled(if: hasSystemd, "systemd-analyze is not installed"),
    arguments: ["every = \"90min\"", "schedule = [\"Mon..Fri *-*-* 06:00\", \"Sat 12:00 UTC\"]", ""])
  func systemdTakesIt(_ rhythm: String) throws {
    try withSettings({ _ in rhythm }) { directory in
      for name in Self.names {
        let document = try schedule(name, in: directory)
        let escaped = try run("systemd-escape", ["--template=tarn@.timer", "--", name])
        #expect(document.unit + "\n" == escaped.output, "\(name)")
        let units = try install(document, in: directory)
        let verified = try run("systemd-analyze", ["verify", "--man=no"] + units)
        #expect(verified.status == 0 && verified.output == "", "\(name): \(verified.output)")
      }
    }
  }

  @Test func theTimerFollowsTheSettings() throws {
    try withSettings({
      $0 == "podcasts" ? "every = \"90min\"" : $0 == "a-b" ? "schedule = \"*-*-* 03:00\"" : ""
    }) {
      directory in
      let every = try schedule("podcasts", in: directory)
      #expect(every.timer.text.contains("\nOnUnitActiveSec=5400s\n"))
      #expect(every.timer.path == "/etc/systemd/system/tarn@podcasts.timer")
      #expect(every.service.path == "/etc/systemd/system/tarn@podcasts.service.d/tarn-schedule.conf")
      #expect(every.service.text.contains(" sync --no-input podcasts\n"))
      #expect(every.service.text.contains("\nReadWritePaths=\"/srv/mirrors/0 of %%n\"\n"))
      #expect(try schedule("a-b", in: directory).timer.text.contains("\nOnCalendar=*-*-* 03:00\n"))
      #expect(try schedule("50%off", in: directory).timer.text.contains("\nOnCalendar=hourly\n"))
      #expect(try schedule("cost$", in: directory).service.text.contains(" sync --no-input \"cost$$\"\n"))
    }
  }

  private static let secrets = "header-file = { credential = \"token\" }\nproxy = { credential = \"50%\" }"

  /// A pass of the timer has no other secrets than those of its own unit.
  @Test(arguments: [true, false]) func secretsComeToTheService(isSystem: Bool) throws {
    try withSettings({ $0 == "podcasts" ? Self.secrets : "" }) { directory in
      let file = directory.appendingPathComponent("tarn.toml").path
      let more = isSystem ? [:] : ["HOME": directory.path]
      let service = try TarnBinary.run(
        ["schedule", "--service", "podcasts"] + (isSystem ? [] : ["--config", file]),
        environment: isSystem ? ["CONFIGURATION_DIRECTORY": directory.path] : more)
      let place = service.output.contains("Type=oneshot") ? "%h/.config/tarn" : "/etc/tarn"
      #expect(
        service.output.contains(
          "\nLoadCredential=50%%:\(place)/credentials/50%%\nLoadCredential=token:\(place)/credentials/token\n"
        ),
        "\(service)")
      let other = try schedule("a-b", in: directory)
      #expect(!other.service.text.contains("LoadCredential"))
    }
  }

  @Test(.enabled(if: hasSystemd, "systemd-analyze is not installed")) func systemdTakesTheSecrets() throws {
    try withSettings({ $0 == "podcasts" ? Self.secrets : "" }) { directory in
      let units = try install(try schedule("podcasts", in: directory), in: directory)
      let verified = try run("systemd-analyze", ["verify", "--man=no"] + units)
      #expect(verified.status == 0 && verified.output == "", "\(verified.output)")
    }
  }

  /// As the packaged unit of a user: one filter without its error number kills the program that it is to confine.
  @Test func theUsersServiceIsConfinedAsThePackagedOne() throws {
    let service = TimerText(
      program: "/usr/bin/tarn", arguments: ["m"], name: "m", config: [], rhythm: .command, writes: ["/srv/m"],
      isSystem: false
    ).service.joined(separator: "\n")
    let unit = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("packaging/systemd/user/tarn.service")
    let packaged = Self.confinement(try String(contentsOf: unit, encoding: .utf8))
    #expect(packaged.contains("SystemCallErrorNumber=EPERM"))
    #expect(Self.confinement(service) == packaged, "\(service)")
  }

  private static func confinement(_ unit: String) -> Set<String> {
    let marks = [
      "NoNewPrivileges=", "LockPersonality=", "Memory", "Restrict", "SystemCall", "Protect", "Private",
    ]
    return Set(
      unit.split(separator: "\n").map(String.init).filter { line in marks.contains { line.hasPrefix($0) } })
  }

  /// What is pasted makes the same files again.
  /// systemd opens only what is there to a service.
  @Test(arguments: [true, false]) func aFolderThatIsMissingIsMadeForTheService(isSystem: Bool) {
    var text = TimerText(
      program: "/usr/bin/tarn", arguments: ["m"], name: "m", config: [], rhythm: .command,
      writes: ["/srv/a b", "/srv/c"], isSystem: isSystem)
    #expect(!text.lines.contains { $0.contains("install -d") })
    text.missing = ["/srv/a b"]
    #expect(text.lines.contains("#   install -d -o tarn -g tarn '/srv/a b'") == isSystem)
    #expect(!text.lines.contains { $0.contains("/srv/c") })
  }

  @Test func theLinesToInstallItNameTheSettings() throws {
    try withSettings({ _ in "" }) { directory in
      let file = directory.appendingPathComponent("my tarn.toml")
      try FileManager.default.copyItem(at: directory.appendingPathComponent("tarn.toml"), to: file)
      let result = try TarnBinary.run(["schedule", "--config", file.path, "a-b"])
      #expect(result.status == 0, "\(result.messages)")
      for line in [
        "#   tarn schedule --config '\(file.path)' a-b > ",
        "#   tarn schedule --config '\(file.path)' --service a-b > ",
      ] {
        #expect(result.output.contains("\n" + line), "\(result.output)")
      }
    }
  }

  /// systemd would start such a timer, and wait for ever.
  @Test(arguments: ["schedule = \"*-02-30 03:00\"", "schedule = \"*-04-31 03:00\""])
  func aTimerThatNeverElapsesIsRefused(_ rhythm: String) throws {
    try withSettings({ $0 == "podcasts" ? rhythm : "" }) { directory in
      let file = directory.appendingPathComponent("tarn.toml").path
      let result = try TarnBinary.run(["schedule", "--config", file, "podcasts"])
      #expect(result.status == 78 && result.output == "")
      #expect(result.messages.hasPrefix("\(file):4:12: error: 'schedule' takes a time that occurs, and '"))
      #expect(!result.messages.contains("tarn sync FEED"))
    }
  }

  /// Nothing is printed for what no pass could be made of.
  @Test func whatIsNoMirrorIsRefused() throws {
    try withSettings({ _ in "" }) { directory in
      let result = try TarnBinary.run(
        ["schedule", "podcast"], environment: ["CONFIGURATION_DIRECTORY": directory.path])
      #expect(result.status == 73)
      #expect(result.output == "")
      #expect(
        result.messages.contains("'podcast' is neither a name in the settings nor the folder of a mirror"))
    }
  }
}
