import ArgumentParser
import TarnAgent
import TarnCore
import TarnEngine
import TarnRuntime

/// `tarn status`.
struct StatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show how mirrors are, also beside a running sync.",
    usage: "tarn status [options] [MIRROR...]",
    discussion: """
      Examples:
        tarn status                              the mirror you are in, or all
        tarn status --watch /srv/iso             live
        tarn status --check --max-age 26h        for monitoring: one line, 0 or 3
        tarn status --json | jq .mirrors[].state
      """)

  @Flag(help: "Print one line; end with 3 when a mirror's last success is too old.") var check = false
  @Option(help: ArgumentHelp("How old is too old for --check: 90m, 24h, 7d.", valueName: "duration"))
  var maxAge = "24h"
  @Flag(help: "Print again each second until Ctrl-C.") var watch = false
  @OptionGroup var record: StateOption
  @OptionGroup var common: CommonOptions
  @Argument(help: ArgumentHelp("Folders.", valueName: "mirror"), completion: .directory) var mirrors:
    [String] = []

  func validate() throws {
    if Units.duration(maxAge) == nil {
      throw ValidationError(
        "--max-age: '\(Printable.escape(maxAge))' is not a duration such as 90m, 24h or 7d")
    }
    if check, watch { throw ValidationError("--check and --watch exclude each other") }
  }

  func run() throws {
    let session = try Session(common)
    if check { return try self.check(session).end() }
    if watch { return try StatusWatch(session: session).run { read(session) }.end() }
    let reading = read(session)
    // A failure alone leaves standard output empty; some mirrors beside a failure are a document.
    if session.isJSON, !reading.documents.isEmpty || reading.failures.isEmpty {
      session.console.data(JSONText.document(StatusAnswer(mirrors: reading.documents)))
    } else if !session.isJSON {
      let shown = reading.documents.filter { !session.isQuiet || !StatusText.isCalm($0) }
      for line in Self.lines(shown, session) { session.console.data(line, now: false) }
    }
    session.console.flush()
    try ExitStatus.worst(reading.failures.map(session.tell)).end()
  }

  static func lines(_ documents: [StatusDocument], _ session: Session) -> [String] {
    let now = session.now
    if documents.count == 1 { return StatusText.card(documents[0], now: now, style: session.style) }
    return documents.isEmpty ? [] : StatusText.table(documents, now: now, style: session.style)
  }

  /// What could be read, and why the rest could not.
  struct Reading {
    var documents: [StatusDocument] = []
    var failures: [PassFailure] = []
  }

  private func read(_ session: Session) -> Reading {
    var reading = Reading()
    do throws(PassFailure) {
      for folder in try PassTargets(session: session).mirrors(mirrors) {
        do throws(PassFailure) {
          reading.documents.append(try document(folder, session))
        } catch {
          reading.failures.append(error)
        }
      }
    } catch {
      reading.failures.append(error)
    }
    return reading
  }

  private func document(_ folder: String, _ session: Session) throws(PassFailure) -> StatusDocument {
    let limit = session.isVerbose ? PassReport.mostProblems : 20
    return try session.tarn.status(folder: folder, state: record.state, problemLimit: limit)
  }

  private func check(_ session: Session) throws -> ExitStatus {
    var documents: [StatusDocument] = []
    let folders = try PassTargets(session: session).mirrors(mirrors)
    for folder in folders {
      do throws(PassFailure) {
        documents.append(try document(folder, session))
      } catch {
        guard error.kind != .usage else { throw error }
        session.console.data("late: \(ShellWord.quote(folder)): \(Message.safe(error.message))")
        return .partial
      }
    }
    let result = StatusText.check(documents, maxAge: Units.duration(maxAge) ?? 0, now: session.now)
    if session.isJSON {
      session.console.data(JSONText.document(StatusAnswer(mirrors: documents)))
    } else if !session.isQuiet || !result.isGood {
      session.console.data(result.line)
    }
    return result.isGood ? .inSync : .partial
  }
}
