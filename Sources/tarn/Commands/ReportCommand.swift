import ArgumentParser
import Glibc
import TarnCore
import TarnRuntime

/// The command `tarn report`.
struct ReportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "report",
    abstract: "Write an archive for a bug report, without secrets.",
    usage: "tarn report [options]",
    discussion: """
      Examples:
        tarn report
        tarn report --to /tmp/tarn.tar.gz

      The archive holds the version, the settings, the status, the output of 'tarn doctor', the newest events and \
      the log. Tarn takes out passwords, tokens, and what follows a ? in addresses. It leaves names of hosts, \
      folders and files in. It sends nothing anywhere: look through the archive, then attach it yourself.
      """)

  @Option(
    help: ArgumentHelp("The file to write. It must not exist yet.", valueName: "file"), completion: .file())
  var to: String?
  @Flag(help: "Ask no server.") var offline = false
  @OptionGroup var common: CommonOptions<NoneShown>

  func validate() throws {
    if to == "-" {
      throw ValidationError("--to: a file is expected; an archive is not written to standard output")
    }
  }

  func run() throws {
    let session = try Session(common)
    let stamp = String(session.now.rfc3339.prefix(19).filter { $0.isNumber || $0 == "T" })
    let name = "tarn-report-\(stamp)"
    let path = to ?? "\(name).tar.gz"
    // Created before the work is done.
    let descriptor = try begin(path)
    let parts = ReportBundle(session).parts(asksServers: !offline)
    do throws(PassFailure) {
      let archive = try ReportBundle.archive(parts, name: name)
      guard TextFile.writeAll(archive, to: descriptor), close(descriptor) == 0 else {
        throw Self.failure(path, errno)
      }
    } catch {
      unlink(path)
      throw error
    }
    if session.isJSON {
      session.console.data(
        JSONText.line(BundleReport(file: Printable.escape(path), parts: parts.map(\.name))))
    } else if !session.isQuiet {
      let word = ShellWord.quote(path)
      session.console.data("written: \(word)")
      session.console.data("look through it before you give it away: tar -xzf \(word)")
    }
  }

  private func begin(_ path: String) throws(PassFailure) -> Int32 {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.failure(path, errno) }
    return descriptor
  }

  private static func failure(_ path: String, _ number: Int32) -> PassFailure {
    PassFailure(
      number == EEXIST ? .usage : .inputOutput, code: "report-not-written",
      "cannot write \(Printable.escape(path)): \(errorText(number).lowercased())",
      hint: "give another file: --to FILE")
  }
}

/// The document of `report --json`.
private struct BundleReport: Encodable {
  var schema = "tarn-report/1"
  var file: String
  var parts: [String]
}
