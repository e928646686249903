import TarnConfig
import TarnCore
import TarnEngine
import TarnFeeds

/// A FEED as users write it: it has a scheme, begins with `/`, `./` or `../`, or is `-`.
package enum FeedText {
  /// - Throws: `usage` with the accepted forms.
  static func parse(_ text: String, workingDirectory: String) throws(PassFailure) -> FeedLocation {
    if text == "-" { return .standardInput }
    if let scheme = scheme(of: text) { return try parse(text, scheme: scheme, workingDirectory) }
    guard isPath(text) else {
      throw PassFailure(
        .usage, code: "feed-not-understood", "'\(Printable.escape(Redaction.value(text)))' is no feed",
        hint: "a feed is a URL, a path that begins with / ./ or ../, or - for standard input")
    }
    return .local(path: absolute(Array(text.utf8), workingDirectory))
  }

  /// True for a path; a bare word is the name of a mirror.
  package static func isPath(_ text: String) -> Bool {
    text.hasPrefix("/") || text.hasPrefix("./") || text.hasPrefix("../")
  }

  private static func parse(
    _ text: String, scheme: String, _ workingDirectory: String
  ) throws(PassFailure) -> FeedLocation {
    guard let known = URLScheme(scheme) else {
      throw PassFailure(
        .usage, code: "scheme-not-supported", "Tarn does not read \(Printable.escape(scheme)): feeds",
        hint: "\(URLScheme.all) are supported")
    }
    guard known.isRemote else { return .local(path: absolute(try localPath(text), workingDirectory)) }
    guard !Redaction.carriesUser(text) else {
      throw PassFailure(
        .usage, code: "url-with-password", "the feed's URL contains a user name or a password",
        hint: "put them into a netrc file and give --netrc, or into a file for --header-file")
    }
    guard let first = text.utf8.dropFirst(scheme.utf8.count + 3).first, !"/?#".utf8.contains(first) else {
      throw PassFailure(
        .usage, code: "feed-not-understood", "'\(Printable.escape(Redaction.value(text)))' names no host")
    }
    return .remote(url: IDNA.ascii(url: text))
  }

  /// Returns the path of `file:///path` or `file://localhost/path`, percent-decoded.
  private static func localPath(_ text: String) throws(PassFailure) -> [UInt8] {
    var rest = text.dropFirst("file://".count)
    if rest.hasPrefix("localhost/") { rest = rest.dropFirst("localhost".count) }
    let path = Percent.decode(rest.utf8)
    let isWhole = Percent.completed(Array(rest.utf8)).elementsEqual(rest.utf8)
    guard rest.hasPrefix("/"), isWhole, !path.contains(0) else {
      throw PassFailure(
        .usage, code: "feed-not-understood",
        "'\(Printable.escape(Redaction.value(text)))' is not a local file",
        hint: "write file:///absolute/path, with %XX escapes that are complete")
    }
    return path
  }

  static func scheme(of text: String) -> String? {
    guard let mark = text.firstRange(of: "://") else { return nil }
    let scheme = text[..<mark.lowerBound]
    guard let first = scheme.first, first.isLetter,
      scheme.allSatisfy({ $0.isLetter || $0.isNumber || "+-.".contains($0) })
    else { return nil }
    return scheme.lowercased()
  }

  /// Normalizes a path, so that one file has one text: removes `.` and doubled slashes. A leading `..` is
  /// resolved against the working directory, which is a real path. After a name, which may be a link, it
  /// stays.
  static func absolute(_ path: [UInt8], _ workingDirectory: String) -> [UInt8] {
    let slash = UInt8(ascii: "/")
    var sure = path.first == slash ? [] : Array(workingDirectory.utf8).split(separator: slash)[...]
    var rest: [ArraySlice<UInt8>] = []
    for segment in path.split(separator: slash) where !segment.elementsEqual(".".utf8) {
      if rest.isEmpty, segment.elementsEqual("..".utf8) {
        _ = sure.popLast()
      } else {
        rest.append(segment)
      }
    }
    return (sure + rest).flatMap { [slash] + $0 }
  }
}
