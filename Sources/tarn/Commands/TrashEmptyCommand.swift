import ArgumentParser
import TarnAgent
import TarnCore
import TarnEngine
import TarnRuntime

/// The command `tarn trash empty`.
struct TrashEmptyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "empty",
    abstract: "Remove files from the trash for good.",
    usage: "tarn trash empty [options] MIRROR [NAME...]",
    discussion: """
      Examples:
        tarn trash empty /srv/iso             all files; asks first
        tarn trash empty -y /srv/iso          all files, without asking
        tarn trash empty /srv/iso 1a2b3c4d    one file

      A file that reaches the trash after the question stays there. A path means every file that had it.
      """)

  @OptionGroup var record: StateOption
  enum Shown: ShownOptions {
    static let asks = true
  }
  @OptionGroup var common: CommonOptions<Shown>
  @Argument(help: ArgumentHelp("A name or a folder.", valueName: "mirror"), completion: .mirror)
  var mirror: String
  @Argument(
    help: ArgumentHelp("Ids, beginnings of ids, or paths. Default: all files.", valueName: "name"),
    completion: .trashed)
  var names: [String] = []

  func run() throws {
    let session = try Session(common)
    let mirror = try AgentLink(session.sources).folder(of: mirror, session)
    session.console.outliveReader()
    let rows = try session.tarn.trash(folder: mirror, state: record.state, named: names)
    guard try isWanted(rows, session) else {
      session.console.message("nothing was removed")
      return try ExitStatus.partial.end()
    }
    // This covers only files that were shown in the question, whatever has come since.
    let asked = Set(rows.map(\.name))
    let report = try session.stoppable { stop throws(PassFailure) in
      try session.tarn.emptyTrash(folder: mirror, state: record.state, names: asked, stop: stop)
    }
    if session.isJSON {
      session.console.data(JSONText.document(EmptiedReport(report)))
    } else if !session.isQuiet || report.left > 0 {
      let left =
        report.left > 0
        ? "; stopped, and \(Numbers.count(report.left, "file")) \(report.left == 1 ? "stays" : "stay") in the trash"
        : ""
      session.console.data(
        "removed \(Numbers.count(report.files, "file")), \(Units.show(report.bytes))\(left)")
    }
    if report.left > 0 { try ExitStatus.stopped(by: Interruption.shared.received).end() }
  }

  private func isWanted(_ rows: [TrashRow], _ session: Session) throws(PassFailure) -> Bool {
    guard !session.saysYes, !rows.isEmpty else { return true }
    guard session.mayAsk else {
      throw PassFailure(
        .usage, code: "not-asked", "cannot ask whether to remove files for good",
        hint: "give --yes: tarn trash empty --yes \(ShellWord.quote(mirror))")
    }
    let bytes = rows.reduce(UInt64(0)) { $0.addingSaturated($1.size) }
    let files =
      (rows.count == 1 || !names.isEmpty ? "" : "all ") + Numbers.count(rows.count, "file")
    let named = names.isEmpty ? "" : " (\(names.map { Printable.escape($0) }.joined(separator: ", ")))"
    return session.confirm("Remove \(files)\(named), \(Units.show(bytes)), from the trash for good?")
  }
}
