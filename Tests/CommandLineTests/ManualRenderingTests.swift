import Foundation
import Testing

/// The pages of packaging/man: `man` and `mandoc` have nothing to say of them, and their sentences are short.
@Suite struct ManualRenderingTests {
  private static let files = ManualPage.all.map(\.file)

  @Test(.enabled(if: Documents.has("man"), "man is not installed"), arguments: ManualPage.files, [60, 80])
  func manHasNoWarning(file: String, width: Int) throws {
    let path = ManualPage.directory.appendingPathComponent(file).path
    let result = try Documents.run(
      "sh", ["-c", "MANWIDTH=$1 LC_ALL=C.UTF-8 man --warnings -l \"$0\" 2>&1 >/dev/null", path, "\(width)"])
    #expect(result.status == 0 && result.output == "", "\(result.output.prefix(500))")
  }

  @Test(.enabled(if: Documents.has("mandoc"), "mandoc is not installed"), arguments: ManualPage.files)
  func mandocHasNoWarning(file: String) throws {
    let path = ManualPage.directory.appendingPathComponent(file).path
    let result = try Documents.run("mandoc", ["-T", "lint", "-W", "warning", path])
    #expect(result.status == 0 && result.output == "", "\(result.output.prefix(500))")
  }

  /// `man tarn-plan` finds the page that has it.
  @Test(.enabled(if: Documents.has("man"), "man is not installed")) func everyNameLeadsToItsPage() throws {
    let place = FileManager.default.temporaryDirectory.appendingPathComponent("tarn-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: place) }
    for file in ManualPage.files {
      let section = place.appendingPathComponent("man\(file.suffix(1))")
      try FileManager.default.createDirectory(at: section, withIntermediateDirectories: true)
      try FileManager.default.copyItem(
        at: ManualPage.directory.appendingPathComponent(file), to: section.appendingPathComponent(file))
    }
    #expect(ManualPage.files.count > 25)
    for file in ManualPage.files {
      let result = try Documents.run(
        "sh",
        [
          "-c", "MANWIDTH=80 LC_ALL=C.UTF-8 man -M \"$0\" \"$1\" \"$2\"", place.path, String(file.suffix(1)),
          String(file.dropLast(2)),
        ])
      let head = result.output.split(separator: "\n").first { $0.contains(" — ") } ?? ""
      #expect(result.status == 0 && result.output.contains(String(file.dropLast(2))), "\(file): \(head)")
    }
  }

  /// What a page refers to is one of these pages, or of another program.
  @Test func everyReferenceOfTarnIsAPage() throws {
    var count = 0
    for file in Self.files {
      for line in try ManualPage.text(file).split(separator: "\n") where line.hasPrefix(".Xr tarn") {
        let words = line.split(separator: " ")
        count += 1
        #expect(
          ManualPage.files.contains("\(words[1]).\(words[2])".replacingOccurrences(of: "\\", with: "")),
          "\(file): \(line)")
      }
    }
    #expect(count > 80)
  }

  @Test(arguments: files) func everyPageHasItsSections(file: String) throws {
    let text = try ManualPage.text(file)
    var wanted = ["NAME", "DESCRIPTION", "EXAMPLES", "SEE ALSO"]
    if ["1", "8"].contains(file.suffix(1)) {
      wanted += ["SYNOPSIS", "OPTIONS", "ENVIRONMENT", "FILES", "EXIT STATUS"]
    }
    for section in wanted { #expect(text.contains("\n.Sh \(section)\n"), "\(section)") }
  }

  // MARK: - Sentences

  /// Macros whose words are a part of a sentence.
  private static let inline = [".Ql", ".Cm", ".Fl", ".Pa", ".Ev", ".Ar", ".Xr", ".Sx", ".Em", ".Nm"]

  /// Numbers of words. Lists and headings begin a new sentence; displays are none.
  static func sentences(_ source: String) -> [Int] {
    var (paragraphs, isDisplay): ([[Substring]], Bool) = ([[]], false)
    for line in source.split(separator: "\n") {
      if line.hasPrefix(".Bd") { isDisplay = true }
      if line.hasPrefix(".Ed") { isDisplay = false }
      guard !isDisplay else { continue }
      let words = line.split(separator: " ")
      let isInline = inline.contains { $0 == words.first.map(String.init) }
      if line.hasPrefix("."), !isInline {
        paragraphs.append([])
      } else {
        let kept = words.dropFirst(isInline ? 1 : 0)
        // A mark by itself belongs to the word before it.
        for word in kept {
          if let mark = word.first, word.count == 1, ".,:;)?!".contains(mark),
            let last = paragraphs[paragraphs.count - 1].popLast()
          {
            paragraphs[paragraphs.count - 1].append(last + word)
          } else if word != "(" {
            paragraphs[paragraphs.count - 1].append(word)
          }
        }
      }
    }
    return paragraphs.flatMap { words in
      words.reduce(into: [0]) { counts, word in
        counts[counts.count - 1] += 1
        if word.hasSuffix(".") || word.hasSuffix("?") { counts.append(0) }
      }
    }.filter { $0 > 3 }
  }

  @Test(arguments: files) func theSentencesAreShort(file: String) throws {
    let counts = Self.sentences(try ManualPage.text(file)).sorted()
    #expect(counts.count > 5)
    #expect(counts.last ?? 0 <= 40, "a sentence of \(counts.last ?? 0) words")
    #expect(counts[counts.count / 2] <= 14)
  }

  @Test func aLongSentenceIsSeen() {
    let long = Array(repeating: "word", count: 41).joined(separator: " ")
    let text =
      ".Sh A\nA short one is here.\n\(long)\n.Ql x y .\n.Bd -literal\n\(long)\n.Ed\n.Pp\nOne more of these.\n"
    #expect(Self.sentences(text) == [5, 43, 4])
  }
}
