import ArgumentParser
import Glibc
import TarnAgent
import TarnConfig
import TarnCore
import TarnRuntime

/// The command `tarn init`.
struct InitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init",
    abstract: "Write a first file of settings, with a first mirror.",
    usage: "tarn init [options] [FEED FOLDER]",
    discussion: """
      Examples:
        tarn init
        tarn init https://example.org/iso/SHA256SUMS ~/iso
        tarn init --limit-rate 2MiB/s --no-input

      On a terminal the command asks for what you do not give; with --no-input it does not ask. It never \
      overwrites a file: 'tarn add' adds a mirror to existing settings. Root writes the settings of the system's \
      agent, other users write their own.
      """)

  @Option(
    help: ArgumentHelp("How often a pass of the mirror begins. Default: 1h.", valueName: "span"))
  var every: String?
  @Option(help: ArgumentHelp("The name of the mirror. Default: that of its folder.", valueName: "name"))
  var name: String?
  @Option(
    help: ArgumentHelp("Limit the rate of all mirrors together, such as 2MiB/s.", valueName: "rate"))
  var limitRate: String?
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("A URL or a file.", valueName: "feed"), completion: .file()) var feed: String?
  @Argument(help: ArgumentHelp("The directory to keep current.", valueName: "folder"), completion: .directory)
  var folder: String?

  func validate() throws {
    if feed != nil, folder == nil { throw ValidationError("the folder after the feed is missing") }
    if feed == nil, every != nil || name != nil {
      throw ValidationError("--every and --name go with a feed and a folder")
    }
    try AddCommand.checkEvery(every)
    if let limitRate, Units.rate(limitRate) == nil {
      throw ValidationError("'\(Printable.escape(limitRate))' is not a rate such as 2MiB/s or off")
    }
    try PassFlags.refuseDoubt(ofRate: limitRate)
  }

  func run() throws {
    let session = try Session(common)
    let path = try path(session)
    try refuseExisting(path)
    let answers = try answers(session)
    try write(path, FirstSettings.text(limitRate: answers.limitRate), session)
    var report = InitReport(file: Printable.escape(path))
    if let wish = answers.wish {
      do throws(PassFailure) {
        report.mirror = try MirrorAdding(session).run(wish)
      } catch {
        // The file is removed, so that the same command can be given again.
        unlink(path)
        throw error
      }
    }
    report.next = report.mirror.map { $0.next ?? "tarn status" } ?? next(session)
    show(report, session)
  }

  /// Returns the next command without a mirror. `tarn add` does not write into a file of `--config`.
  private func next(_ session: Session) -> String {
    let paths = session.sources.paths
    return paths.file == nil ? "tarn add FEED FOLDER" : paths.command("config check")
  }

  private func path(_ session: Session) throws(PassFailure) -> String {
    guard let file = session.sources.paths.file else {
      return try SettingsChange(session: session).directory() + "/tarn.toml"
    }
    guard feed == nil else { throw Self.oneFile(file) }
    return file
  }

  private static func oneFile(_ file: String) -> PassFailure {
    PassFailure(
      .usage, code: "one-file", "with --config no conf.d is read, where a mirror would be written",
      hint: "tarn init --config \(ShellWord.quote(file)), and write the mirror into it")
  }

  private func refuseExisting(_ path: String) throws(PassFailure) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return }
    throw PassFailure(
      .usage, code: "settings-exist", "\(Printable.escape(path)) is there already, and stays as it is",
      hint: "'tarn add FEED FOLDER' adds a mirror; 'tarn config show' shows what holds")
  }

  private func write(_ path: String, _ text: String, _ session: Session) throws(PassFailure) {
    let change = SettingsChange(session: session)
    do throws(SettingsFile.Failure) {
      try SettingsFile.create(path, text, isPublic: change.isSystem)
    } catch {
      if error.exists { try refuseExisting(path) }
      throw change.failure(error, "write")
    }
  }

  // MARK: Questions

  private func answers(
    _ session: Session
  ) throws(PassFailure) -> (wish: MirrorAdding.Wish?, limitRate: String?) {
    var (feed, folder, every, rate) = (feed, folder, every, limitRate)
    let isAsked = session.mayAsk && session.sources.paths.file == nil
    if isAsked, feed == nil {
      feed = ask("Feed to follow, a URL or a file (Enter for none yet): ", session)
      if feed != nil {
        folder = ask("Folder to keep current: ", session)
        guard folder != nil else {
          throw PassFailure(.usage, code: "usage", "no folder was given", hint: "nothing was written")
        }
      }
    }
    if isAsked, feed != nil, every == nil {
      every = ask("How often (Enter for 1h): ", session) { text in
        (try? AddCommand.checkEvery(text)) == nil ? "that is not a span such as 6h or 1d" : nil
      }
    }
    if isAsked, rate == nil {
      rate = ask("Most bytes per second, such as 2MiB/s (Enter for no limit): ", session) { text in
        Units.rate(text) == nil ? "that is not a rate such as 2MiB/s" : nil
      }
    }
    guard let feed, let folder else { return (nil, rate) }
    var wish = MirrorAdding.Wish(feed: feed, folder: home(folder, session))
    wish.name = name
    wish.rhythm = (name: "every", text: every ?? "1h")
    return (wish, rate)
  }

  /// Expands `~/`, for no shell reads an answer.
  private func home(_ folder: String, _ session: Session) -> String {
    guard folder.hasPrefix("~/"), let home = session.tarn.homeDirectory else { return folder }
    return home + folder.dropFirst()
  }

  /// - Parameter fault: returns what is wrong with an answer; then the question is repeated.
  /// - Returns: `nil` for an empty answer.
  private func ask(_ question: String, _ session: Session, fault: (String) -> String? = { _ in nil })
    -> String?
  {
    while true {
      session.console.prompt(question)
      let answer = readLine().map { $0.drop { $0 == " " } }.map(String.init) ?? ""
      guard !answer.isEmpty else { return nil }
      guard let wrong = fault(answer) else { return answer }
      session.console.message(wrong)
    }
  }

  private func show(_ report: InitReport, _ session: Session) {
    if session.isJSON { return session.console.data(JSONText.line(report)) }
    guard !session.isQuiet else { return }
    session.console.data("written: \(report.file)")
    guard let mirror = report.mirror else {
      let first = session.sources.paths.file == nil ? "" : "write a mirror into it, then: "
      return session.console.data("next: \(first)\(next(session))")
    }
    for line in mirror.lines { session.console.data(line) }
  }
}

