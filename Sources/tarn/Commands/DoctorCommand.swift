import ArgumentParser
import TarnCore
import TarnRuntime

/// The command `tarn doctor`.
struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Look for what is wrong with this machine and the mirrors on it.",
    usage: "tarn doctor [options]",
    discussion: """
      Examples:
        tarn doctor
        tarn doctor --offline
        tarn doctor --json | jq -r '.findings[] | select(.mend) | .mend'

      It looks at the settings, the agent and its unit, the clock, the proxy, the limits of watches, and at each \
      mirror's folder, free space, record and server. Nothing is changed. Below each warning and each problem stands the \
      command that mends it. It ends with 3 when there is a problem, and with 0 else.
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
        for line in finding.lines(session.style) { session.console.data(line) }
      }
      if !session.isQuiet { session.console.data(report.summary) }
    }
    try (report.problems == 0 ? ExitStatus.inSync : .partial).end()
  }
}
