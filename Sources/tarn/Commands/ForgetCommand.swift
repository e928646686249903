import ArgumentParser
import TarnAgent
import TarnCore

/// `tarn forget`.
struct ForgetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "forget",
    abstract: "Stop following a feed; the files stay.",
    usage: "tarn forget [options] MIRROR",
    discussion: """
      Examples:
        tarn forget /srv/iso
      """)

  @OptionGroup var record: StateOption
  @OptionGroup var common: CommonOptions
  @Argument(help: ArgumentHelp("A folder.", valueName: "mirror"), completion: .directory) var mirror: String

  func run() throws {
    let session = try Session(common)
    session.console.outliveReader()
    try session.tarn.forget(folder: mirror, state: record.state)
    if session.isJSON {
      session.console.data(JSONText.document(ForgetReport(folder: Printable.escape(mirror))))
    } else if !session.isQuiet {
      session.console.data("forgot \(ShellWord.quote(mirror)): it follows no feed any more; its files stay")
    }
  }
}