/// The document of `init --json`.
private struct InitReport: Encodable {
  var schema = "tarn-init/1"
  var file: String
  var mirror: AddReport?
  /// The next command.
  var next: String?

  init(file: String) { self.file = file }
}

/// The file that `tarn init` writes.
enum FirstSettings {
  static func text(limitRate: String?) -> String {
    let rate = limitRate.flatMap { Units.rate($0) == .some(nil) ? nil : $0 }
    return """
      # Settings of 'tarn agent'. A line that begins with # is a comment.
      # 'man tarn.toml' describes every setting. 'tarn config check' reports errors, 'tarn config show' prints what
      # holds. After a change, run 'tarn reload'.

      # A mirror has a feed, a folder, and a time. 'tarn add FEED FOLDER' adds one in conf.d, beside this file.
      # Written by hand, a mirror looks like this:
      #[mirror.iso]
      #feed = "https://example.org/iso/SHA256SUMS"
      #folder = "/srv/mirrors/iso"
      #every = "6h"
      # Files that the feed no longer names go to the trash.
      #delete = true
      # Never write a password here. Name the file that holds it (chmod 600).
      #netrc-file = "/path/to/netrc"

      [limits]
      # The rate of all mirrors together, in bytes per second.
      \(rate.map { "limit-rate = \"\($0)\"" } ?? "#limit-rate = \"2MiB/s\"")

      """
  }
}
