import Foundation
import Testing

/// `tarn status --watch` on a terminal.
@Suite(.enabled(if: Tarn.obstacle == nil, "\(Tarn.obstacle ?? "")"))
final class WatchTests {
  private let place: TemporaryDirectory
  private let terminal: PseudoTerminal
  private var program: Program?
  private var environment: [String: String] {
    [
      "HOME": place.path + "/home", "TERM": "xterm", "STATE_DIRECTORY": place.path + "/state",
      "RUNTIME_DIRECTORY": place.path + "/run",
    ]
  }

  init() throws {
    place = try TemporaryDirectory()
    terminal = try PseudoTerminal()
    try place.write("", to: "home/.keep")
    try place.write(
      "[mirror.files]\nfeed = \"http://127.0.0.1:9/SHA256SUMS\"\nfolder = \"\(place.path)/files\"\n",
      to: "tarn.toml")
  }

  deinit {
    program?.signal(SIGKILL)
  }

  /// As where the terminal is gone, and nobody says so.
  @Test func whatCannotBeWrittenIsNotWatched() throws {
    let words = [Tarn.path, "status", "--watch", "--config", place.path + "/tarn.toml"]
    let program = try Program(
      "/bin/sh", ["-c", "exec \"$@\" > /dev/full", "sh"] + words,
      environment: Tarn.environment(environment), in: place.url)
    self.program = program
    let outcome = try program.wait()
    #expect(outcome.status == 74 && outcome.errors.contains("cannot write"), "\(outcome)")
  }

  enum Ending: CaseIterable {
    case q, interrupt, terminate

    var status: Int32 {
      switch self {
      case .q: 0
      case .interrupt: 130
      case .terminate: 143
      }
    }
  }

  /// Whatever ends it: the screen that was there, a cursor, and keys that are seen.
  @Test(arguments: Ending.allCases) func itLeavesTheTerminalAsItWas(ending: Ending) throws {
    let modes = terminal.modes
    let program = try Tarn.start(
      ["status", "--watch", "--config", place.path + "/tarn.toml"], environment: environment,
      in: place.url, terminal: terminal.path)
    self.program = program
    try waitUntil("it is on its own screen") {
      terminal.shown.contains("\u{1B}[?1049h\u{1B}[?25l") && terminal.shown.contains("never synced")
    }
    #expect(!terminal.isEchoing)
    // Neither other keys nor sequences that have a q in them.
    terminal.type("x")
    terminal.type("\u{1B}Oq")
    try waitUntil("it is drawn again") { terminal.shown.components(separatedBy: "never synced").count > 2 }
    #expect(program.isRunning)
    switch ending {
    // As by someone who types fast: what is read at once is more than one key.
    case .q: terminal.type("\u{1B}[Aq")
    case .interrupt: terminal.type("\u{03}")
    case .terminate: program.signal(SIGTERM)
    }
    try waitUntil("it is over") {
      _ = terminal.shown
      return !program.isRunning
    }
    #expect(try program.wait().status == ending.status)
    #expect(terminal.modes == modes)
    let shown = terminal.shown
    let (left, cursor) = (shown.range(of: "\u{1B}[?1049l"), shown.range(of: "\u{1B}[?25h"))
    #expect(left != nil && cursor != nil, "\(shown.suffix(200))")
    #expect(left.map { !shown[$0.upperBound...].contains("\u{1B}[?1049h") } == true)
  }
}
