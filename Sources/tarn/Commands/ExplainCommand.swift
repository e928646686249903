import ArgumentParser
import TarnAgent
import TarnCore
import TarnEngine

/// `tarn explain`.
struct ExplainCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain",
    abstract: "Say why a path is here, missing, held, refused or gone.",
    usage: "tarn explain [options] MIRROR PATH",
    discussion: """
      Examples:
        tarn explain /srv/iso debian.iso
        tarn explain . ./debian.iso      as seen from this directory
      """)

  @OptionGroup var record: StateOption
  @OptionGroup var common: CommonOptions
  @Argument(help: ArgumentHelp("A name or a folder.", valueName: "mirror"), completion: .directory)
  var mirror: String
  @Argument(help: ArgumentHelp("A path of the mirror.", valueName: "path")) var path: String

  func run() throws {
    let session = try Session(common)
    try RawArguments.refuseOtherBytes("the mirror", RawArguments.bytes(of: mirror))
    let (word, link) = (mirror, AgentLink(session.sources))
    let mirror = try link.folder(of: word, session)
    let configured = session.configuredName(of: word, in: mirror)
    let name = RawArguments.bytes(of: path)
    let path = Self.relative(path, mirror: mirror, workingDirectory: session.tarn.workingDirectory)
    let answer = try session.tarn.explain(
      folder: mirror, state: record.state, path: path, name: name, configured: configured
    ) { link.name(of: word, session) }
    if session.isJSON {
      let bytes = NameDocument(String(validating: name, as: UTF8.self) == nil ? name : Array(path.utf8))
        .pathBytes
      session.console.data(JSONText.document(ExplainReport(answer: answer, pathBytes: bytes)))
      return
    }
    for line in ExplainText.lines(answer, now: session.now, style: session.style) {
      session.console.data(line)
    }
  }

  /// A path as the mirror names it: an absolute one and one that begins with `./` or `../` are those of the
  /// file system, all others are the mirror's own.
  static func relative(_ path: String, mirror: String, workingDirectory: String) -> String {
    let isOnDisk = path.hasPrefix("/") || path.hasPrefix("./") || path.hasPrefix("../")
    let folder = absolute(mirror, workingDirectory) + "/"
    let full = absolute(path, workingDirectory)
    guard isOnDisk, full.hasPrefix(folder) else {
      return path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    }
    return String(full.dropFirst(folder.count))
  }

  private static func absolute(_ path: String, _ workingDirectory: String) -> String {
    var segments: [Substring] = []
    for segment in (path.hasPrefix("/") ? path : "\(workingDirectory)/\(path)").split(separator: "/") {
      switch segment {
      case ".": continue
      case "..": _ = segments.popLast()
      default: segments.append(segment)
      }
    }
    return segments.map { "/\($0)" }.joined()
  }
}
