import TarnCore
import TarnEngine

/// Reads the files that options point to into the network's settings.
enum Secrets {
  /// - Parameter notice: hears of files that others can read.
  static func settings(
    _ options: PassOptions, feed: FeedLocation, home: String?
  ) throws(PassFailure) -> NetworkSettings {
    var settings: NetworkSettings
    do {
      settings = try options.network()
    } catch {
      throw PassFailure(.usage, code: "option-value", error.message)
    }
    if let path = options.last(.headerFile) { settings.headers = try headers(path) }
    if let path = options.last(.netrcFile) {
      settings.netrcFile = path
    } else if options.isOn(.netrc) {
      guard let home else {
        throw PassFailure(
          .usage, code: "no-home", "--netrc: $HOME is not set, so there is no ~/.netrc",
          hint: "give the file with --netrc-file FILE")
      }
      settings.netrcFile = home + "/.netrc"
    }
    for path in [settings.netrcFile, settings.cookieFile, settings.caFile].compactMap({ $0 }) {
      guard TextFile.isReadable(path) else {
        throw PassFailure(
          .configuration, code: "file-not-readable", "'\(Printable.escape(path))' cannot be read",
          hint: "give a file that exists and that this user can read")
      }
    }
    if case .remote(let url) = feed { settings.credentialOrigin = url }
    return settings
  }

  /// `Name: value` lines; blank lines and `#` comments are left out.
  private static func headers(_ path: String) throws(PassFailure) -> [String] {
    guard let text = TextFile.read(path, limit: 1 << 20) else {
      throw PassFailure(
        .configuration, code: "file-not-readable",
        "the header file '\(Printable.escape(path))' cannot be read (at most 1 MiB)")
    }
    var headers: [String] = []
    for (index, raw) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated()
    {
      let line = raw.drop { $0 == " " }
      if line.isEmpty || line.hasPrefix("#") { continue }
      guard let colon = line.firstIndex(of: ":"), colon != line.startIndex,
        line[..<colon].utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
        line.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
      else {
        throw PassFailure(
          .configuration, code: "header-malformed",
          "\(Printable.escape(path)):\(index + 1): this line is no 'Name: value' header")
      }
      headers.append(String(line))
    }
    return headers
  }
}
