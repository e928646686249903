import ArgumentParser
import Glibc
import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime
import TarnSchedule

/// The command `tarn feeds`.
struct FeedsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "feeds",
    abstract: "Print settings for the feeds of an OPML file.",
    usage: "tarn feeds [options] OPML",
    discussion: """
      Examples:
        tarn feeds --folder /srv/podcasts list.opml
        tarn feeds --folder /srv/podcasts list.opml >podcasts.toml
        tarn feeds --json https://example.org/list.opml | jq .feeds

      OPML is the format that podcast and news programs export. The output has one mirror for each feed, with a \
      folder of its own. Names are made from the titles. The command writes no file: read the settings through, \
      then put them where 'tarn config paths' says. Feeds that Tarn cannot follow are named on standard error, \
      and the command ends with 3.
      """)

  @Option(
    help: ArgumentHelp(
      "Put the mirrors' folders below this directory.", valueName: "dir"),
    completion: .directory) var folder = "."
  @Option(help: ArgumentHelp("How often the agent reads the feeds.", valueName: "span")) var every = "1h"
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(
    help: ArgumentHelp("A file, a URL, or - for standard input.", valueName: "opml"), completion: .file())
  var opml: String

  func validate() throws {
    if folder.isEmpty { throw ValidationError("--folder: a directory is expected") }
    guard let seconds = Units.duration(every), Cadence.bounds.contains(seconds) else {
      throw ValidationError("--every: '\(Printable.escape(every))' is not a span from 1min to 366d")
    }
  }

  func run() throws {
    let session = try Session(common)
    let place = try StandardInput.resolve(opml)
    try refuseMissing(place, session)
    let list = try session.tarn.subscriptions(place, observer: SilentObserver(), stop: StopFlag())
    let warning = session.messageStyle.paint("warning:", .warning)
    for refusal in list.refused {
      session.console.message(
        "\(warning) \(Printable.escape(refusal.name)): \(refusal.reason) [\(refusal.code)]")
    }
    if let fault = list.fault {
      session.console.message("\(warning) only part of the list could be read: \(fault)")
    }
    guard !list.feeds.isEmpty else {
      throw PassFailure(
        .feedMalformed, code: "opml-without-feeds",
        "\(Printable.escape(opml)) names no feed\(list.refused.isEmpty ? "" : " that Tarn can follow")",
        hint: "an OPML list names feeds by outlines with xmlUrl")
    }
    let mirrors = FeedMirror.all(list.feeds, below: session.tarn.absolute(folder), every: every)
    if session.isJSON {
      session.console.data(JSONText.document(FeedsDocument(feeds: mirrors)))
    } else {
      for line in mirrors.flatMap(\.lines).dropFirst() { session.console.data(line, now: false) }
      session.console.flush()
    }
    try (list.refused.isEmpty && list.fault == nil ? ExitStatus.inSync : .partial).end()
  }
}

extension FeedsCommand {
  /// - Throws: `feedUnreachable` for a file that cannot be read. It is a list, and no feed.
  private func refuseMissing(_ place: String, _ session: Session) throws(PassFailure) {
    guard place != "-", let path = session.tarn.localFeed(place.contains("/") ? place : "./\(place)"),
      access(path, R_OK) != 0
    else { return }
    let reason = errorText(errno)
    throw PassFailure(
      .feedUnreachable, code: "feed-not-there", "cannot read \(ShellWord.quote(opml)): \(reason)",
      hint: "check its path, and whether this user may read it")
  }
}

/// The document of `tarn feeds --json`.
struct FeedsDocument: Encodable {
  var schema = "tarn-feeds/1"
  var feeds: [FeedMirror]
}

/// The settings of a mirror for one feed of a list.
struct FeedMirror: Encodable, Equatable {
  var name: String
  var title: String
  var feed: String
  var folder: String
  var every: String

  static func all(_ feeds: [Subscription], below folder: String, every: String) -> [FeedMirror] {
    var taken: Set<String> = []
    let top = folder == "/" ? "" : folder
    return feeds.map { feed in
      let name = unused(word(of: feed), &taken)
      return FeedMirror(
        name: name, title: Printable.escape(feed.title), feed: feed.url, folder: "\(top)/\(name)",
        every: every)
    }
  }

  /// An empty line, then the mirror's settings.
  var lines: [String] {
    return [""] + (title.isEmpty ? [] : ["# \(title)"]) + [
      TOMLText.mirror(name), "feed = \(Self.quoted(feed))",
      "folder = \(Self.quoted(folder))", "every = \(Self.quoted(every))",
    ]
  }

  /// Makes a name of the feed's title, or else of its host: letters and digits in lower case, a hyphen for
  /// everything between them.
  private static func word(of feed: Subscription) -> String {
    let host = feed.url.split(separator: "/").dropFirst().first.map(String.init) ?? ""
    for text in [String(decoding: feed.title, as: UTF8.self), host] {
      var word = ""
      for character in text.lowercased() {
        guard word.utf8.count + character.utf8.count <= longest else { break }
        if character.isLetter || character.isNumber {
          word.append(character)
        } else if character != "'", character != "’", !word.isEmpty, word.last != "-" {
          word += "-"
        }
      }
      while word.last == "-" { word.removeLast() }
      if MirrorSettings.isName(word) { return word }
    }
    return "feed"
  }

  /// The bytes of a name, at most, so that a number still fits.
  private static let longest = 48

  private static func unused(_ word: String, _ taken: inout Set<String>) -> String {
    var (name, number) = (word, 1)
    while !taken.insert(name).inserted {
      number += 1
      name = "\(word)-\(number)"
    }
    return name
  }

  /// Returns a string of TOML.
  private static func quoted(_ text: String) -> String {
    var quoted = ""
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x22, 0x5C: quoted += "\\\(scalar)"
      case 0..<0x20, 0x7F:
        let digits = String(scalar.value, radix: 16, uppercase: true)
        quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return "\"\(quoted)\""
  }
}
