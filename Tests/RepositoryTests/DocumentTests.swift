import Foundation
import Testing

/// ARCHITECTURE.md and the decisions beside the code are short, and speak of what there is.
@Suite struct DocumentTests {
  private func page(_ text: String) -> Repository.Source {
    Repository.Source(path: "Sources/TarnCore/TarnCore.docc/Decisions/Sample.md", text: text)
  }

  @Test func theArchitectureIsShort() throws {
    #expect(Rules.size(try Documents.architecture(), limit: 250) == [])
  }

  @Test func sentencesAreShort() throws {
    let architecture = Prose.sentences(try Documents.architecture().text).sorted()
    #expect(architecture.count > 200)
    #expect(architecture[architecture.count / 2] <= 14)
    var decisions: [Int] = []
    for page in try Documents.decisions + [Documents.architecture()] {
      let counts = Prose.sentences(page.text)
      #expect(counts.max() ?? 0 <= 40, "\(page.path): a sentence of \(counts.max() ?? 0) words")
      if page.path != "ARCHITECTURE.md" { decisions += counts }
    }
    decisions.sort()
    #expect(decisions.count > 500)
    #expect(decisions[decisions.count / 2] <= 14)
  }

  // MARK: - Decisions

  @Test func everyDecisionHasQuestionChoiceCostAndStatus() {
    #expect(Documents.decisions.count > 60)
    #expect(Documents.decisions.flatMap(Documents.form) == [])
    #expect(Documents.decisions.flatMap { Rules.size($0, limit: 40) } == [])
  }

  @Test(arguments: [
    "Title\n\n## Question\n\nA?\n\n## Choice\n\nB.\n\n## Cost\n\nC.\n\n## Status\n\nD.\n",
    "# Title\n\n## Question\n\nA?\n\n## Choice\n\nB.\n\n## Status\n\nD.\n",
    "# Title\n\n## Choice\n\nB.\n\n## Question\n\nA?\n\n## Cost\n\nC.\n\n## Status\n\nD.\n",
    "# Title\n\n## Question\n\nA?\n\n## Choice\n\nB.\n\n## Cost\n\n## Status\n\nD.\n",
    "# Title\n\n## Question\n\nA?\n\n## Choice\n\nB.\n\n## Cost\n\nC.\n\n## Status",
  ])
  func anIncompleteDecisionIsSeen(text: String) { #expect(Documents.form(page(text)).count == 1) }

  /// The front page of each catalog leads to its decisions, and to no other.
  @Test func frontPagesListTheirDecisions() throws {
    let ofTargets = Documents.decisions.filter { $0.path.hasPrefix("Sources/") }
    let catalogs = Dictionary(grouping: ofTargets, by: \.target)
    #expect(Set(catalogs.keys).isSubset(of: Rules.arrows.keys))
    for (target, pages) in catalogs {
      let front = try Repository.text("Sources/\(target)/\(target).docc/\(target).md")
      let listed = front.components(separatedBy: "- <doc:").dropFirst().map {
        String($0.prefix { $0 != ">" }) + ".md"
      }
      #expect(listed.sorted() == pages.map(Documents.fileName).sorted(), "\(target)")
    }
  }

  /// A comment cites a page by its name alone.
  @Test func decisionsHaveNamesOfTheirOwn() {
    let names = Documents.decisions.map(Documents.fileName)
    #expect(Set(names).count == names.count)
    func comment(_ name: String) -> Repository.Source {
      Repository.Source(path: "Sources/TarnCore/Sample.swift", text: "/// See there (\(name).md).\n")
    }
    #expect(Rules.citations(comment("UnchangedFeed")) == [])
    #expect(Rules.citations(comment("UnheardOf")).count == 1)
  }

  // MARK: - What they name

  @Test func whatTheyNameIsThere() throws {
    let (files, words) = (Repository.paths(), Documents.words())
    let pages = try Documents.decisions + [Documents.architecture()]
    #expect(pages.flatMap { Prose.codes($0.text) }.count > 300)
    #expect(pages.flatMap { Documents.missingPaths($0, files: files) } == [])
    #expect(pages.flatMap { Documents.missingNames($0, words: words) } == [])
  }

  @Test func aPathThatIsNotThereIsSeen() {
    let files: Set = ["Sources/TarnCore/Plan", "Sources/TarnCore/Plan/Planner.swift", "config/tarn.toml"]
    let there =
      "`TarnCore/Plan/Planner.swift`, `Sources/TarnCore/Plan`, `Planner.swift`, `TarnCore/Plan/`, `config/tarn.toml`"
    #expect(Documents.missingPaths(page(there), files: files) == [])
    let elsewhere = "`/etc/fstab`, `partial/NAME`, `.tarn`, `tarn sync FEED`, `hooks.json`"
    #expect(Documents.missingPaths(page(elsewhere), files: files) == [])
    for path in ["TarnCore/Plan/Other.swift", "Sources/TarnCore/Gone", "Other.swift", "config/other.toml"] {
      #expect(Documents.missingPaths(page("At `\(path)`."), files: files).count == 1, "\(path)")
      #expect(Documents.missingPaths(page("```\nAt `\(path)`.\n```\n"), files: files) == [])
    }
  }

  @Test func aNameThatIsNotThereIsSeen() {
    let words: Set<Substring> = ["Planner", "decide"]
    #expect(
      Documents.missingNames(page("`Planner`, `Planner.decide`, `GET`, `O_TMPFILE`"), words: words) == [])
    #expect(Documents.missingNames(page("`Planer` and `Planner.undo`"), words: words).count == 2)
  }

  /// `tarn-watch` is in the table, and has no Swift.
  @Test func theTableOfTargetsIsThatOfTheRules() throws {
    let targets = Documents.targets(try Documents.architecture().text)
    #expect(Set(targets.keys) == Set(Rules.arrows.keys).union(["tarn-watch"]))
    for (target, arrows) in Rules.arrows {
      #expect(
        targets[target] == arrows, "\(target): \(targets[target, default: []].symmetricDifference(arrows))")
    }
  }
}
