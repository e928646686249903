import ArgumentParser
import TarnAgent
import TarnCore
import TarnRuntime

/// The command `tarn trash restore`.
struct TrashRestoreCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Put files back from the trash.",
    usage: "tarn trash restore [options] MIRROR NAME...",
    discussion: """
      Examples:
        tarn trash restore /srv/iso 1a2b3c4d                  at its old place
        tarn trash restore /srv/iso a.iso b.iso               several, in this order
        tarn trash restore /srv/iso notes.txt --to mine.txt   under another name

      The command never replaces a file. It refuses if the next pass would put the feed's version back. Give --to \
      then, or sync with '--local-changes keep' first. The command stops at the first file that it cannot restore.
      """)

  @Option(
    help: ArgumentHelp("For a single file: where to put it, as a path in the mirror.", valueName: "path"))
  var to: String?
  @OptionGroup var record: StateOption
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("A name or a folder.", valueName: "mirror"), completion: .mirror)
  var mirror: String
  @Argument(
    help: ArgumentHelp("An id from 'tarn trash list', the beginning of one, or a path.", valueName: "name"),
    completion: .trashed)
  var names: [String]

  func validate() throws {
    if to != nil, names.count > 1 {
      throw ValidationError("--to is for one file, and \(names.count) are given")
    }
  }

  func run() throws {
    let session = try Session(common)
    let folder = try AgentLink(session.sources).folder(of: mirror, session)
    session.console.outliveReader()
    let configured = session.configured((mirror, session.tarn.place(of: folder)?.folder ?? folder, nil))
    var restored: [TrashReport.File] = []
    // Files restored before a failure are shown as well.
    defer {
      if session.isJSON, !restored.isEmpty {
        session.console.data(JSONText.document(TrashReport(files: restored)))
      }
    }
    for name in names {
      let row = try session.tarn.restoreTrash(
        folder: folder, state: record.state, name: name, to: to, configured: configured)
      restored.append(TrashReport.File(row, lifetime: nil))
      guard !session.isJSON, !session.isQuiet else { continue }
      let place = to.map { " as \(Printable.escape($0))" } ?? ""
      session.console.data("restored \(row.path.printable)\(place), \(Units.show(row.size))")
    }
  }
}
