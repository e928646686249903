import ArgumentParser
import TarnAgent
import TarnCore
import TarnRuntime

/// `tarn trash restore`.
struct TrashRestoreCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Put a file of the trash back.",
    usage: "tarn trash restore [options] MIRROR NAME",
    discussion: """
      Examples:
        tarn trash restore /srv/iso 1a2b3c4d                  where it was
        tarn trash restore /srv/iso notes.txt --to mine.txt   under another name

      A file that stands there already is never replaced. Where the next pass would put the feed's version back, \
      nothing is restored: give --to, or sync with --local-changes keep before.
      """)

  @Option(help: ArgumentHelp("Where to, in the mirror.", valueName: "path")) var to: String?
  @OptionGroup var record: StateOption
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("A name or a folder.", valueName: "mirror"), completion: .directory)
  var mirror: String
  @Argument(
    help: ArgumentHelp("Its id or the front of it, from 'tarn trash list', or its path.", valueName: "name"))
  var name: String

  func run() throws {
    let session = try Session(common)
    let folder = try AgentLink(session.sources).folder(of: mirror, session)
    session.console.outliveReader()
    let row = try session.tarn.restoreTrash(
      folder: folder, state: record.state, name: name, to: to,
      configured: session.configured((mirror, session.tarn.place(of: folder)?.folder ?? folder, nil)))
    if session.isJSON {
      session.console.data(JSONText.document(TrashReport(files: [TrashReport.File(row, lifetime: nil)])))
    } else if !session.isQuiet {
      let place = to.map { " as \(Printable.escape($0))" } ?? ""
      session.console.data("restored \(row.path.printable)\(place), \(Units.show(row.size))")
    }
  }
}
