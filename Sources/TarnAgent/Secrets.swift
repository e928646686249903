import Glibc
import TarnConfig
package import TarnCore
import TarnEngine
import TarnRuntime

extension Tarn {
  /// The lines of a file for `--header-file`. It holds secrets, and is a regular file.
  ///
  /// - Throws: `usage` for a file of another kind; `configuration` for one that cannot be read, or has another line.
  package func headers(of path: String) throws(PassFailure) -> [String] {
    try Secrets.headers(absolute(path))
  }
}

/// Reads the files that options point to into the network's settings.
enum Secrets {
  /// Of a file that Tarn or libcurl holds in memory. The authorities that Debian ships are 0.2 MiB.
  private static let limit = 16 << 20
  /// Of a file that holds one URL.
  private static let proxyLimit = 1 << 20
  private static let tokenLimit = 64 << 10

  /// - Throws: `usage` for a value that is none, and for a file of another kind or of absurd size; `configuration`
  ///   for one that cannot be read.
  static func settings(
    _ options: PassOptions, feed: FeedLocation, home: String?
  ) throws(PassFailure) -> NetworkSettings {
    var settings: NetworkSettings
    do {
      settings = try options.network()
    } catch {
      throw PassFailure(error)
    }
    if let path = options.last(.headerFile) { settings.headers = try headers(path) }
    if let path = options.last(.netrcFile) {
      settings.netrcFile = path
    } else if options.isOn(.netrc) {
      guard let home else {
        var failure = PassFailure(
          .usage, code: "no-home", "--netrc: $HOME is not set, so there is no ~/.netrc",
          hint: "give the file with --netrc-file FILE")
        failure.option = .netrc
        throw failure
      }
      settings.netrcFile = home + "/.netrc"
    }
    let opened = [
      (netrc(options), settings.netrcFile), (.cookies, settings.cookieFile), (.cacert, settings.caFile),
    ]
    for (name, path) in opened {
      // libcurl opens these by their paths, and would wait for a writer of a FIFO.
      if let path { try using(path, name, limit: limit, TextFile.check) }
    }
    if case .remote(let url) = feed { settings.credentialOrigin = url }
    return settings
  }

  /// The URL of a proxy from a file of its own: the first line.
  static func proxy(_ path: String) throws(PassFailure) -> String {
    let text = try using(path, .proxy, limit: proxyLimit, TextFile.contents)
    let url = text.split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
    guard (try? PassOptions(values: [.proxy: [url]]).network())?.proxy != nil else {
      throw PassFailure(
        .configuration, code: "proxy-malformed",
        "\(Printable.escape(path)): its first line is no proxy's URL",
        hint: "write a URL such as http://user:password@host:port into it")
    }
    return url
  }

  /// The token of the metrics: the first line of its file.
  ///
  /// - Throws: `configuration` for a file that cannot be read, or that others can read by now.
  static func token(_ place: SecretPlace, credentials: String?) throws(PassFailure) -> [UInt8] {
    guard let path = place.path(credentials: credentials) else { return [] }
    // Those of the credentials directory are systemd's to guard.
    if case .file = place { try refuseExposed([path]) }
    guard let text = try? TextFile.contents(path, limit: tokenLimit) else {
      throw PassFailure(
        .configuration, code: "file-not-readable", "metrics-token: '\(Printable.escape(path))' cannot be read"
      )
    }
    return Array((text.split(whereSeparator: \.isNewline).first ?? "").utf8)
  }

  /// The files that hold secrets of the settings, looked at again when they are used.
  ///
  /// - Throws: `configuration` for a file that others can read by now.
  static func refuseExposed(_ paths: [String]) throws(PassFailure) {
    for path in paths {
      guard let status = TextFile.status(path), SecretPlace.isExposed(mode: status.st_mode) else { continue }
      throw PassFailure(
        .configuration, code: "secret-exposed",
        "\(Printable.escape(path)) holds a secret, and others can read it",
        hint: "chmod 600 \(ShellWord.quote(path))")
    }
  }

  /// What to say of files that hold secrets and that others can read: the user's own are theirs to close. The
  /// settings of an agent refuse such a file; who types a command is told only.
  static func warnings(_ options: PassOptions, _ settings: NetworkSettings) -> [String] {
    let files = [
      (.headerFile, options.last(.headerFile)), (netrc(options), settings.netrcFile),
      (.cookies, settings.cookieFile),
    ]
    return files.compactMap { name, path in
      guard let path, let status = TextFile.status(path), status.st_uid == geteuid(),
        status.st_mode & 0o077 != 0
      else { return nil }
      return "the file of --\(name.rawValue) is open to other users, and may hold secrets: "
        + "chmod 600 \(ShellWord.quote(path))"
    }
  }

  /// The option that says where the netrc file is.
  private static func netrc(_ options: PassOptions) -> PassOptions.Name {
    options.last(.netrcFile) == nil ? .netrc : .netrcFile
  }

  /// Does something with the file of an option; what is wrong with it is told as users know that option.
  private static func using<Result>(
    _ path: String, _ name: PassOptions.Name, limit: Int,
    _ body: (String, Int) throws(TextFile.Refusal) -> Result
  ) throws(PassFailure) -> Result {
    // An option of the command line or a setting: both have this name.
    let what = "\(name.rawValue): '\(Printable.escape(path))'"
    do throws(TextFile.Refusal) {
      return try body(path, limit)
    } catch {
      var failure = refused(error, what, limit: limit)
      failure.option = name
      throw failure
    }
  }

  private static func refused(_ refusal: TextFile.Refusal, _ what: String, limit: Int) -> PassFailure {
    switch refusal {
    case .cannotRead(let number):
      let words = strerror(number).map { String(cString: $0).lowercased() } ?? "error \(number)"
      return PassFailure(
        .configuration, code: "file-not-readable", "\(what) cannot be read: \(words)",
        hint: "give a file that exists and that this user can read")
    case .notRegular:
      return PassFailure(
        .usage, code: "file-not-regular", "\(what) is no regular file",
        hint: "write its text into a file that only you can read (chmod 600), and give that")
    case .tooLarge:
      return PassFailure(
        .usage, code: "file-too-large", "\(what) is larger than \(limit >> 20) MiB",
        hint: "is it the right file? give the one that holds just what this option is for")
    }
  }

  /// `Name: value` lines; blank lines and `#` comments are left out.
  static func headers(_ path: String) throws(PassFailure) -> [String] {
    let text = try using(path, .headerFile, limit: HeaderLines.limit, TextFile.contents)
    do throws(HeaderLines.Malformed) {
      return try HeaderLines(text).headers
    } catch {
      var failure = PassFailure(
        .configuration, code: "header-malformed",
        "\(Printable.escape(path)):\(error.line): this line is no 'Name: value' header")
      failure.option = .headerFile
      throw failure
    }
  }
}
