import ArgumentParser
import TarnAgent
import TarnCore
import TarnRuntime

/// The command `tarn trash list`.
struct TrashListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the files in the trash.",
    usage: "tarn trash list [options] MIRROR",
    discussion: """
      Examples:
        tarn trash list /srv/iso
        tarn trash list --json /srv/iso | jq -r '.files[].path'

      The first pass after the time under UNTIL removes a file that Tarn placed. That time is seven days away, \
      unless --keep-trash or the setting keep-trash says otherwise. A file that you wrote or edited stays until \
      'tarn trash empty'.
      """)

  @OptionGroup var record: StateOption
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("A name or a folder.", valueName: "mirror"), completion: .mirror)
  var mirror: String

  func run() throws {
    let session = try Session(common)
    let mirror = try AgentLink(session.sources).folder(of: mirror, session, acts: false)
    let rows = try session.tarn.trash(folder: mirror, state: record.state)
    let lifetime = try session.tarn.trashLifetime(folder: mirror, state: record.state)
    if session.isJSON {
      session.console.data(
        JSONText.document(TrashReport(files: rows.map { TrashReport.File($0, lifetime: lifetime) })))
      return
    }
    for line in TrashText.lines(
      rows, lifetime: lifetime, mirror: ShellWord.quote(mirror), now: session.now, style: session.style)
    {
      session.console.data(session.sources.paths.completing(line), now: false)
    }
  }
}
