import Glibc
import TarnConfig
package import TarnCore
import TarnEngine
import TarnRuntime

extension Tarn {
  /// Returns the lines of a file for `--header-file`. The file holds secrets, and must be a regular one.
  ///
  /// - Throws: `usage` for a file of another kind; `configuration` when it cannot be read or has a malformed
  ///   line.
  package func headers(of path: String) throws(PassFailure) -> [String] {
    try Secrets.headers(absolute(path))
  }
}

/// Reads the files that options name into the network's settings.
enum Secrets {
  /// The bytes of a file that Tarn or libcurl holds in memory, at most. The certificates that Debian ships
  /// have 0.2 MiB.
  private static let limit = 16 << 20
  /// The bytes of a file that holds one URL, at most.
  private static let proxyLimit = 1 << 20
  private static let tokenLimit = 64 << 10

  /// - Throws: `usage` for an invalid value, or a file of another kind or of absurd size; `configuration` for
  ///   one that cannot be read.
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
    if let path = settings.cookieFile { try refuseOddCookies(path) }
    if case .remote(let url) = feed { settings.credentialOrigin = url }
    return settings
  }

  /// Returns the URL of a proxy, the first line of its file.
  static func proxy(_ path: String) throws(PassFailure) -> String {
    let text = try using(path, .proxy, limit: proxyLimit, TextFile.contents)
    let url = text.split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
    guard (try? PassOptions(values: [.proxy: [url]]).network())?.proxy != nil else {
      throw PassFailure(
        .configuration, code: "proxy-malformed",
        "\(Printable.escape(path)): its first line is not the URL of a proxy",
        hint: "write a URL such as http://user:password@host:port into it")
    }
    return url
  }

  /// Returns the token of the metrics, the first line of its file.
  ///
  /// - Throws: `configuration` for a file that cannot be read, or that others can read by now.
  static func token(_ place: SecretPlace, credentials: String?) throws(PassFailure) -> [UInt8] {
    guard let path = place.path(credentials: credentials) else { return [] }
    // systemd guards the files of the credentials directory.
    if case .file = place { try refuseExposed([path]) }
    guard let text = try? TextFile.contents(path, limit: tokenLimit) else {
      throw PassFailure(
        .configuration, code: "file-not-readable", "metrics-token: '\(Printable.escape(path))' cannot be read"
      )
    }
    guard let line = text.split(whereSeparator: \.isNewline).first else {
      throw PassFailure(
        .configuration, code: "token-empty", "metrics-token: '\(Printable.escape(path))' is empty",
        hint: "write a token into it, such as: openssl rand -hex 32")
    }
    return Array(line.utf8)
  }

  /// Checks the settings' files of secrets again when they are used.
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

  /// Returns warnings about the user's own files of secrets that others can read. An agent's settings refuse
  /// such a file; a command only warns.
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

  /// The option that names the netrc file.
  private static func netrc(_ options: PassOptions) -> PassOptions.Name {
    options.last(.netrcFile) == nil ? .netrc : .netrcFile
  }

  /// Applies the body to the file of an option. Errors name the option as users know it.
  private static func using<Result>(
    _ path: String, _ name: PassOptions.Name, limit: Int,
    _ body: (String, Int) throws(TextFile.Refusal) -> Result
  ) throws(PassFailure) -> Result {
    // The name is the same for the option and for the setting.
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
      return PassFailure(
        .configuration, code: "file-not-readable", "\(what) cannot be read: \(ErrorText.of(number))",
        hint: "give a file that exists and that this user can read")
    case .notRegular:
      return PassFailure(
        .usage, code: "file-not-regular", "\(what) is not a regular file",
        hint: "write its text into a file that only you can read (chmod 600), and give that")
    case .tooLarge:
      return PassFailure(
        .usage, code: "file-too-large", "\(what) is larger than \(limit >> 20) MiB",
        hint: "is it the right file? give the one that holds just what this option is for")
    }
  }

  /// Refuses a file without cookies that has lines: libcurl would leave them out without a word.
  private static func refuseOddCookies(_ path: String) throws(PassFailure) {
    let text = try using(path, .cookies, limit: limit, TextFile.contents)
    guard let line = firstOddLine(ofCookies: text) else { return }
    var failure = PassFailure(
      .configuration, code: "cookies-malformed",
      "\(Printable.escape(path)):\(line): this line is not one of a Netscape cookie file, and no other is: seven fields with tabs between them",
      hint: "export the cookies as cookies.txt; a line such as 'Cookie: name=value' is for --header-file")
    failure.option = .cookies
    throw failure
  }

  /// Returns the number of the first line, from 1, that is neither blank nor a comment, in a text without any cookie; otherwise
  /// `nil`, for libcurl leaves out an odd line beside cookies.
  static func firstOddLine(ofCookies text: String) -> Int? {
    var odd: Int?
    let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    for (index, raw) in lines.enumerated() {
      let mark = "#HttpOnly_"
      let line = raw.hasPrefix(mark) ? raw.dropFirst(mark.count) : raw
      if line.hasPrefix("#") || line.allSatisfy(\.isWhitespace) { continue }
      if isCookie(line) { return nil }
      odd = odd ?? index + 1
    }
    return odd
  }

  /// Like libcurl, takes six fields for a cookie without a value or a path, and lines of `Set-Cookie:` as well.
  private static func isCookie(_ line: Substring) -> Bool {
    if line.prefix(11).lowercased() == "set-cookie:" { return true }
    let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
    return fields.count >= 6 && ["TRUE", "FALSE"].contains(fields[1].uppercased())
  }

  /// Returns the `Name: value` lines of a file, without blank lines and `#` comments.
  static func headers(_ path: String) throws(PassFailure) -> [String] {
    let text = try using(path, .headerFile, limit: HeaderLines.limit, TextFile.contents)
    do throws(HeaderLines.Malformed) {
      return try HeaderLines(text).headers
    } catch {
      var failure = PassFailure(
        .configuration, code: "header-malformed",
        "\(Printable.escape(path)):\(error.line): this line is not a 'Name: value' header")
      failure.option = .headerFile
      throw failure
    }
  }
}
