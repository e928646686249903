import TarnCore
import TarnEngine

/// The URLs of a list, one a line; blank lines and `#` comments are left out.
struct URLList {
  let urls: [String]

  /// - Parameter name: of its file; `-` for standard input.
  /// - Throws: `configuration` for the first line that is no URL.
  init(_ text: String, name: String) throws(PassFailure) {
    var urls: [String] = []
    let place = name == "-" ? "standard input" : Printable.escape(name)
    // The mark that some editors put in front is none of a URL's.
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

  /// A line of an input file of aria2 that belongs to the URL above it.
  private static func isOption(_ line: Substring) -> Bool {
    guard let first = line.first, first == " " || first == "\t" else { return false }
    let word = line.drop { $0 == " " || $0 == "\t" }
    return word.contains("=") && !word.prefix { $0 != "=" }.contains(":")
  }
}
