import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// A login page, an error page or nothing at all in the place of a file.
@Suite struct ContentDoubtTests {
  private static let url = World.host + "a.mp3"
  private static let audio = "ID3\u{4}\u{0}" + String(repeating: "sound ", count: 5000)

  private func world(_ hint: ContentHint, _ name: String = "a.mp3") -> World {
    let world = World()
    world.policy.retries = 0
    world.add(
      Entry(
        path: name.path, sources: [Source(url: World.host + name)], listing: "enclosure".bytes, hint: hint))
    return world
  }

  private func page(_ body: String, _ type: String?) -> FakeAnswer { answer(body.bytes, type) }

  private func answer(_ body: [UInt8], _ type: String?, coding: String? = nil) -> FakeAnswer {
    var answer = FakeAnswer(body: body)
    (answer.contentType, answer.contentEncoding) = (type, coding)
    return answer
  }

  private static let hint = ContentHint(mediaType: "audio/mpeg".bytes, length: 30_004)

  /// What a file of this name may be.
  private static func good(_ name: String) -> [UInt8] {
    let beginnings = [
      ".zip": zip, ".pdf": pdf, ".gz": gzip, ".xz": xz, ".zst": [0x28, 0xB5, 0x2F, 0xFD],
      ".bz2": "BZh91AY&SY".bytes, ".AppImage": [0x7F] + "ELF".bytes, ".deb": "!<arch>\n".bytes,
    ]
    guard let begin = beginnings.first(where: { name.hasSuffix($0.key) })?.value else { return audio.bytes }
    return begin + [UInt8](repeating: 1, count: 5000)
  }

