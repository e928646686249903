import ArgumentParser
import TarnCore
import TarnRuntime

/// The command `tarn doctor`.
struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Check this machine, the settings and every mirror for problems.",
    usage: "tarn doctor [options]",
    discussion: """
      Examples:
        tarn doctor
        tarn doctor --offline
        tarn doctor --json | jq -r '.findings[] | select(.mend) | .mend'

      The command checks the settings, the agent and its unit, the clock, the proxy and the limit of watches. Of \
      each mirror it checks the folder, the free space, the ledger and the server. It changes nothing. Below each \
      warning or problem it says what mends it, usually a command. It ends with 3 if there is a problem, \
      otherwise with 0.
      """)

  @Flag(help: "Ask no server.") var offline = false
  @OptionGroup var common: CommonOptions<NoneShown>

  func run() throws {
    let session = try Session(common)
    var doctor = Doctor(session: session)
    doctor.asksServers = !offline
    let report = DoctorReport(doctor.findings())
    if session.isJSON {
      session.console.data(JSONText.document(report))
    } else {
      for finding in report.findings where !session.isQuiet || finding.level == .problem {
        for line in finding.lines(session.style, width: Terminal.output.width) { session.console.data(line) }
      }
      if !session.isQuiet { session.console.data(report.summary) }
    }
    try (report.problems == 0 ? ExitStatus.inSync : .partial).end()
  }
}
