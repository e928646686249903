import ArgumentParser

enum ColorChoice: String, CaseIterable, ExpressibleByArgument {
  case auto, always, never
}

/// The options that every command takes.
struct CommonOptions: ParsableArguments {
  @Flag(help: "Print JSON, for programs.") var json = false
  @Flag(name: .shortAndLong, help: "Print nothing unless something is wrong.") var quiet = false
  @Flag(name: .shortAndLong, help: "Say more: each file.") var verbose = false
  @Option(help: ArgumentHelp("Colour.", valueName: "when")) var color = ColorChoice.auto
  @Flag(help: "Never ask.") var noInput = false
  @Flag(name: .shortAndLong, help: "Answer every question with yes.") var yes = false
  @Option(
    help: ArgumentHelp("Read this file of settings and no other.", valueName: "file"), completion: .file())
  var config: String?
  @Option(help: ArgumentHelp("The agent's control socket.", valueName: "path"), completion: .file())
  var socket: String?

  func validate() throws {
    if config?.isEmpty == true { throw ValidationError("--config: a file is expected") }
    if socket?.isEmpty == true { throw ValidationError("--socket: a path is expected") }
    if quiet, verbose { throw ValidationError("--quiet and --verbose exclude each other") }
  }
}

/// Where a mirror's record is kept, for commands on an existing mirror.
struct StateOption: ParsableArguments {
  @Option(
    help: ArgumentHelp("Where the mirror's record is, if not in the folder.", valueName: "dir"),
    completion: .directory)
  var state: String?
}