  @Test(arguments: [
    ("<html>login</html>", "text/html; charset=utf-8"), ("  \n<!DOCTYPE html><p>login", nil),
    ("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", "application/xml"),
    ("{\"error\": \"expired\"}", "application/json"), ("[ {\"error\": 1} ]", "audio/mpeg"),
    ("Forbidden", "text/plain"), ("", "audio/mpeg"), ("", nil), ("Not Found", nil),
    ("Not Found, whatever it was", "application/octet-stream"),
  ])
  func whatIsNoAudioIsAskedForAgain(_ body: String, _ type: String?) throws {
    let world = world(Self.hint)
    world.server.answer(Self.url, page(body, type))
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["content-mismatch"])
    #expect(report.outcome == "partial")
    #expect(world.files.isEmpty && world.partialNames.isEmpty)
    world.server.answer(Self.url, page(Self.audio, "audio/mpeg"))
    #expect(try world.run().isInSync)
    #expect(world.text("a.mp3") == Self.audio)
  }

  @Test func theProblemSaysWhatCame() throws {
    let world = world(Self.hint)
    world.server.answer(Self.url, page("<html>login</html>", "text/html"))
    let message = try #require(try world.run().problems.first).message
    #expect(message.contains("a web page (text/html) came where the feed says audio/mpeg"))
  }

  /// Whatever the server calls it, and although the length is off.
  @Test(arguments: ["audio/mpeg", "text/html", "text/plain", "application/octet-stream", nil])
  func audioIsTaken(_ type: String?) throws {
    let world = world(ContentHint(mediaType: "audio/mpeg".bytes, length: 31_111))
    world.server.answer(Self.url, page(Self.audio, type))
    #expect(try world.run().isInSync)
  }

  @Test(arguments: [
    "text/html", "image/svg+xml", "image/svg", "video/vnd.mpeg.dash.mpd", "video/x-ms-asf",
    "application/json", "audio/x-mpegurl",
  ])
  func whatMayBeTextIsTaken(_ declared: String) throws {
    let world = world(ContentHint(mediaType: declared.bytes, length: 30_000), "page")
    world.server.answer(World.host + "page", page("<html>a page</html>", "text/html"))
    #expect(try world.run().isInSync)
  }

  /// Types that are no media, and such as say nothing, where the name does.
  @Test(arguments: [
    ("a.mp3", "application/octet-stream"), ("doc", "application/pdf"), ("x", "application/zip"),
    ("x.ogg", "application/ogg"), ("a.mp3", nil), ("dl", nil), ("dl", "application/octet-stream"),
  ])
  func whatIsNoTextIsNoPage(_ name: String, _ declared: String?) throws {
    let world = world(ContentHint(mediaType: declared?.bytes, length: 30_000), name)
    world.server.answer(World.host + name, page("<html>login</html>", "text/html"))
    #expect(try world.run().problems.map(\.code) == ["content-mismatch"])
    world.server.answer(World.host + name, page(Self.audio, "text/html"))
    #expect(try world.run().isInSync)
  }

  /// No later pass would ask again for a file of a window.
  @Test func anEmptyEnclosureIsNone() throws {
    let world = World()
    world.policy.retries = 0
    world.add(
      Entry(
        path: "a".path, sources: [Source(url: World.host + "a")], listing: ContentDoubt.enclosure))
    world.server.answer(World.host + "a", page("", nil))
    #expect(try world.run().problems.map(\.code) == ["content-mismatch"])
  }

  /// Its beginning was taken before it showed what it is.
  @Test func ofAPageThatShowsItselfLateNothingIsKept() throws {
    let world = world(Self.hint)
    let body =
      String(repeating: " ", count: 1000) + "<html>login</html>" + String(repeating: " ", count: 2_000_000)
    var answer = page(body, "text/html")
    answer.etag = "\"1\""
    let gate = AnswerGate()
    answer.pause = (1000, gate)
    world.server.answer(Self.url, answer)
    // It goes on once its first bytes lie in a file.
    let folder = world.folder
    world.server.onRequest { _ in
      _ = try? WorkerThread.start(name: "look") {
        _ = isSoInTime { (try? folder.partials())?.contains { $0.size > 0 } == true }
        gate.open()
      }
    }
    #expect(try world.run().problems.map(\.code) == ["content-mismatch"])
    #expect(world.files.isEmpty && world.partialNames.isEmpty)
  }

  /// Whatever the server calls it: of what the feed counted less than half came, and it is a text.
  @Test(
    arguments: [
      ("a.mp3", "audio/mpeg", nil), ("a.mp3", "audio/mpeg", "application/octet-stream"),
      ("a.mp3", "audio/mpeg", "audio/mpeg"), ("a.zip", "application/zip", nil),
      ("a.pdf", "application/pdf", nil),
      ("a.tar.gz", "application/gzip", nil), ("a.tar.gz", "application/gzip", "application/gzip"),
      ("a.tar.gz", "application/x-gzip", "application/octet-stream"), ("dl", "application/gzip", nil),
    ] as [(String, String, String?)])
  func aTextFarTooShortIsNoFile(_ name: String, _ declared: String, _ type: String?) throws {
    for body in [
      "   \n", "{\"error\":\"unauthorized\"}", "<html><title>Log in</title></html>",
      String(repeating: "Service temporarily unavailable.\n", count: 60),
    ] {
      let world = world(ContentHint(mediaType: declared.bytes, length: 5_000_000), name)
      world.server.answer(World.host + name, page(body, type))
      #expect(try world.run().problems.map(\.code) == ["content-mismatch"], "\(body.prefix(20))")
      #expect(world.files.isEmpty)
      world.server.answer(World.host + name, answer(Self.good(name), type))
      #expect(try world.run().isInSync)
    }
  }

  private static let gzip: [UInt8] = [0x1F, 0x8B, 8, 0]
  private static let xz: [UInt8] = [0xFD] + "7zXZ\u{0}".bytes
  private static let gif = "GIF89a\u{1}\u{0}\u{1}\u{0}".bytes
  private static let png = [0x89] + "PNG\r\n\u{1A}\n".bytes
  private static let jpeg: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0, 0, 16]
  private static let pdf = "%PDF-1.7\n".bytes
  private static let zip = "PK\u{3}\u{4}\u{14}".bytes

  /// As a server sends that wants no links to its files.
  @Test(
    arguments: [
      ("a.mp3", "audio/mpeg", gif), ("a.mp3", "audio/mpeg", png), ("a.mp3", "audio/mpeg", jpeg),
      ("a.mp3", "audio/mpeg", pdf), ("a.mp3", "audio/mpeg", zip), ("dl", "video/mp4", gif),
      ("a.mp4", nil, png), ("a.iso", nil, gif), ("a.zip", nil, pdf), ("a.zip", "application/zip", jpeg),
      ("a.pdf", "application/pdf", png), ("a.jpg", "image/jpeg", pdf), ("a.jpg", nil, zip),
      ("a.mkv", nil, zip),
    ] as [(String, String?, [UInt8])])
  func aFileOfAnotherKindIsNotTheFile(_ name: String, _ declared: String?, _ body: [UInt8]) throws {
    let world = world(ContentHint(mediaType: declared?.bytes), name)
    world.server.answer(World.host + name, FakeAnswer(body: body + [UInt8](repeating: 0, count: 5000)))
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["content-mismatch"], "\(report.problems)")
    #expect(world.files.isEmpty)
    world.server.answer(World.host + name, FakeAnswer(body: Self.good(name)))
    #expect(try world.run().isInSync)
  }

  @Test(
    arguments: [
      ("a.pdf", "audio/mpeg", pdf), ("a.jpg", "audio/mpeg", jpeg), ("cover.png", nil, gif),
      ("a.epub", "application/epub+zip", zip), ("a.jar", nil, zip), ("a.docx", nil, zip), ("a.iso", nil, zip),
      ("dl", "image/jpeg", png), ("a.pdf.gz", "application/gzip", pdf), ("dl", nil, gif), ("a.bin", nil, png),
      ("a.cbz", "image/jpeg", zip),
    ] as [(String, String?, [UInt8])])
  func aFileThatFitsItsNameOrItsTypeIsTaken(_ name: String, _ declared: String?, _ body: [UInt8]) throws {
    let world = world(ContentHint(mediaType: declared?.bytes), name)
    world.server.answer(World.host + name, FakeAnswer(body: body + [UInt8](repeating: 0, count: 5000)))
    #expect(try world.run().isInSync)
  }

  /// Whatever they begin with; a feed that counted them is believed.
  @Test func aFewBytesAreNoRecording() throws {
    let few = "ID3\u{4}".bytes + [UInt8](repeating: 0, count: 900)
    for (length, isTaken) in [(60_000_000, false), (UInt64(few.count), true), (1500, true)]
      as [(UInt64, Bool)]
    {
      let world = world(ContentHint(mediaType: "audio/mpeg".bytes, length: length))
      world.server.answer(Self.url, FakeAnswer(body: few))
      let report = try world.run()
      #expect(report.problems.map(\.code) == (isTaken ? [] : ["content-mismatch"]), "\(length)")
    }
  }

  /// Feeds of such files tell the size of what they lead to.
  @Test(
    arguments: [
      ("a.nzb", "application/x-nzb", "application/x-nzb"),
      ("dl", "application/x-nzb", "application/octet-stream"),
      ("a.rtf", "application/rtf", "application/rtf"), ("a.patch", "application/x-patch", nil),
      ("a.xls", "application/vnd.ms-excel", "application/vnd.ms-excel"),
    ] as [(String, String, String?)])
  func aTextOfAnUnknownKindMayBeAnyLength(_ name: String, _ declared: String, _ type: String?) throws {
    let world = world(ContentHint(mediaType: declared.bytes, length: 1_234_567_890), name)
    world.server.answer(World.host + name, page("<?xml version=\"1.0\"?><nzb/>", type))
    #expect(try world.run().isInSync)
  }

  /// The name alone.
  @Test func aNameDeclaresToo() throws {
    for (name, type, isTaken) in [
      ("x.iso", "text/html", false), ("x.iso", "application/octet-stream", false), ("x.iso", nil, false),
      ("x.html", "text/html", true),
      ("x", "text/html", true), ("photo.JPG", "text/html", false),
      ("a.tar.gz", "application/xhtml+xml", false), ("a.bin", nil, false), ("x", nil, true),
    ] as [(String, String?, Bool)] {
      let world = world(ContentHint(), name)
      world.server.answer(World.host + name, page("<html>login</html>", type))
      #expect(try world.run().isInSync == isTaken, "\(name) \(type ?? "")")
    }
  }

  @Test func aRoundedSizeDoubtsAndTheEarlierCopyStays() throws {
    let sizes: ClosedRange<UInt64> = 2900...3100
    let world = world(ContentHint(sizes: sizes), "big")
    let good = String(repeating: "x", count: 3000)
    world.server.answer(World.host + "big", page(good, nil))
    #expect(try world.run().isInSync)
    world.add(
      Entry(
        path: "big".path, sources: [Source(url: World.host + "big")], listing: "another time".bytes,
        hint: ContentHint(sizes: sizes)))
    world.server.answer(World.host + "big", page("<html>login</html>", "text/html"))
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["size-mismatch"])
    #expect(world.text("big") == good)
    world.server.answer(World.host + "big", page(good + "y", nil))
    #expect(try world.run().isInSync)
    #expect(world.text("big") == good + "y")
  }

  /// What a server makes as it is asked has another size than the program that an index shows.
  @Test func aPageThatIsMadeHasAnySize() throws {
    let world = world(ContentHint(sizes: 2900...3100), "page.php")
    world.server.answer(World.host + "page.php", page("<html>made</html>", "text/html"))
    #expect(try world.run().isInSync)
  }

  @Test(arguments: ["page.html", "a.htm", "a.py"]) func aPageThatLiesThereHasItsSize(name: String) throws {
    let world = world(ContentHint(sizes: 2900...3100), name)
    world.server.answer(World.host + name, page("<html>login</html>", "text/html"))
    #expect(try world.run().problems.map(\.code) == ["size-mismatch"])
    let whole = "<html>" + String(repeating: "x", count: 2994)
    world.server.answer(World.host + name, page(whole, "text/html"))
    #expect(try world.run().isInSync)
  }

  /// A digest decides alone.
  @Test func whatIsVerifiedIsNotDoubted() throws {
    let world = World()
    var entry = world.serve("a.mp3", "<html>a song</html>")
    entry.hint = Self.hint
    world.add(entry)
    #expect(try world.run().isInSync)
  }

  /// An answer of a program in the place of a file that is none: by the feed's type or length, or by the name.
  @Test(arguments: [
    (#"{"error":"denied"}"#, "application/json"), (#"["error", "denied"]"#, "application/json"),
    ("<?xml version=\"1.0\"?><Error>x</Error>", "application/xml"), ("", "application/octet-stream"),
    ("\u{FEFF}\n\n<html>login", "text/html"),
  ])
  func anAnswerIsNoFile(_ body: String, _ type: String) throws {
    for (name, hint) in [
      ("a.mp3", ContentHint(length: 30_003)), ("a.mp3", ContentHint()), ("x.iso", ContentHint()),
      ("a.ogg", ContentHint(mediaType: "application/ogg".bytes)), ("x", ContentHint(mediaType: "mp3".bytes)),
      ("x", ContentHint(mediaType: "application/pdf".bytes, length: 3_000_000)),
      ("x", ContentHint(length: 30_003)),
      ("a.tar.gz", ContentHint(length: 30_003)), ("x", ContentHint(mediaType: "application/zip".bytes)),
    ] {
      let world = world(hint, name)
      world.server.answer(World.host + name, page(body, type))
      #expect(try world.run().problems.map(\.code) == ["content-mismatch"], "\(name) \(hint)")
      #expect(world.files.isEmpty)
    }
  }

  /// Plain text has to be short for what was declared, or no kind of file that was.
  @Test func aPlainAnswerIsNoFile() throws {
    for (name, hint) in [
      ("a.mp3", ContentHint(length: 30_003)), ("x", ContentHint(mediaType: "mp3".bytes)),
      ("x", ContentHint(mediaType: "application/pdf".bytes)), ("x", ContentHint(length: 30_003)),
      ("a.tar.gz", ContentHint(length: 30_003)),
    ] {
      let world = world(hint, name)
      world.server.answer(World.host + name, page("Service Unavailable", "text/plain"))
      #expect(try world.run().problems.map(\.code) == ["content-mismatch"], "\(name) \(hint)")
    }
  }

  /// A listing that says so decides.
  @Test func whatIsEmptyInTheListingIsEmpty() throws {
    let world = world(ContentHint(sizes: 0...51), "a.jpg")
    world.server.answer(World.host + "a.jpg", page("", "image/jpeg"))
    #expect(try world.run().isInSync)
  }

  /// Pages often begin with blank lines, and Windows writes them in UTF-16.
  @Test(arguments: ["audio/mpeg", "image/jpeg"])
  func aPageIsFoundBehindBlanks(_ declared: String) throws {
    let page = "<html><body>login</body></html>" + String(repeating: " ", count: 5000)
    let wide: [UInt8] = [0xFF, 0xFE] + page.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
    for body in [String(repeating: "\r\n", count: 100).bytes + page.bytes, wide] {
      let world = world(ContentHint(mediaType: declared.bytes), "a")
      var answer = FakeAnswer(body: body)
      answer.contentType = "text/html"
      world.server.answer(World.host + "a", answer)
      #expect(try world.run().problems.map(\.code) == ["content-mismatch"])
    }
  }

  @Test func aLongTextIsNoRecording() throws {
    let world = world(ContentHint(mediaType: "audio/mpeg".bytes))
    world.server.answer(
      Self.url, page(String(repeating: "Access denied by the proxy. ", count: 60), "text/plain"))
    #expect(try world.run().problems.map(\.code) == ["content-mismatch"])
  }

  /// Whatever the server calls it, where the feed tells no length.
  @Test(
    arguments: [
      ("a.mp3", "audio/mpeg", nil), ("a.mp3", "audio/mpeg", typed), ("a.mp3", "audio/mpeg", "audio/mpeg"),
      ("dl", "audio/mpeg", nil), ("A.mp3", nil, typed), ("A.jpg", nil, "image/jpeg"), ("A.zip", nil, nil),
      ("a.pdf", "application/pdf", "application/pdf"), ("dl", "video/mp4", "video/mp4"),
    ] as [(String, String?, String?)])
  func aTextThatNoLengthVouchesForIsNoFile(_ name: String, _ declared: String?, _ type: String?) throws {
    for body in ["quota exceeded", String(repeating: "try again later\n", count: 5625)] {
      let world = world(ContentHint(mediaType: declared?.bytes), name)
      world.server.answer(World.host + name, page(body, type))
      let report = try world.run()
      #expect(report.problems.map(\.code) == ["content-mismatch"], "\(body.prefix(20))")
      #expect(report.problems.first?.message.contains("a text (") == true, "\(report.problems)")
      #expect(world.files.isEmpty && world.partialNames.isEmpty)
      world.server.answer(World.host + name, answer(Self.good(name), type))
      #expect(try world.run().isInSync)
    }
  }

  @Test func theEarlierCopyOutlivesAPlainError() throws {
    let world = world(ContentHint(mediaType: "audio/mpeg".bytes))
    world.server.answer(Self.url, page(Self.audio, "audio/mpeg"))
    #expect(try world.run().isInSync)
    world.add(
      Entry(
        path: "a.mp3".path, sources: [Source(url: Self.url)], listing: "another time".bytes,
        hint: ContentHint(mediaType: "audio/mpeg".bytes)))
    world.server.answer(Self.url, page("quota exceeded", Self.typed))
    #expect(try world.run().problems.map(\.code) == ["content-mismatch"])
    #expect(world.text("a.mp3") == Self.audio)
  }

  /// A rest without its beginning would tell nothing.
  @Test func anErrorThatWasCutIsNoneEither() throws {
    let world = world(ContentHint(mediaType: "audio/mpeg".bytes))
    world.policy.retries = 1
    let text = String(repeating: "try again later\n", count: 5625)
    world.server.answer(Self.url, FakeAnswer(etag: "\"1\"", body: text.bytes))
    world.server.script(Self.url, [Server.broken(text, after: 50_000, etag: "\"1\"")])
    #expect(try world.run().problems.map(\.code) == ["content-mismatch"])
    #expect(world.files.isEmpty && world.partialNames.isEmpty)
  }

  /// Such a length is a placeholder.
  @Test(arguments: [(1, false), (39_999, false), (40_000, true), (100_000, true)] as [(UInt64, Bool)])
  func aLengthVouchesForATextOfTwiceAsMuch(_ length: UInt64, _ isTaken: Bool) throws {
    let world = world(ContentHint(mediaType: "audio/mpeg".bytes, length: length))
    world.server.answer(Self.url, page(String(repeating: "letters.", count: 10_000), "audio/mpeg"))
    #expect(try world.run().problems.map(\.code) == (isTaken ? [] : ["content-mismatch"]))
  }

  /// A rounded size, a name of a text or a beginning that only such files have.
  @Test func aTextThatMayBeTheFileIsTaken() throws {
    func ofType(_ type: String) -> ContentHint { ContentHint(mediaType: type.bytes) }
    let long = String(repeating: " of letters", count: 300)
    for (name, hint, body) in [
      ("a.mp3", ContentHint(sizes: 3000...3500), "sound" + long), ("a.m3u", ofType("audio/mpeg"), "a.mp3"),
      ("a.torrent", ofType("video/mp4"), "d8:announce20:http://tracker/a/b/c" + long),
      ("a.fits", ofType("image/fits"), "SIMPLE  =                    T" + long),
      ("a.y4m", ofType("video/x-yuv4mpeg"), "YUV4MPEG2 W2 H2" + long),
      ("a.hdr", ofType("image/vnd.radiance"), "#?RADIANCE\nFORMAT=" + long),
      ("b.hdr", ofType("image/x-hdr"), "#?RGBE"),
      ("a.fig", ofType("image/x-xfig"), "#FIG 3.2" + long),
      ("a.vdi", ContentHint(), "<<< Oracle VM VirtualBox Disk Image >>>"),
      ("a.amr", ofType("audio/amr"), "#!AMR\nsound"), ("a.jar", ContentHint(), "#!/bin/bash\n" + long),
      ("a.xpm", ofType("image/x-xpm"), "/* XPM */"), ("a", ofType("audio/x-pls"), "[playlist]"),
      ("a.eps", ofType("image/x-eps"), "%!PS-Adobe-3.0 EPSF-3.0" + long),
    ] as [(String, ContentHint, String)] {
      let world = world(hint, name)
      world.server.answer(World.host + name, page(body, nil))
      #expect(try world.run().isInSync, "\(name)")
    }
  }

  /// Feeds of torrents tell the size of what these lead to, and a small text may be what is wanted.
  @Test(arguments: [
    (
      "x.torrent", "application/x-bittorrent", "d8:announce20:http://tracker/a/b/ce",
      "application/x-bittorrent"
    ),
    ("x.asc", "application/pgp-signature", "-----BEGIN PGP SIGNATURE-----", "text/plain"),
    ("x.txt", "text/plain", "short", "text/plain"),
    ("x.xml.gz", nil, "<?xml version=\"1.0\"?><a/>", "text/xml"),
    ("x.json", nil, "{}", "application/json"), ("README", nil, "read me", "text/plain"),
    ("x.bin", nil, "", nil),
  ])
  func aSmallTextMayBeTheFile(_ name: String, _ declared: String?, _ body: String, _ type: String?) throws {
    let length: UInt64? = name.hasSuffix(".torrent") ? 700_000_000 : nil
    var entry = Entry(path: name.path, sources: [Source(url: World.host + name)], listing: "1".bytes)
    entry.hint = ContentHint(mediaType: declared?.bytes, length: length)
    let world = World()
    world.add(entry)
    // Longer than what only an error would be.
    let text = name.hasSuffix(".gz") ? body + String(repeating: " ", count: 2000) : body
    world.server.answer(World.host + name, page(text, type))
    #expect(try world.run().isInSync)
  }

  private static let typed = "application/octet-stream"

  private func isNoFile(_ rows: [(String, ContentHint, [UInt8], String?)]) throws {
    for (name, hint, body, type) in rows {
      let world = world(hint, name)
      var answer = FakeAnswer(body: body)
      answer.contentType = type
      world.server.answer(World.host + name, answer)
      #expect(try world.run().problems.map(\.code) == ["content-mismatch"], "\(name) \(hint) \(type ?? "")")
      #expect(world.files.isEmpty)
    }
  }

  /// What is no file although it is no page in UTF-8 either.
  @Test func moreThatIsNoFile() throws {
    let latin = Array("Acc\u{E8}s refus\u{E9}".unicodeScalars.map { UInt8($0.value) })
    let wide = "<html><body>login</body></html>".utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
    let told = ContentHint(length: 30_003)
    let pdf = ContentHint(mediaType: "application/pdf".bytes, length: 3_000_000)
    try isNoFile([
      ("x", pdf, latin, "text/plain"), ("x.pdf", told, latin, "text/plain; charset=iso-8859-1"),
      ("a.mp3", told, "Access denied".bytes, nil), ("a.mp3", told, "Access denied".bytes, Self.typed),
      ("a.docx", told, "Access denied".bytes, "text/plain"), ("a.mobi", ContentHint(), "<html>".bytes, nil),
      ("a.wma", told, "{\"error\": 1}".bytes, "application/json"),
      ("a.MPG", ContentHint(), "<html>".bytes, nil),
      ("a.mp3", ContentHint(), wide, Self.typed), ("a.iso", told, wide, nil),
      ("a.tar.gz", ContentHint(), "<!-- proxy -->\n<!DOCTYPE html><p>login".bytes, Self.typed),
      ("a.tar.gz", told, "<?xml version=\"1.0\"?>\n<!DOCTYPE html><p>login".bytes, nil),
      ("x.xls", ContentHint(mediaType: "application/vnd.ms-excel".bytes), "<html>login".bytes, "text/html"),
    ])
  }

  /// Names and types that say nothing of a page.
  @Test func whatOnlyItsBytesTellIsNoFile() throws {
    try isNoFile([
      ("a.ova", ContentHint(), "<html>login".bytes, "text/html"),
      ("a.ova", ContentHint(), "<html>login".bytes, Self.typed),
      ("a.ova", ContentHint(), "Not found".bytes, "text/html"),
      ("a.ova", ContentHint(), "Not found".bytes, "text/plain"),
      ("a.tar.gz", ContentHint(), "Not found".bytes, "text/html"),
      ("a.ova", ContentHint(), "{\"error\": 1}".bytes, "application/json"),
      ("a.ova", ContentHint(), "<Error><Code>NoSuchKey</Code></Error>".bytes, "application/xml"),
      ("a.iso.sha256", ContentHint(), "<Error><Code>NoSuchKey</Code></Error>".bytes, "application/xml"),
      ("a.iso.sha256", ContentHint(), "{\"error\": 1}".bytes, "application/json"),
      ("a.md5", ContentHint(), "Service Unavailable".bytes, "text/html"),
      ("a.tar.gz", ContentHint(), String(repeating: "Please log in. ", count: 150).bytes, "text/html"),
      ("a.mp3", ContentHint(), (String(repeating: "\n", count: 1600) + "<!DOCTYPE html>").bytes, "text/html"),
      ("a.mp3", ContentHint(), String(repeating: "Access denied. ", count: 150).bytes, "text/plain"),
      ("a.iso", ContentHint(), String(repeating: "Please log in. ", count: 150).bytes, "text/html"),
      ("a.iso.asc", ContentHint(), "<title>404</title>".bytes, "text/html"),
      ("a.ova", ContentHint(), [], nil),
      ("notes.txt", ContentHint(), "<!DOCTYPE html>login".bytes, "text/html; charset=utf-8"),
      ("a.iso.sha256", ContentHint(), "<html>login".bytes, "text/html"),
      ("a.txt", ContentHint(mediaType: "text/plain".bytes), "<html>login".bytes, "text/html"),
      (
        "a.mp3", ContentHint(mediaType: "audio/mpeg".bytes, length: 30_003), "no such file".bytes,
        "audio/mpeg"
      ),
      (
        "a.mp3", ContentHint(mediaType: "audio/mpeg".bytes),
        "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n".bytes, "audio/mpeg"
      ),
      (
        "a.psd", ContentHint(), "version https://git-lfs.github.com/spec/v1\noid sha256:00\n".bytes,
        "text/plain"
      ),
      (
        "a.zip", ContentHint(), "version https://git-lfs.github.com/spec/v1\noid sha256:00\n".bytes,
        "text/plain"
      ),
      (
        "a.tar.xz", ContentHint(),
        "<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code>\(String(repeating: " ", count: 2000))"
          .bytes,
        "application/xml"
      ),
    ])
  }

  /// What pages of programs begin with that write no head.
  @Test(arguments: [
    "<title>404 Not Found</title>", "<script>location='/login'</script>", "<meta http-equiv=refresh>",
    "<center><h1>502</h1></center>", "<H1>Forbidden</H1>", "<p>gone</p>", "<a href=\"/login\">Found</a>.",
  ])
  func aPageWithoutAHeadIsNoFile(_ body: String) throws {
    for name in ["a.tar.gz", "a.iso", "a.txt", "a.sha256"] {
      let world = world(ContentHint(), name)
      world.server.answer(World.host + name, page(body + String(repeating: " ", count: 2000), "text/html"))
      #expect(try world.run().problems.map(\.code) == ["content-mismatch"], "\(name)")
    }
  }

  private func ofType(_ type: String, _ length: UInt64? = nil) -> ContentHint {
    ContentHint(mediaType: type.bytes, length: length)
  }

  private func isTheFile(_ rows: [(String, ContentHint, String, String?)]) throws {
    for (name, hint, body, type) in rows {
      let world = world(hint, name)
      world.server.answer(World.host + name, page(body, type))
      #expect(try world.run().isInSync, "\(name) \(hint) \(type ?? "")")
    }
  }

  /// What looks odd and is the file all the same.
  @Test func whatIsTheFileAllTheSame() throws {
    let midi = "MThd\u{0}\u{0}\u{0}\u{6}\u{0}\u{1}\u{0}\u{1}\u{0}`MTrk"
    try isTheFile([
      ("a.wax", ofType("audio/x-ms-wax"), "<ASX version=\"3.0\"/>", "audio/x-ms-wax"),
      ("a.wvx", ofType("video/x-ms-wvx", 9000), "<ASX version=\"3.0\"/>", "video/x-ms-wvx"),
      ("a.ram", ofType("audio/x-pn-realaudio", 9000), "http://a.example/a.rm", "text/plain"),
      ("a.xls", ofType("application/vnd.ms-excel"), "<html><table>", "application/vnd.ms-excel"),
      ("a.ppm", ofType("image/x-portable-pixmap", 9000), "P3 1 1 255 0 0 0", "text/plain"),
      ("a.xpm", ofType("image/x-xpixmap"), "/* XPM */", "text/x-c"),
      ("a.dxf", ofType("image/vnd.dxf"), "  0\nSECTION", "text/plain"),
      ("a.ts", ofType("video/mp2t"), "export const a = 1;", "text/plain"),
      ("README", ContentHint(length: 9000), "read me", "text/plain"),
      ("a.asc", ContentHint(length: 9000), "-----BEGIN PGP SIGNATURE-----", "text/plain"),
      ("a.vtt", ofType("application/octet-stream", 9000), "WEBVTT", "text/vtt"),
      ("a.md", ContentHint(length: 9000), "# text", "text/markdown"),
      ("a.json", ContentHint(length: 9000), "{\"a\": 1}", "application/json"),
      ("a.gpx", ofType("application/octet-stream"), "<gpx/>", "application/gpx+xml"),
      ("x", ofType("audio/midi", 9000), midi, Self.typed), ("x", ofType("audio/midi", 9000), midi, nil),
      ("x", ofType("image/x-odd", 7), "letters", "text/plain"),
      ("x", ContentHint(length: 7), "letters", "text/plain"),
      ("a.txt", ofType("text/plain"), "", "text/plain"),
    ])
  }

  /// So do texts and pages where the feed or the name expects them.
  @Test func aTextThatIsExpectedIsTheFile() throws {
    try isTheFile([
      ("favicon.ico", ContentHint(), "<svg xmlns=\"x\"/>", "image/svg+xml"),
      ("a.png", ContentHint(), "<?xml version=\"1.0\"?><svg/>", "image/svg+xml"),
      ("readme.md", ContentHint(), "<html>shown", "text/html"),
      ("v1.0", ContentHint(), "<html>a page", "text/html"),
      ("a.cfm", ContentHint(), "<html>made", "text/html"),
      ("man.html.en", ContentHint(), "<html>a page", "text/html"),
      ("page.html.gz", ContentHint(), "<html>unpacked", "text/html"),
      ("page.html.bak", ContentHint(), "<html>old", "text/html"),
      ("README.Debian", ContentHint(), "<html>shown", "text/html"),
      ("en.wikipedia.org", ContentHint(), "<html>a page", "text/html"),
      ("a.txt", ofType("text/html"), "<html>a page", "text/html"),
      ("a.bin", ContentHint(), "<b\u{7}\u{0}\u{1}", nil), ("a.iso", ContentHint(), "<a\u{7}\u{0}\u{1}", nil),
      ("a.iso", ContentHint(), "[[\u{7}\u{0}\u{1}", nil),
      ("a.asc", ContentHint(), "[[anchor]]\n= Title", "text/plain"),
      ("a.sig", ContentHint(), "{\"payload\": 1}", "application/json"),
      ("a.md5", ContentHint(), "0123456789abcdef0123456789abcdef  a", "text/html"),
      ("a.vmdk", ContentHint(), "# Disk DescriptorFile", "text/plain"),
      ("libm.so", ContentHint(), "/* GNU ld script */", "text/plain"),
      ("a.snap", ContentHint(), "// Jest Snapshot", "text/plain"),
      ("a.db", ContentHint(), "$TTL", "text/plain"),
      ("main.pt", ContentHint(), "<html tal:define='x'>", "text/html"),
      ("a.nfo", ContentHint(), "<metadata/>", "text/html"),
      ("a.conf", ContentHint(), "<fontconfig/>", "text/html"),
      ("a.log", ContentHint(), "<html>built", "text/html"),
      ("x", ofType("image/gif"), "GIF89a\u{1}\u{0}\u{1}\u{0};", "text/html"),
      ("x", ofType("image/jpeg", 90000), "\u{FF}\u{D8}\u{0}", "text/plain"),
      ("x.pdf", ofType("application/pdf"), "%PDF-1.4\n% ReportLab", "text/html"),
      ("x", ofType("application/x-metalink"), "<metalink/>", "text/html"),
      (
        "a.xml.gz", ContentHint(), "<?xml version=\"1.0\"?><a>\(String(repeating: " ", count: 2000))",
        "text/xml"
      ),
    ])
  }

  /// Bytes in a coding that is not the file's own are another file, although its name is that of a compressed one.
  @Test func encodedBytesAreNotTheFile() throws {
    let brotli: [UInt8] = [0x1B, 0x9F, 0x02] + [UInt8](repeating: 7, count: 3000)
    for (name, coding, body, type) in [
      ("a.tar.gz", "br", brotli, Self.typed), ("a.tar.gz", "zstd", [0x28, 0xB5, 0x2F, 0xFD, 4], nil),
      ("a.tar.gz", "deflate", [0x78, 0x9C] + brotli, "application/gzip"), ("a.tgz", "br", brotli, nil),
      ("a.gz", "br", brotli, nil), ("a.tar.xz", "br", brotli, nil), ("a.svgz", "br", brotli, "image/svg+xml"),
      ("a.tar.xz", "gzip", Self.gzip + brotli, nil),
      ("a.tar.gz", "gzip", Self.gzip + [1, 2, 3], "text/html"),
    ] as [(String, String, [UInt8], String?)] {
      for hint in [ContentHint(), ContentHint(sizes: 0...1 << 20)] {
        let world = world(hint, name)
        world.server.answer(World.host + name, answer(body, type, coding: coding))
        #expect(try world.run().problems.map(\.code) == ["content-mismatch"], "\(name) \(coding)")
        #expect(world.files.isEmpty)
      }
    }
    for (name, coding, body, type) in [
      ("a.tar.gz", "gzip", Self.gzip + brotli, Self.typed), ("a.tgz", "x-gzip", Self.gzip + [1], nil),
      ("a.tar.xz", "xz", Self.xz + brotli, nil), ("a.tar.xz", "x-gzip", Self.xz + brotli, nil),
      ("a.html.gz", "gzip", Self.gzip + brotli, "text/html"), ("a.br", "br", brotli, nil),
      ("a.svgz", "gzip", Self.gzip + brotli, "image/svg+xml"),
    ] as [(String, String, [UInt8], String?)] {
      let world = world(ContentHint(), name)
      world.server.answer(World.host + name, answer(body, type, coding: coding))
      #expect(try world.run().isInSync, "\(name) \(coding)")
    }
  }

  /// The name tells how such a file begins.
  @Test(arguments: [
    "a.tar.gz", "a.tar.xz", "a.tar.zst", "a.bz2", "a.xz", "a.zip", "a.pdf", "a.deb", "A.AppImage",
  ])
  func aFileBeginsAsItsNameSays(_ name: String) throws {
    let long = String(repeating: "Too many requests. ", count: 90)
    for (body, type) in [
      ("Too many requests".bytes, "text/plain"), (#"{"error":"quota"}"#.bytes, Self.typed), ([], Self.typed),
      ("Internal error\u{0}".bytes, Self.typed), ("ID3 is no text".bytes, nil), (long.bytes, nil),
      (Self.webp, "image/webp"), ("#!\n".bytes + long.bytes, "text/plain"), (Self.gif, nil),
    ] as [([UInt8], String?)] {
      let world = world(ContentHint(), name)
      world.server.answer(World.host + name, answer(Self.good(name), Self.typed))
      #expect(try world.run().isInSync)
      world.add(
        Entry(path: name.path, sources: [Source(url: World.host + name)], listing: "another time".bytes))
      world.server.answer(World.host + name, answer(body, type))
      #expect(try world.run().problems.map(\.code) == ["content-mismatch"], "\(body.prefix(20))")
      #expect(world.files[name] == String(decoding: Self.good(name), as: UTF8.self))
    }
  }

  private static let webp = "RIFF\u{24}\u{0}\u{0}\u{0}WEBPVP8 ".bytes + [UInt8](repeating: 9, count: 2000)

  /// Misnamed, unpacked on the way, or counted by the feed: it may be the file.
  @Test func whatBeginsOtherwiseAndIsTheFile() throws {
    var tar = "a".bytes + [UInt8](repeating: 0, count: 511)
    let sum = 0x61 + 8 * 0x20
    tar.replaceSubrange(148..<154, with: "000\(String(sum, radix: 8))".bytes)
    for (name, hint, body, type) in [
      ("a.tar.gz", ContentHint(), tar, nil), ("a.tar", ContentHint(), tar, nil),
      ("a.tar.gz", ContentHint(), Self.xz, nil), ("a.zip", ContentHint(), "Rar!\u{1A}\u{7}".bytes, nil),
      ("a.zip", ContentHint(), "MZ\u{0}\u{3}".bytes, nil),
      ("a.csv.gz", ContentHint(), "a,b".bytes, "text/csv"),
      ("Packages.gz", ContentHint(), "Package: a".bytes, "text/plain"),
      ("a.zip", ContentHint(length: 5), "plain".bytes, "text/plain"),
      ("a.pdf", ContentHint(), "\n\n%PDF-1.4".bytes, nil),
      ("a.docx", ContentHint(), [0xD0, 0xCF, 0x11, 0xE0], nil),
      ("a.z", ContentHint(), [0x78, 0x9C, 3, 0], nil), ("a.z", ContentHint(), [0x1F, 0x1E, 0, 0], nil),
      ("a.bin", ContentHint(), ":10010000214601360121470136007EFE09D2190140".bytes, "text/plain"),
      ("a.bin", ContentHint(), "#!/bin/sh\necho".bytes, "text/plain"),
      ("a.img", ContentHint(), [UInt8](repeating: 0, count: 5000), nil),
    ] as [(String, ContentHint, [UInt8], String?)] {
      let world = world(hint, name)
      world.server.answer(World.host + name, answer(body, type))
      let report = try world.run()
      #expect(report.isInSync, "\(name) \(report.problems)")
    }
  }

  /// A disk image has no beginning of its own.
  @Test func anImageIsNoAnswer() throws {
    let page = "<!DOCTYPE html><title>Log in</title>"
    let typed = ContentHint(mediaType: Self.typed.bytes, length: 500_000)
    for (name, body) in [("a.img", page), ("a.bin", #"{"error":"quota"}"#), ("a.img", "Too many requests")] {
      let world = world(typed, name)
      world.server.answer(World.host + name, self.page(body, Self.typed))
      #expect(try world.run().problems.map(\.code) == ["content-mismatch"], "\(name) \(body)")
    }
    for body in ["", "Too many requests", page] {
      let world = world(ContentHint(), "a.img")
      let good = [UInt8](repeating: 3, count: 300_000)
      for (listing, answered) in [("1", good), ("2", body.bytes)] {
        world.add(
          Entry(path: "a.img".path, sources: [Source(url: World.host + "a.img")], listing: listing.bytes))
        world.server.answer(World.host + "a.img", answer(answered, "text/plain"))
        #expect(try world.run().isInSync == (listing == "1"), "\(body)")
      }
      #expect(world.files["a.img"] == String(decoding: good, as: UTF8.self))
    }
  }

  /// No program makes a page of these names.
  @Test(arguments: [
    "a.flatpak", "a.lz", "a.cab", "a.xpi", "a.msix", "a.ipa", "a.pkg", "a.zim", "a.nc", "a.ts",
  ])
  func moreNamesThatAreNoPages(_ name: String) throws {
    let world = world(ContentHint(), name)
    world.server.answer(World.host + name, page("<!DOCTYPE html><p>login", "text/html"))
    #expect(try world.run().problems.map(\.code) == ["content-mismatch"])
  }

  /// Other kinds than the one declared, by their first bytes or because they are too few.
  @Test func moreThatIsNoRecordingAndNoPicture() throws {
    let rest = [UInt8](repeating: 9, count: 90)
    let bitmap: [UInt8] = [0x42, 0x4D, 9, 9, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0]
    let icon: [UInt8] = [0, 0, 1, 0, 1, 0, 16, 16, 0, 0, 1, 0, 32, 0, 9, 9, 0, 0, 22, 0, 0, 0]
    let audio = ContentHint(mediaType: "audio/mpeg".bytes)
    let picture = ContentHint(mediaType: "image/jpeg".bytes, length: 500_000)
    for (name, hint, body, type) in [
      ("a.mp3", audio, Self.webp, "image/webp"), ("a.mp3", audio, bitmap + rest, "image/bmp"),
      ("a.mp3", audio, icon + rest, "image/x-icon"),
      ("a.mp3", audio, "<svg xmlns='x'/>".bytes, "image/svg+xml"),
      ("a.mp3", audio, Self.gzip + [7, 7, 7], "text/html"),
      ("a.mp3", audio, "Internal error\u{0}".bytes, nil),
      (
        "a.mp3", ContentHint(mediaType: "audio/mpeg".bytes, length: 5_000_000),
        Self.gzip + [UInt8](repeating: 7, count: 1700), "text/html"
      ),
      ("a.mp4", ContentHint(), "Internal error\u{0}".bytes, nil),
      ("a.m4a", ContentHint(), [1, 2, 3, 4], nil),
      ("a.mp3", audio, "#!/bin/sh\nexit".bytes, nil),
      ("a.jpg", picture, Self.gif + [UInt8](repeating: 0, count: 33), "image/gif"),
      ("a.jpg", picture, [UInt8](repeating: 2, count: 20), "text/html"),
    ] as [(String, ContentHint, [UInt8], String?)] {
      let world = world(hint, name)
      world.server.answer(World.host + name, answer(body, type))
      #expect(try world.run().problems.map(\.code) == ["content-mismatch"], "\(name) \(type ?? "")")
      #expect(world.files.isEmpty)
    }
    for (name, hint, body) in [
      ("a.mp3", audio, [0xFF, 0xFB, 0x90, 0]), ("a.mp4", ContentHint(), "\u{0}\u{0}\u{0} ftypisom".bytes),
      ("a.jpg", picture, [0xFF, 0xD8, 0xFF, 0xE0]),
      ("a.wav", ContentHint(), "RIFF\u{4}\u{0}\u{0}\u{0}WAVE".bytes),
    ] as [(String, ContentHint, [UInt8])] {
      let world = world(hint, name)
      world.server.answer(World.host + name, answer(body, "text/html"))
      let report = try world.run()
      #expect(report.isInSync, "\(name) \(report.problems)")
    }
  }
}
