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
        tarn explain . /srv/iso/amd64/debian.iso
      """)

  @OptionGroup var record: StateOption
  @OptionGroup var common: CommonOptions
  @Argument(help: ArgumentHelp("A folder.", valueName: "mirror"), completion: .directory) var mirror: String
  @Argument(help: ArgumentHelp("A path of the mirror.", valueName: "path")) var path: String

  func run() throws {
    let session = try Session(common)
    let path = Self.relative(path, mirror: mirror, workingDirectory: session.tarn.workingDirectory)
    let answer = try session.tarn.explain(folder: mirror, state: record.state, path: path)
    if session.isJSON {
      let bytes = NameDocument(Array(path.utf8)).pathBytes
      session.console.data(JSONText.document(ExplainReport(answer: answer, pathBytes: bytes)))
      return
    }
    for line in ExplainText.lines(answer, now: session.now, style: session.style) {
      session.console.data(line)
    }
  }

  /// A path as the shell completes it, `./a`, `a/` or an absolute one below the mirror, as the mirror names
  /// it.
  static func relative(_ path: String, mirror: String, workingDirectory: String) -> String {
    var path = path[...]
    if path.hasPrefix("/") {
      let folder = absolute(mirror, workingDirectory)
      guard path.hasPrefix(folder + "/") else { return String(path) }
      path = path.dropFirst(folder.count + 1)
    }
    while path.hasPrefix("./") { path = path.dropFirst(2) }
    while path.count > 1, path.hasSuffix("/") { path = path.dropLast() }
    return String(path)
  }

  private static func absolute(_ mirror: String, _ workingDirectory: String) -> String {
    var segments: [Substring] = []
    for segment in (mirror.hasPrefix("/") ? mirror : "\(workingDirectory)/\(mirror)").split(separator: "/") {
      switch segment {
      case ".": continue
      case "..": _ = segments.popLast()
      default: segments.append(segment)
      }
    }
    return segments.map { "/\($0)" }.joined()
  }
}
