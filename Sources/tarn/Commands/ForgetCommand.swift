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
  @Argument(help: ArgumentHelp("A name or a folder.", valueName: "mirror"), completion: .directory)
  var mirror: String

  func run() throws {
    let session = try Session(common)
    try session.refuseFaultySettings([mirror])
    session.console.outliveReader()
    let place = session.tarn.place(of: mirror)
    let forgotten = try session.tarn.forget(
      folder: place?.folder ?? mirror, state: record.state ?? place?.state)
    if session.isJSON {
      session.console.data(JSONText.document(ForgetReport(folder: Printable.escape(mirror))))
    } else if !session.isQuiet {
      session.console.data("forgot \(ShellWord.quote(mirror)): \(said(forgotten))")
    }
  }

  private func said(_ forgotten: Tarn.Forgotten) -> String {
    switch forgotten {
    case .mirror: "it follows no feed any more; its files stay"
    case .line:
      "it was a mirror no more; if it had its state elsewhere: tarn forget --state DIR \(ShellWord.quote(mirror))"
    }
  }
}
