import Foundation
import Testing

/// A server, a directory and an agent in it, for suites to begin with.
class AgentHouse {
  let server: Nginx
  let place: TemporaryDirectory
  var agent: Program?
  var home: [String: String] {
    [
      "HOME": place.path + "/home", "STATE_DIRECTORY": place.path + "/state",
      "RUNTIME_DIRECTORY": place.path + "/run",
    ]
  }
  var config: [String] { ["--config", place.path + "/tarn.toml"] }

  /// - Parameters:
  ///   - locations: of the server.
  ///   - files: that it lists and serves, by name.
  ///   - keepsList: the list is one of the files of the mirror.
  ///   - options: more lines of the table of the mirror `files`.
  init(locations: String = "", files: [String: String], keepsList: Bool = false, options: String = "") throws
  {
    server = try Nginx(locations: locations)
    place = try TemporaryDirectory()
    try place.write("", to: "home/.keep")
    try Feeds.publish(files, in: server.files)
    try settings(
      """
      [mirror.files]
      feed = "\(server.url("SHA256SUMS"))"
      folder = "\(place.path)/files"
      keep-list = \(keepsList)\(options.isEmpty ? "" : "\n" + options)

      """)
  }

  deinit {
    agent?.signal(SIGKILL)
  }

  func settings(_ text: String) throws {
    try place.write(text, to: "tarn.toml")
  }

  /// A command with the settings and the home of the agent.
  func tarn(_ arguments: String...) throws -> Outcome {
    try Tarn.run(arguments + config, environment: home, in: place.url)
  }

  /// The same, not waited for.
  func begin(_ arguments: String...) throws -> Program {
    try Tarn.start(arguments + config, environment: home, in: place.url)
  }

  @discardableResult
  func start() throws -> Program {
    let program = try begin("agent")
    agent = program
    try waitUntil("it answers") { program.errorsSoFar.contains("answers at") }
    return program
  }
}
