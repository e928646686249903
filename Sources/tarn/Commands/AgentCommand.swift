import ArgumentParser
import Glibc
import Logging
import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine

/// The command `tarn agent`.
struct AgentCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "agent",
    abstract: "Run the agent, which keeps all mirrors of the settings on schedule.",
    usage: "tarn agent [options]",
    discussion: """
      Examples:
        tarn agent                             in the foreground, until Ctrl-C
        tarn agent --config ./tarn.toml        with these settings and no others

      To run it as a service: systemctl enable --now tarn. The agent reads its settings from /etc/tarn, or from \
      ~/.config/tarn for a user. 'tarn config paths' lists the files. SIGHUP and 'tarn reload' make it read them \
      again. 'tarn status' shows the state of its mirrors.
      """)

  enum Shown: ShownOptions {
    static let verbose: String? = "Log each file too."
  }
  @OptionGroup var common: CommonOptions<Shown>

  func run() throws {
    let session = try Session(common)
    let sources = session.sources
    var tarn = session.tarn
    let settings = sources.paths.place.map(tarn.absolute)
    tarn.settingsPlace = { settings }
    if sources.paths.instance == .system, geteuid() != 0 {
      tarn.serviceUser = getpwuid(geteuid()).map { String(cString: $0.pointee.pw_name) }
    }
    let form = common.json ? LogOutput.Form.json : LogOutput.form(environment: sources.variables)
    var parts = Agent.Parts(
      tarn: tarn, paths: sources.paths, load: { sources.load(.run) }, log: LogOutput(form),
      level: level, environment: sources.variables)
    parts.keepsLogForm = common.json
    let agent = try Agent(parts)
    Interruption.shared.attend(
      end: { agent.end() }, abandon: { agent.abandon() }, reload: { agent.askReload() })
    try agent.serveAndRun()
  }

  private var level: Logger.Level { common.verbose ? .debug : common.quiet ? .warning : .info }
}
