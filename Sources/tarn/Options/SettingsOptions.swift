import ArgumentParser

/// Which settings are read, for commands that read them.
struct SettingsOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Read this file of settings and no other.", valueName: "file"), completion: .file())
  var config: String?
  @Option(help: ArgumentHelp("The agent's control socket.", valueName: "path"), completion: .file())
  var socket: String?

  func validate() throws {
    if config?.isEmpty == true { throw ValidationError("--config: a file is expected") }
    if socket?.isEmpty == true { throw ValidationError("--socket: a path is expected") }
  }
}
