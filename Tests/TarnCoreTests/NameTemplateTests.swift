import Foundation
import TarnCore
import TestSupport
import Testing

@Suite struct NameTemplateTests {
  private func name(
    _ template: String = "{date} {title}.{ext}", title: String = "Title",
    url: String = "https://h/p/file.mp3",
    type: String? = nil, date: Timestamp? = Timestamp(year: 2025, month: 3, day: 4), mark: String? = nil,
    guid: String? = nil, season: String? = nil, episode: String? = nil, feed: String = "",
    portable: Bool = false
  ) throws -> String {
    let enclosure = Enclosure(
      guid: guid.map { Array($0.utf8) }, title: Array(title.utf8), date: date, sources: [Source(url: url)],
      mediaType: type.map { Array($0.utf8) }, season: season.map { Array($0.utf8) },
      episode: episode.map { Array($0.utf8) })
    let naming = FileNaming(
      enclosure, identity: Array("0123abcd".utf8), feed: Array(feed.utf8), rule: PathRule(portable: portable))
    let template = try #require(NameTemplate(template))
    let bytes = template.path(naming, mark: mark.map { Array($0.utf8) })
    _ = try RelativePath(bytes, rule: PathRule(portable: portable))
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test func fields() throws {
    #expect(try name() == "2025-03-04 Title.mp3")
    #expect(try name("{title} [{id8}].{ext}") == "Title [0123abcd].mp3")
    for template in ["{title}", "{title}.mp3"] { #expect(try name(template) == "Title.mp3") }
    #expect(try name("{title}.m4a") == "Title.m4a.mp3")
    #expect(try name("{date}/{name}.{ext}") == "2025-03-04/file.mp3")
    #expect(try name(mark: "0123abcd") == "2025-03-04 Title [0123abcd].mp3")
    #expect(try name("{title}", mark: "x") == "Title [x].mp3")
    #expect(try name(date: nil) == "Title.mp3")
    #expect(try name(title: "") == "2025-03-04 file.mp3")
    #expect(try name(title: "", url: "https://h/") == "2025-03-04 0123abcd.bin")
  }

  @Test func titlesAreMadeSafe() throws {
    #expect(try name("{title}", title: "AC/DC: live") == "AC-DC: live.mp3")
    #expect(try name("{title}", title: "AC/DC: live?", portable: true) == "AC-DC- live-.mp3")
    #expect(try name("{title}", title: "../../etc/passwd") == "-..-etc-passwd.mp3")
    #expect(try name("{title}", title: ".hidden") == "hidden.mp3")
    #expect(try name("{title}", title: ".tarn") == "tarn.mp3")
    #expect(try name("{title}", title: "a\u{0}\u{1B}[2J\u{202E}b\n  c ") == "a [2Jb c.mp3")
    #expect(try name("{title}", title: "...") == "file.mp3")
    #expect(try name("{title}", title: "e\u{301} \u{E9} 🎧") == "e\u{301} \u{E9} 🎧.mp3")
  }

  @Test func fieldsOfPodcasts() throws {
    #expect(
      try name("{feed}/S{season}E{episode} - {title}.{ext}", season: "2", episode: "7", feed: "Show")
        == "Show/S2E7 - Title.mp3")
    #expect(try name("{feed}/{guid}.{ext}", guid: "https://h/?p=1", feed: "A/B") == "A-B/https:--h-?p=1.mp3")
    #expect(try name("{guid}") == "0123abcd.mp3")
    #expect(try name("{episode} {title}", episode: "204.5") == "204.5 Title.mp3")
  }

  /// What has no value takes along what belongs to it.
  @Test(arguments: [
    ("S{season}E{episode} - {title}.{ext}", "Title.mp3"), ("{title} - {season}.{ext}", "Title.mp3"),
    ("{title} ({season}x{episode}).{ext}", "Title.mp3"), ("{feed}/{season}/{title}.{ext}", "Title.mp3"),
    ("{season}_{title}_{episode}.{ext}", "Title.mp3"), ("{title}/{episode}.{ext}", "Title/0123abcd.mp3"),
    ("{title}, {season}: {episode}.{ext}", "Title.mp3"), ("- {title} -.{ext}", "- Title -.mp3"),
    ("{date} [{season}] {title}.{ext}", "Title.mp3"), ("x{season}/{title}", "Title.mp3"),
    ("{date}T{title}", "TTitle.mp3"),
  ])
  func emptyFieldsLeaveNoSeparators(template: String, expected: String) throws {
    #expect(try name(template, date: nil) == expected)
  }

  /// A file without an ending is of no kind.
  @Test func aTemplateWithoutAnEndingGetsOne() throws {
    #expect(try name("{title}") == "Title.mp3")
    #expect(try name("{ext}/{date}/{name}") == "mp3/2025-03-04/file.mp3")
    #expect(try name("{title} ({ext})") == "Title (mp3)")
    #expect(try name("{title}.", type: "video/mp4", mark: "x") == "Title [x].mp3")
  }

  @Test func longTitlesAreCutBetweenCharacters() throws {
    let long = try name(title: String(repeating: "ü", count: 400), mark: "0123abcd")
    #expect(long.utf8.count <= 255)
    #expect(long.hasSuffix("ü [0123abcd].mp3"))
    #expect(!long.contains("\u{FFFD}"))
  }

  @Test func extensions() throws {
    let cases: [(String, String?, String)] = [
      ("https://h/a.MP3?x=1.ogg", nil, "mp3"), ("https://h/a.php", "audio/mpeg", "mp3"),
      ("https://h/a", "audio/x-m4a", "m4a"), ("https://h/a", nil, "bin"),
      ("https://h/a.1", "video/mp4", "mp4"),
      ("https://h/a.tar%2Egz", nil, "gz"), ("https://h/.hidden", nil, "bin"),
      ("https://h/a.way-too-long-one", "application/pdf", "pdf"), ("https://h", nil, "bin"),
    ]
    for (url, type, wanted) in cases {
      #expect(try name("{id8}.{ext}", url: url, type: type) == "0123abcd.\(wanted)", "\(url)")
    }
  }

  @Test(arguments: [
    "", "fixed", "{unknown}", "{title", "title}", "{date}.{ext}", "/{title}", "a}{title}", "../{title}",
    "{title}/../x", "a//{title}", "{title}/", ".tarn/{title}",
  ])
  func badTemplates(text: String) {
    #expect(NameTemplate(text) == nil)
  }

  /// Whatever a feed says, a name is a path that is taken.
  @Test func anyTitleGivesAPath() throws {
    var random = Seeded(7)
    let templates = [
      "{date} {title}.{ext}", "{title}/{name} {id8}.{ext}", "{name}.{ext}", "x{title}y/{id8}",
      "{feed}/{guid}", "{title}", "a:b|{season}x{episode} {title}", "con/{title}",
    ]
    let words = ["con.", "-", "~", "Aux", " ", ".", "nul"].map { Array($0.utf8) }
    for _ in 0..<3000 {
      let noise = (0..<random.below(300)).map { _ in UInt8(random.below(256)) }
      let title = random.chance(50) ? random.pick(words) + noise : noise
      let rule = PathRule(portable: random.chance(50))
      let url =
        "https://h/"
        + (0..<random.below(9)).map { _ in random.pick(["%2F", "..", ".", "a", "%00", "/"]) }.joined()
      let enclosure = Enclosure(
        guid: random.chance(50) ? title : nil, title: title, date: nil, sources: [Source(url: url)],
        season: random.chance(50) ? title : nil)
      let naming = FileNaming(enclosure, identity: Array("0123abcd".utf8), feed: title, rule: rule)
      let template = try #require(NameTemplate(random.pick(templates)))
      let bytes = template.path(naming, mark: random.chance(50) ? Array("0123abcd".utf8) : nil)
      #expect(throws: Never.self) { try RelativePath(bytes, rule: rule) }
    }
  }
}
