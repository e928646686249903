import ArgumentParser
import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// The command `tarn explain`.
struct ExplainCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain",
    abstract: "Say why a file is here, missing, held, refused or gone.",
    usage: """
      tarn explain [options] MIRROR PATH
      tarn explain [options] PATH
      """,
    discussion: """
      Examples:
        tarn explain /srv/iso debian.iso
        tarn explain /srv/iso/debian.iso   the path alone is enough
        tarn explain debian.iso            inside the folder of a mirror
      """)

  @OptionGroup var record: StateOption
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(
    help: ArgumentHelp(
      "A name or a folder, then a path in the mirror. Or the path alone.", valueName: "path"),
    completion: .mirrorThenPath)
  var words: [String]

  func validate() throws {
    if words.count > 2 {
      throw ValidationError("a mirror and one path of it are expected, or the path alone")
    }
  }

  func run() throws {
    let session = try Session(common)
    let meant = try MirrorPath(words, session)
    let (word, link) = (meant.mirror, AgentLink(session.sources))
    let mirror = try link.folder(of: word, session, acts: false)
    let configured = session.configuredName(of: word, in: mirror)
    func explain(_ path: [UInt8]) throws(PassFailure) -> Explanation {
      try session.tarn.explain(
        folder: mirror, state: record.state, path: path, name: meant.given, configured: configured
      ) { link.name(of: word, session) }
    }
    var (path, answer) = (meant.path, try explain(meant.path))
    if answer.state == "unknown", let other = meant.throughFolder, let found = try? explain(other),
      found.state != "unknown"
    {
      (path, answer) = (other, found)
    }
    if session.isJSON {
      let bytes = NameDocument(path).pathBytes
      session.console.data(JSONText.document(ExplainReport(answer: answer, pathBytes: bytes)))
      return
    }
    let lines = ExplainText.lines(answer, now: session.now, style: session.style)
    for line in session.sources.paths.completing(lines) {
      session.console.data(line)
    }
  }
}
