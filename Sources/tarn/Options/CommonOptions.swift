import ArgumentParser

enum ColorChoice: String, CaseIterable, ExpressibleByArgument {
  case auto, always, never
}

/// The common options that have a meaning for a command. The others are accepted as well, so that scripts can
/// give them to every command; help lists only these.
protocol ShownOptions {
  /// What `--verbose` adds to the output; `nil` for nothing.
  static var verbose: String? { get }
  /// True when the command may ask a question that `--yes` answers.
  static var asks: Bool { get }
}

extension ShownOptions {
  static var verbose: String? { nil }
  static var asks: Bool { false }
}

/// The options of a command that has no more to say, and asks nothing.
enum NoneShown: ShownOptions {}

/// The given values of the common options.
protocol CommonValues {
  var json: Bool { get }
  var quiet: Bool { get }
  var verbose: Bool { get }
  var color: ColorChoice { get }
  var noInput: Bool { get }
  var yes: Bool { get }
  var config: String? { get }
  var socket: String? { get }
}

/// The options that every command takes.
struct CommonOptions<Shown: ShownOptions>: ParsableArguments, CommonValues {
  @Flag(help: "Print JSON, for programs.") var json = false
  @Flag(name: .shortAndLong, help: "Print nothing unless something is wrong.") var quiet = false
  @Flag(name: .shortAndLong, help: Self.help(Shown.verbose)) var verbose = false
  @Option(help: ArgumentHelp("When to use colour.", valueName: "when")) var color = ColorChoice.auto
  @Flag(help: "Never ask a question.") var noInput = false
  @Flag(name: .shortAndLong, help: Self.help(Shown.asks ? "Answer every question with yes." : nil)) var yes =
    false
  @Option(
    help: ArgumentHelp("Read this file of settings and no other.", valueName: "file"), completion: .file())
  var config: String?
  @Option(help: ArgumentHelp("The agent's control socket.", valueName: "path"), completion: .file())
  var socket: String?

  private static func help(_ text: String?) -> ArgumentHelp {
    text.map { ArgumentHelp(stringLiteral: $0) } ?? ArgumentHelp(visibility: .hidden)
  }

  func validate() throws {
    if config?.isEmpty == true { throw ValidationError("--config: a file is expected") }
    if socket?.isEmpty == true { throw ValidationError("--socket: a path is expected") }
    if quiet, verbose { throw ValidationError("--quiet and --verbose cannot be combined") }
  }
}

/// The directory of a mirror's record, for commands on an existing mirror.
struct StateOption: ParsableArguments {
  @Option(
    help: ArgumentHelp("The state directory of the mirror, if it is not in the folder.", valueName: "dir"),
    completion: .directory)
  var state: String?
}
