import Glibc
import TarnAgent
import TarnConfig
import TarnCore
import TarnRuntime

/// The texts of a bundle for a bug report. Each is the output of a command, without secrets.
struct ReportBundle {
  struct Part {
    var name: String
    var text: String
  }

  private let session: Session
  private let scrubber: Scrubber

  init(_ session: Session) {
    self.session = session
    scrubber = Scrubber(session)
  }

  func parts(asksServers: Bool) -> [Part] {
    var parts = [
      Part(name: "README.txt", text: Self.readme),
      Part(name: "version.txt", text: version()),
      own("settings.toml", ["config", "show"]), own("settings-check.txt", ["config", "check"]),
      own("settings-files.txt", ["config", "paths"]), own("status.json", ["status", "--json"]),
      own("status.txt", ["status", "-v"]),
      own("doctor.txt", ["doctor"] + (asksServers ? [] : ["--offline"])),
      own("events.jsonl", ["events", "--newest", "500", "--json"]),
    ]
    let scope = session.sources.paths.instance == .system ? [] : ["--user"]
    let journal = ["--unit=tarn.service", "--lines=1000", "--no-pager", "--output=short-iso"]
    parts.append(other("journal.txt", "journalctl", scope + journal))
    parts.append(other("unit.txt", "systemctl", scope + ["--no-pager", "show", "tarn.service"]))
    return parts.map { Part(name: $0.name, text: scrubber.clean($0.text)) }
  }

  private static let readme = """
    What 'tarn report' gathered for a bug report, and *** where it took a secret out.
    Names and passwords in addresses, what follows a ? in them, and what the files of headers, passwords, cookies and proxies hold
    are taken out. So are the paths in addresses of hooks, and the arguments of their programs.
    Names of hosts, folders and files are in it: look through it before you give it away.

    """

  private func version() -> String {
    var lines = ["tarn \(Tarn.version)"]
    var name = utsname()
    if uname(&name) == 0 {
      lines += [Self.text(&name.sysname), Self.text(&name.release), Self.text(&name.machine)]
    }
    if let system = TextFile.read("/etc/os-release", limit: 64 << 10) { lines.append(system) }
    if let systemd = ChildProgram.run("systemctl", ["--version"]) { lines.append(systemd.text) }
    return lines.joined(separator: "\n") + "\n"
  }

  private static func text<Characters>(_ field: inout Characters) -> String {
    withUnsafeBytes(of: &field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }

  /// Runs this program and returns its output.
  private func own(_ name: String, _ words: [String]) -> Part {
    let paths = session.sources.paths
    let config = paths.file.map { ["--config", $0] } ?? []
    let socket = paths.overrides.filter { $0.origin == .flag("--socket") }.flatMap { ["--socket", $0.text] }
    return other(name, "/proc/self/exe", words + ["--color", "never", "--no-input"] + config + socket)
  }

  private func other(_ name: String, _ program: String, _ arguments: [String]) -> Part {
    guard let said = ChildProgram.run(program, arguments, seconds: 120) else {
      return Part(name: name, text: "\(program) is not there\n")
    }
    let messages = String(decoding: said.messages, as: UTF8.self)
    let status = if case .status(let status) = said.end { "\(status)" } else { "killed" }
    let end = status == "0" ? "" : "(ended with \(status))\n"
    return Part(name: name, text: said.text + messages + end)
  }

  // MARK: The archive

  /// - Parameter name: the name of the directory in the archive.
  /// - Returns: the bytes of a tar.gz.
  static func archive(_ parts: [Part], name: String) throws(PassFailure) -> [UInt8] {
    let temporary = ChildProgram.temporaryDirectory
    var template = Array("\(temporary)/.tarn-report-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw failure("cannot make a directory in \(temporary)") }
    let directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let inner = "\(directory)/\(name)"
    defer {
      for part in parts { unlink("\(inner)/\(part.name)") }
      rmdir(inner)
      rmdir(directory)
    }
    guard mkdir(inner, 0o700) == 0 else { throw failure("cannot make a directory in \(temporary)") }
    for part in parts {
      let path = "\(inner)/\(part.name)"
      let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
      guard descriptor >= 0 else { throw failure("cannot write \(path)") }
      let isWritten = TextFile.writeAll(Array(part.text.utf8), to: descriptor)
      close(descriptor)
      guard isWritten else { throw failure("cannot write \(path)") }
    }
    let words = ["--create", "--gzip", "--owner=0", "--group=0", "--directory=\(directory)", name]
    guard let tar = ChildProgram.run("tar", words + ["--file=-"], seconds: 120, limit: 256 << 20),
      tar.end == .status(0)
    else { throw failure("tar or gzip failed") }
    return tar.output
  }

  private static func failure(_ message: String) -> PassFailure {
    PassFailure(
      .inputOutput, code: "report-not-written", message, hint: "is there space, and is tar installed?")
  }
}
