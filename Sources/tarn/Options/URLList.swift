import TarnCore
import TarnEngine

/// The URLs of a list, one on each line, without blank lines and `#` comments.
struct URLList {
  let urls: [String]

  /// - Parameter name: the name of its file; `-` for standard input.
  /// - Throws: `configuration` for the first line that is no URL.
  init(_ text: String, name: String) throws(PassFailure) {
    var urls: [String] = []
    let place = name == "-" ? "standard input" : Printable.escape(name)
    // Some editors begin a file with a byte order mark, which is no part of a URL.
    let text = text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
    for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
      .enumerated()
    {
      let words = line.split { $0 == " " || $0 == "\t" }
      guard let first = words.first, !first.hasPrefix("#") else { continue }
      guard words.count == 1, !Self.isOption(line) else {
        throw PassFailure(
          .configuration, code: "list-malformed",
          "\(place):\(index + 1): this line is not one URL: \(Printable.escape(words.joined(separator: " ")))",
          hint: Self.isOption(line)
            ? "only URLs are taken, and no options as aria2 has them; --to and --name say where a file goes"
            : "write each URL on a line of its own; a blank in a URL is %20")
      }
      do throws(TaskRequest.Refusal) {
        try TaskRequest.validate(url: String(first))
      } catch {
        throw PassFailure(.configuration, code: error.code, "\(place):\(index + 1): \(error.message)")
      }
      urls.append(String(first))
    }
    self.urls = urls
  }

  /// True for a line of an aria2 input file that belongs to the URL above it.
  private static func isOption(_ line: Substring) -> Bool {
    guard let first = line.first, first == " " || first == "\t" else { return false }
    let word = line.drop { $0 == " " || $0 == "\t" }
    return word.contains("=") && !word.prefix { $0 != "=" }.contains(":")
  }
}
