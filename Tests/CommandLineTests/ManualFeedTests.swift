import Foundation
import TarnCore
import TestSupport
import Testing

@testable import TarnFeeds

/// tarn-feeds(7) and tarn-manifest(5) describe what the readers of feeds take.
@Suite struct ManualFeedTests {
  private let feeds: ManualPage
  private let manifest: ManualPage

  init() throws {
    feeds = try ManualPage.named("tarn-feeds.7")
    manifest = try ManualPage.named("tarn-manifest.5")
  }

  private static let facts = ["Name", "Option", "Completeness", "Digests", "Sizes and times"]

  /// As `tarn status` prints them: a window is called by what it is written in.
  private static let windows = [WindowFormat.rss, .rdf, .atom].map(\.rawValue)
  private static let names: Set<String> = {
    let formats = FeedParser.formats.filter { !($0 is Window) }.map(\.name) + [LinkPage().name]
    return Set(formats + windows)
  }()

  /// What the item `Name` of a part quotes.
  private func names(_ item: ManualPage.Item) -> [String] {
    item.text.components(separatedBy: " .Ql ").dropFirst().map { $0.replacingOccurrences(of: " ,", with: "") }
  }

  /// All formats, by section and part.
  private var named: [(place: String, names: [String])] {
    var named = feeds.items.filter { $0.names == ["Name"] }.map { item in
      (place: item.section + item.part, names: names(item))
    }
    let indexes = feeds.words("DIRECTORY INDEXES").filter { !Self.facts.contains($0) }
    named.append((place: "DIRECTORY INDEXES", names: indexes))
    return named
  }

  @Test func everyFormatIsThere() {
    let all = named.flatMap(\.names)
    #expect(all.count > 30)
    #expect(Set(all) == Self.names)
    #expect(Set(all).count == all.count)
  }

  /// Of each kind of feed the page says the same five things.
  @Test func everyFormatHasItsFacts() {
    for place in named.map(\.place) {
      let items = feeds.items.filter { $0.section + $0.part == place }
      for fact in Self.facts where fact != "Name" || place != "DIRECTORY INDEXES" {
        let item = items.first { $0.names == [fact] }
        #expect(item?.text.isEmpty == false, "\(place): \(fact)")
      }
    }
  }

  @Test func everyWordOfTheOptionIsThere() {
    let options = feeds.items.filter { $0.names == ["Option"] }.map(\.text).joined()
    let words = options.components(separatedBy: "--format ").dropFirst().map { text in
      String(text.prefix { $0 != " " })
    }
    #expect(Set(words) == Set(FormatChoice.allCases.map(\.rawValue)).subtracting(["auto"]))
  }

  /// A format belongs to the word that the page gives it.
  @Test func everyFormatIsReadByItsWord() {
    for (place, names) in named {
      let text = feeds.items.first { $0.section + $0.part == place && $0.names == ["Option"] }?.text ?? ""
      let choice = FormatChoice.allCases.first { text.contains("--format \($0.rawValue)") }
      let read = choice.map { FeedParser.formats(of: $0) } ?? []
      let own = read.flatMap { $0 is Window ? Self.windows : [$0.name] }
      #expect(Set(names).isSubset(of: own), "\(place)")
    }
  }

  @Test func whatIsNeverCompleteIsSaidSo() {
    let never = Set(
      named.filter { place, _ in
        feeds.items.contains {
          $0.section + $0.part == place && $0.names == ["Completeness"] && $0.text.contains("Never complete")
        }
      }.flatMap(\.names))
    let windows = FeedParser.formats.filter { $0.kind == .window && !($0 is Window) }.map(\.name)
    #expect(never == Set(Self.windows + windows + [MirrorList().name, LinkPage().name]))
    #expect(FeedParser.isNeverWhole(MirrorList.reason) && FeedParser.isNeverWhole(LinkPage.reason))
  }

  @Test func everyDigestIsThere() throws {
    let text = try ManualPage.text("tarn-feeds.7")
    let manifest = try ManualPage.text("tarn-manifest.5")
    for name in DigestAlgorithm.allCases.map(\.name) {
      #expect(text.contains(name.uppercased()), "\(name)")
      #expect(manifest.contains("\n.Ql \(name.replacingOccurrences(of: "-", with: "\\-"))"), "\(name)")
    }
  }

  // MARK: - The manifest

  /// Keys that the readers of the manifest compare with, as they stand in their code.
  private static func keys() throws -> Set<String> {
    var keys: Set<String> = []
    for file in ["ManifestFile", "ManifestHeader", "ManifestLines", "ManifestDocument"] {
      let url = Documents.root.appendingPathComponent("Sources/TarnFeeds/Formats/\(file).swift")
      let text = try String(contentsOf: url, encoding: .utf8)
      keys.formUnion(text.matches(of: /case "([\w-]+)":/).map { String($0.output.1) })
      keys.formUnion(text.matches(of: /elementsEqual\("([\w-]+)"\.utf8\)/).map { String($0.output.1) })
      for list in text.matches(of: /JSONKeys\(([^)]*)\)/) {
        keys.formUnion(list.output.1.matches(of: /"([\w-]+)"/).map { String($0.output.1) })
      }
    }
    return keys
  }

  @Test func everyKeyOfTheManifestIsThere() throws {
    let keys = try Self.keys()
    #expect(keys.count > 25)
    let text = try ManualPage.text("tarn-manifest.5").replacingOccurrences(of: "\\-", with: "-")
    for key in keys {
      #expect(
        text.contains("Cm \(key)\n") || text.contains("Ql \(key)") || text.contains("( \(key)"), "\(key)")
    }
    let sections = ["MANIFEST OF LINES", "HEADER", "FILES OF A MANIFEST"]
    let named = sections.flatMap { manifest.words($0) }
    #expect(named.count > 15)
    for name in named { #expect(keys.contains(name), "\(name)") }
    #expect(text.contains(ManifestHeader.format))
  }

  @Test func theManifestsOfThePageAreRead() throws {
    let digest = String(repeating: "ab", count: 32)
    let text = manifest.displays.joined(separator: "\n").replacingOccurrences(of: "ba78...", with: digest)
    let end = "{\"end\":{\"files\":2,\"bytes\":3}}"
    let lines = try #require(text.components(separatedBy: end).first)
    let document = text.components(separatedBy: end)[1].components(separatedBy: "\n}")[0] + "\n}"
    for (form, name) in [(lines + end + "\n", "manifest lines"), (document, "manifest")] {
      var paths: [String] = []
      let feed = FeedDocument(url: "https://example.org/iso/manifest")
      let end = try FeedParser(hashing: PlainHashing()).parse(Bytes(rest: Array(form.utf8)), as: feed) {
        item in
        guard case .entry(let entry) = item else { return }
        paths.append(entry.path.printable)
      }
      #expect(paths == ["a.iso", "docs/b.txt"], "\(form)")
      #expect(end.format == name && end.isComplete)
    }
  }

  private struct Bytes: ByteSource {
    var rest: [UInt8]

    mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(FeedFailure) -> Int {
      let part = rest.prefix(buffer.count)
      buffer.copyBytes(from: part)
      rest.removeFirst(part.count)
      return part.count
    }
  }
}
