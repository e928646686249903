import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Answers that no kind of file begins with, and files that look like one: judged by the name here, and by that at the server.
@Suite struct PlainAnswerTests {
  private static let typed = "application/octet-stream"
  private static let error = "Service temporarily unavailable\n"
  private static let page = "<html><body>login</body></html>"
  private static let gzip: [UInt8] = [0x1F, 0x8B, 8, 0]
  private static let blob: [UInt8] = (0..<200_000).map { [1, 2, 3, 0][$0 % 4] }

  private func answer(_ body: [UInt8], _ type: String?, coding: String? = nil) -> FakeAnswer {
    var answer = FakeAnswer(body: body)
    (answer.contentType, answer.contentEncoding) = (type, coding)
    return answer
  }

  private func world() -> World {
    let world = World()
    world.policy.retries = 0
    return world
  }

  /// - Parameter sent: the name at the server; `nil` for the same one.
  private func add(
    _ world: World, _ name: String, sent: String? = nil, listing: String = "enclosure",
    _ hint: ContentHint = ContentHint()
  ) {
    world.add(
      Entry(
        path: name.path, sources: [Source(url: World.host + (sent ?? name))], listing: listing.bytes,
        hint: hint))
  }

  /// Tarn's own name has the last ending, and `bin` for a long one.
  @Test(
    arguments: [
      ("t.img", "a.img", blob), ("t.bin", "a.bin", blob), ("t.gz", "a.tar.gz", gzip),
      ("t.gz", "a.img.gz", gzip), ("t.lz", "a.tar.lz", "LZIP\u{1}".bytes),
      ("t.lz4", "a.lz4", [4, 0x22, 0x4D, 0x18]),
      ("t.z", "a.tar.Z", [0x1F, 0x9D, 0x90]), ("t.swf", "a.swf", "CWS\u{5}".bytes),
      ("t.bin", "a.AppImage", [0x7F] + "ELF\u{2}".bytes), ("t.bin", "a.squashfs", "hsqs\u{0}\u{1}".bytes),
    ] as [(String, String, [UInt8])])
  func aPlainErrorIsNoFileOfAWindow(_ name: String, _ sent: String, _ good: [UInt8]) throws {
    let long = String(repeating: Self.error, count: 90)
    for type in [nil, Self.typed, "application/gzip", "application/x-gtar", "application/x-raw-disk-image"] {
      for text in [Self.error, long] {
        let world = world()
        add(world, name, sent: sent, ContentHint(mediaType: type?.bytes))
        world.server.answer(World.host + sent, answer(text.bytes, "text/plain"))
        #expect(try world.run().problems.map(\.code) == ["content-mismatch"], "\(type ?? "")")
        #expect(world.files.isEmpty)
        world.server.answer(World.host + sent, answer(good, Self.typed))
        let report = try world.run()
        #expect(report.isInSync, "\(type ?? "") \(report.problems)")
      }
    }
  }

  @Test(arguments: [
    "jfif", "jpe", "jp2", "jxl", "heif", "dib", "tga", "dng", "cr2", "mts", "m1v", "asf", "rmvb", "rm", "ra",
    "ogm", "mpc", "snd", "s3m", "xm",
  ]) func aPlainErrorIsNoPictureAndNoRecording(_ ending: String) throws {
    for type in [nil, Self.typed] {
      for text in [Self.error, Self.page, String(repeating: Self.error, count: 90)] {
        let world = world()
        add(world, "a.\(ending)", ContentHint(mediaType: type?.bytes))
        let url = World.host + "a.\(ending)"
        world.server.answer(url, answer(text.bytes, text == Self.page ? "text/html" : "text/plain"))
        #expect(try world.run().problems.map(\.code) == ["content-mismatch"], "\(type ?? "")")
        world.server.answer(url, answer(Self.blob, Self.typed))
        let report = try world.run()
        #expect(report.isInSync, "\(report.problems)")
      }
    }
  }

  /// A module of TypeScript, and what leads to a stream.
  @Test func aListMayHaveTextsUnderEndingsOfRecordings() throws {
    for (name, text) in [
      ("a.mts", "export const a = 1;\n"), ("a.asf", "[Reference]\nRef1=http://a.example/\n"),
      ("Tweak.xm", "%hook Class\n"), ("a.ra", "rtsp://a.example/a.ra\n"), ("a.mpc", "id=MagickCache\n"),
    ] {
      for count in [1, 90] {
        let world = world()
        add(world, name, listing: "1")
        let body = String(repeating: text, count: count)
        world.server.answer(World.host + name, answer(body.bytes, "text/plain"))
        let report = try world.run()
        #expect(report.isInSync, "\(name) \(report.problems)")
      }
    }
  }

  /// They begin like a text, or are known by few bytes.
  @Test(
    arguments: [
      ("a.xm", "Extended Module: x\u{1A}\u{4}\u{1}".bytes), ("a.mpc", "MPCK\u{0}\u{1}".bytes),
      ("a.mpc", "MP+\u{7}\u{0}".bytes), ("a.rm", ".RMF\u{0}\u{0}\u{0}".bytes),
      ("a.ra", [0x2E, 0x72, 0x61, 0xFD, 0]),
      ("a.s3m", [UInt8](repeating: 0, count: 44) + "SCRM".bytes), ("a.snd", ".snd\u{0}\u{0}".bytes),
    ] as [(String, [UInt8])])
  func aSmallRecordingIsTaken(_ name: String, _ body: [UInt8]) throws {
    let world = world()
    add(world, name)
    world.server.answer(World.host + name, answer(body, Self.typed))
    let report = try world.run()
    #expect(report.isInSync, "\(report.problems)")
  }

  @Test func anOrchestraOfCsoundIsTaken() throws {
    for type in ["audio/csound", "text/xml", Self.typed] {
      let world = world()
      add(world, "a.csd", ContentHint(mediaType: "audio/csound".bytes, length: 90_000))
      let text = "<CsoundSynthesizer>\n<CsOptions>\n</CsOptions>\n"
      world.server.answer(World.host + "a.csd", answer(text.bytes, type))
      let report = try world.run()
      #expect(report.isInSync, "\(type) \(report.problems)")
    }
  }

  /// The server unpacks it on the way.
  @Test(arguments: [
    ("x.json.gz", "application/json", "[1, 2, 3]\n"),
    ("x.xml.gz", "application/xml", "<?xml version=\"1.0\"?><a/>\n"),
    ("x.geojson.gz", "application/geo+json", "{\"type\": 1}\n"),
  ]) func aPackedFileThatCameUnpackedIsTaken(_ sent: String, _ type: String, _ line: String) throws {
    let world = world()
    add(world, "t.gz", sent: sent, ContentHint(mediaType: "application/gzip".bytes))
    world.server.answer(World.host + sent, answer(String(repeating: line, count: 200).bytes, type))
    let report = try world.run()
    #expect(report.isInSync, "\(report.problems)")
  }

  /// Tarn makes the ending from the type, too.
  @Test(arguments: [("x.torrent", "x.torrent"), ("t.torrent", "dl.php?id=1"), ("t.torrent", "x.torrent")])
  func aPlainErrorIsNoTorrent(_ name: String, _ sent: String) throws {
    for type in [nil, "application/x-bittorrent"] {
      for text in [Self.error, "denied\n", "", String(repeating: Self.error, count: 90)] {
        let world = world()
        add(
          world, name, sent: sent, listing: name == sent ? "1" : "enclosure",
          ContentHint(mediaType: type?.bytes))
        world.server.answer(World.host + sent, answer(text.bytes, "text/plain"))
        #expect(try world.run().problems.map(\.code) == ["content-mismatch"], "\(sent) \(type ?? "")")
        world.server.answer(World.host + sent, answer("d4:infod6:lengthi5eee".bytes, "text/plain"))
        let report = try world.run()
        #expect(report.isInSync, "\(sent) \(report.problems)")
      }
    }
  }

  /// The address has no ending, or one that tells nothing, and Tarn makes the name from the type.
  @Test(
    arguments: [
      ("t.gz", "application/gzip", gzip), ("t.bin", "application/x-bzip2", "BZh91AY&SY\u{0}\u{1}".bytes),
      ("t.bin", "application/x-xz", [0xFD] + "7zXZ\u{0}".bytes), ("t.bin", "application/x-gtar", gzip),
      ("t.bin", "application/x-msdos-program", "MZ\u{0}\u{3}".bytes),
      ("t.bin", "application/x-sqlite3", "SQLite format 3\u{0}\u{1}".bytes),
    ] as [(String, String, [UInt8])])
  func aPlainErrorIsNoFileOfABinaryType(_ name: String, _ type: String, _ good: [UInt8]) throws {
    for sent in ["a.tar.gz/download", "123", "get.php?id=1", "v1.2"] {
      for text in [Self.error, String(repeating: Self.error, count: 90)] {
        let world = world()
        add(world, name, sent: sent, ContentHint(mediaType: type.bytes))
        world.server.answer(World.host + sent, answer(text.bytes, "text/plain"))
        #expect(try world.run().problems.map(\.code) == ["content-mismatch"], "\(sent)")
        #expect(world.files.isEmpty)
        world.server.answer(World.host + sent, answer(good, Self.typed))
        let report = try world.run()
        #expect(report.isInSync, "\(sent) \(report.problems)")
      }
    }
  }

  /// Tables of endings call them programs.
  @Test(arguments: ["t.bat", "t.cmd"]) func aScriptOfDOSIsTaken(_ name: String) throws {
    for (body, type, isTaken) in [
      ("@echo off\r\n", "text/plain", true), ("@echo off\r\n", "application/x-msdos-program", true),
      (Self.page, "text/html", false), ("", "text/plain", false),
    ] {
      let world = world()
      add(world, name, ContentHint(mediaType: "application/x-msdos-program".bytes))
      world.server.answer(World.host + name, answer(body.bytes, type))
      #expect(try world.run().problems.map(\.code) == (isTaken ? [] : ["content-mismatch"]), "\(body)")
    }
  }

  /// `bin` is Tarn's own word for what it does not know, and a server may unpack a file on the way.
  @Test func aTextUnderANameThatTellsNothingIsTaken() throws {
    for (name, sent, type) in [
      ("t.bin", "dl", nil), ("t.bin", "get", "application/x-nzb"), ("t.gz", "a.csv.gz", nil),
      ("t.gz", "Packages.gz", "application/gzip"), ("t.snap", "a.snap", nil),
    ] as [(String, String, String?)] {
      let world = world()
      add(world, name, sent: sent, ContentHint(mediaType: type?.bytes))
      world.server.answer(World.host + sent, answer("a,b\n1,2\n".bytes, "text/csv"))
      let report = try world.run()
      #expect(report.isInSync, "\(sent) \(report.problems)")
    }
  }

  @Test func aPageIsNoDrawingAndNoData() throws {
    for (name, type) in [
      ("a.svg", "image/svg+xml"), ("a.xml", "text/plain"), ("a.xml", "application/xml"),
      ("a.json", "application/json"), ("a.m3u8", "audio/x-mpegurl"), ("a.spx", nil), ("a.mka", Self.typed),
      ("a.amr", nil),
    ] as [(String, String?)] {
      let world = world()
      add(world, name, ContentHint(mediaType: type?.bytes, length: type == nil ? nil : 200_000))
      world.server.answer(World.host + name, answer(Self.page.bytes, "text/html"))
      #expect(try world.run().problems.map(\.code) == ["content-mismatch"], "\(name)")
      #expect(world.files.isEmpty)
    }
  }

  /// It is taken, since it may be the file, and asked for again.
  @Test(arguments: ["a.rtf", "a.ps", "a.sid"]) func aPageOfAnUnknownEndingIsAskedForAgain(name: String) throws
  {
    let world = world()
    add(world, name)
    for body in [Self.page, Self.page, "{\\rtf1 good}"] {
      world.server.answer(
        World.host + name, answer(body.bytes, body == Self.page ? "text/html" : Self.typed))
      #expect(try world.run().isInSync)
      #expect(world.server.requests.count == 1 && world.text(name) == body)
    }
    #expect(try world.run().isInSync)
    #expect(world.server.requests.isEmpty)
  }

  /// XHTML is XML, and the author of the feed may have counted the bytes.
  @Test func aPageThatIsTheFileIsTaken() throws {
    let book = "<?xml version=\"1.0\"?>\n<html xmlns=\"http://www.w3.org/1999/xhtml\"></html>"
    let titled = "<title>x</title>"
    for (name, hint, body, type, isTaken) in [
      ("a.xml", ContentHint(), book, "application/xhtml+xml", true),
      ("a.xml", ContentHint(mediaType: "application/xml".bytes), book, "application/xhtml+xml", true),
      ("a.xml", ContentHint(length: UInt64(titled.utf8.count)), titled, "text/html", true),
      ("a.xml", ContentHint(length: 90_000), titled, "text/html", false),
      ("a.json", ContentHint(), book, "application/xhtml+xml", false),
    ] {
      for listing in ["1", "enclosure"] {
        let world = world()
        add(world, name, listing: listing, hint)
        world.server.answer(World.host + name, answer(body.bytes, type))
        #expect(
          try world.run().problems.map(\.code) == (isTaken ? [] : ["content-mismatch"]), "\(name) \(hint)")
      }
    }
  }

  @Test func aTextUnderAnEndingOfBytesIsTaken() throws {
    for (name, line) in [
      ("a.fbx", "; FBX 7.3.0 project file\n"), ("a.orc", "sr = 44100\ninstr 1\n"),
      ("a.sys", "FILES = 30\r\n"), ("a.hdf", "NCSA text\n"), ("a.bin", "@0000\n12 34 56 78\n"),
      ("a.bin", "YWJjZGVmZ2hpamtsbW5vcA==\nZGVmZ2hpamtsbW5vcHFyc3R1\n"),
      ("a.img", "# u-boot\narch=arm\nbootcmd=run x && run y\nbaudrate=115200\n"),
      ("a.img", "bootcmd=run x\r\nbaudrate=115200\r\n"), ("a.img", "a=run x && run y\nb=1\n"),
      ("a.bin", "# dump\n:10010000214601360121470136007EFE09D2190140\n"),
      ("a.bin", "S00F000068656C6C6F202020202000003C\r\n"),
    ] {
      for count in [1, 90] {
        let world = world()
        add(world, name)
        let body = String(repeating: line, count: count)
        world.server.answer(World.host + name, answer(body.bytes, Self.typed))
        let report = try world.run()
        #expect(report.isInSync, "\(name) \(report.problems)")
      }
    }
    for text in [
      "ServiceTemporarilyUnavailable\n", "Error 503: a=1\n", "@ all: no\n", "# 503 Service unavailable\n",
      "error=access_denied&error_description=quota\n", "a=1&b=2\nc=3&d=4\n", "status=503\n", "Error=503\n",
      "#error\n", "# 503\n# try again\n", "# 503\nstatus=503\n", "4f9d2c1be7a04b5f9d2c1be7a04b5f9d\n",
    ] {
      for name in ["a.img", "a.bin", "a.ko"] {
        let world = world()
        add(world, name)
        world.server.answer(World.host + name, answer(text.bytes, "text/plain"))
        #expect(try world.run().problems.map(\.code) == ["content-mismatch"], "\(name) \(text)")
      }
    }
  }

  /// Too little came at first to tell, and the rest without the beginning tells nothing. What is whole by then is only sealed.
  @Test(arguments: ["a.img", "a.mp3"]) func aTextThatBreaksOffEarlyIsNoFile(_ name: String) throws {
    let url = World.host + name
    let good = "ID3\u{4}\u{0}".bytes + Self.blob
    for (body, isTaken) in [
      (String(repeating: Self.error, count: 90).bytes, false), (Array(Self.long.bytes.prefix(500)), false),
      (good, true),
    ] as [([UInt8], Bool)] {
      let world = world()
      world.rushes = true
      world.policy.retries = 1
      add(world, name)
      world.server.answer(url, FakeAnswer(etag: "\"1\"", body: body))
      world.server.script(url, [FakeAnswer(etag: "\"1\"", body: body, failure: (500, Server.lost))])
      #expect(try world.run().problems.map(\.code) == (isTaken ? [] : ["content-mismatch"]))
      #expect(world.server.requests.allSatisfy { [0, 500].contains($0.offset) })
      #expect(world.files[name] == (isTaken ? String(decoding: good, as: UTF8.self) : nil))
    }
  }

  /// The server no longer has the page, and the file is in place.
  @Test(arguments: [403, 404, 410, 500]) func aPageThatItsServerDropsStays(status: Int) throws {
    let world = world()
    add(world, "a.doc")
    world.server.answer(World.host + "a.doc", answer(Self.page.bytes, "text/html"))
    #expect(try world.run().isInSync)
    for _ in 0..<2 {
      world.server.answer(World.host + "a.doc", FakeAnswer(status: status))
      let report = try world.run()
      #expect(report.isInSync && report.counts.inPlace == 1, "\(report.problems)")
      #expect(world.server.requests.count == 1 && world.text("a.doc") == Self.page)
    }
    world.server.answer(World.host + "a.doc", answer("{\\rtf1 good}".bytes, Self.typed))
    #expect(try world.run().isInSync)
    #expect(world.text("a.doc") == "{\\rtf1 good}")
  }

  /// Another version may have come within the second of the first: no failure settles which one is in place.
  @Test func aFailureDoesNotSettleAVersion() throws {
    let world = world()
    let sent = world.clock.time
    world.add(
      Entry(
        path: "a.doc".path, modified: sent, sources: [Source(url: World.host + "a.doc")],
        listing: ContentDoubt.enclosure))
    var answer = answer("{\\rtf1 one}".bytes, Self.typed)
    answer.sent = sent
    world.server.answer(World.host + "a.doc", answer)
    #expect(try world.run().isInSync)
    world.clock.advance(.seconds(60))
    world.server.answer(World.host + "a.doc", FakeAnswer(status: 503))
    #expect(try world.run().problems.map(\.code) == ["http-503"])
    #expect(world.text("a.doc") == "{\\rtf1 one}")
    answer.body = "{\\rtf1 two}".bytes
    world.server.answer(World.host + "a.doc", answer)
    #expect(try world.run().isInSync)
    #expect(world.text("a.doc") == "{\\rtf1 two}")
  }

  /// Each answer has another number in it.
  @Test func aPageThatDiffersEachTimeIsNoNewVersion() throws {
    let world = world()
    add(world, "a.doc")
    for number in 0..<3 {
      world.server.answer(World.host + "a.doc", answer("<html>\(number)</html>".bytes, "text/html"))
      let report = try world.run()
      #expect(report.isInSync && report.counts.updated == 0)
      #expect(world.text("a.doc") == "<html>0</html>")
    }
  }

  /// A 304 tells no type.
  @Test(arguments: [typed, "text/html"]) func aFreshFileIsAskedForUntilItRests(_ type: String) throws {
    let world = world()
    let sent = world.clock.time
    world.add(
      Entry(
        path: "a.doc".path, modified: sent, sources: [Source(url: World.host + "a.doc")],
        listing: ContentDoubt.enclosure))
    var answer = answer(type == Self.typed ? [0xD0, 0xCF, 0x11, 0xE0, 0, 1] : Self.page.bytes, type)
    (answer.etag, answer.sent) = ("\"1\"", sent)
    world.server.answer(World.host + "a.doc", answer)
    #expect(try world.run().isInSync)
    world.clock.advance(.seconds(60))
    for isFirst in [true, false] {
      #expect(try world.run().isInSync)
      #expect(world.server.requests.count == (isFirst || type == "text/html" ? 1 : 0))
    }
  }

  @Test(
    arguments: [
      ("a.img", long, "text/plain"), ("a.bin", long, "text/plain"), ("a.gz", long, "text/plain"),
      ("a.ko", long, typed), ("a.lz4", long, "text/plain"), ("a.raw", error, "text/plain"),
      ("a.snap", #"{"error":"no"}"#, "application/json"), ("a.raw", "", typed), ("a.mka", page, "text/html"),
      ("a.raw", long, "text/plain"), ("a.snap", longer, "text/plain"), ("a.db", "", typed),
      ("a.dat", #"{"error":"no"}"#, "application/json"), ("a.sqlite3", error, "text/plain"),
      ("noend", page, "text/html"), ("noend", "", typed), ("a.img", longer, "text/plain"),
      ("a.db", page, "text/html"), ("a.rom", page + String(repeating: "<p>x</p>", count: 400), "text/html"),
    ])
  func anEarlierCopyStays(_ name: String, _ body: String, _ type: String) throws {
    let world = world()
    add(world, name, listing: "1")
    world.server.answer(World.host + name, answer(Self.blob, Self.typed))
    #expect(try world.run().isInSync)
    add(world, name, listing: "2")
    world.server.answer(World.host + name, answer(body.bytes, type))
    #expect(try world.run().problems.map(\.code) == ["content-mismatch"])
    #expect(world.files[name] == String(decoding: Self.blob, as: UTF8.self))
  }

  /// An error has neither an ETag nor a Last-Modified. A new version may be shorter, a text, or empty.
  @Test(
    arguments: [
      ("a.doc", "{\\rtf1 new}", "application/rtf"), ("a.xls", "a\tb\n", "text/plain"),
      ("a.xls", page, "application/vnd.ms-excel"), ("a.stl", "solid cube\n", "text/plain"),
      ("a.ply", "ply\nformat ascii 1.0\n", "text/plain"), ("a.crl", "-----BEGIN X509 CRL-----\n", typed),
      ("a.dump", "-- PostgreSQL database dump\n", "text/plain"), ("a.so", "/* GNU ld script */\n", typed),
      ("a.plist", "<?xml version=\"1.0\"?>\n<plist/>", "text/xml"), ("a.dat", "", typed),
      ("latest", "version 2\n", "text/plain"), ("a.db", "", typed), ("a.img", "", typed),
      ("a.raw", "", typed),
      ("a.key", "-----BEGIN KEY-----\n", "text/plain"), ("a.torrent", "d8:announce3:urle", typed),
    ] as [(String, String, String)])
  func aTextOrNothingMayBeTheNewVersion(_ name: String, _ body: String, _ type: String) throws {
    for isTagged in [true, false] {
      let world = world()
      add(world, name, listing: "1")
      world.server.answer(World.host + name, answer([0xD0, 0xCF, 0x11, 0xE0] + Self.blob, Self.typed))
      let first = try world.run()
      #expect(first.isInSync, "\(name) \(first.problems)")
      add(world, name, listing: "2")
      var stored = answer(body.bytes, type)
      if isTagged { stored.etag = "\"2\"" }
      if !isTagged {
        (stored.lastModified, stored.sent) = (
          Timestamp(nanoseconds: 1_000_000_000_000), Timestamp(nanoseconds: 2_000_000_000_000)
        )
      }
      world.server.answer(World.host + name, stored)
      let report = try world.run()
      #expect(report.isInSync, "\(name) \(report.problems)")
      #expect(world.text(name) == body)
    }
  }

  /// Programs that make what they are asked for give a weak ETag, or the time at which they made it.
  @Test func whatAProgramMadeIsNotStored() throws {
    let now = Timestamp(nanoseconds: 2_000_000_000_000)
    for (etag, modified) in [("W/\"25-abc\"", nil), (nil, now), (nil, nil)] as [(String?, Timestamp?)] {
      let world = world()
      add(world, "a.img", listing: "1")
      world.server.answer(World.host + "a.img", answer(Self.blob, Self.typed))
      #expect(try world.run().isInSync)
      add(world, "a.img", listing: "2")
      var made = answer("Too many requests\n".bytes, "text/plain")
      (made.etag, made.lastModified, made.sent) = (etag, modified, now)
      world.server.answer(World.host + "a.img", made)
      #expect(try world.run().problems.map(\.code) == ["content-mismatch"])
    }
  }

  /// Nothing tells these from an error.
  @Test(arguments: [
    "# 503 Service unavailable\n", "error=access_denied\n", "4f9d2c1be7a04b5f9d2c1be7a04b5f9d\n",
  ])
  func aRefusedTextIsTakenOnceTheFileIsDeleted(_ text: String) throws {
    let world = world()
    for name in ["a.img", "noend"] {
      add(world, name, listing: "1")
      world.server.answer(World.host + name, answer(Self.blob, Self.typed))
      #expect(try world.run().isInSync)
      add(world, name, listing: "2")
      world.server.answer(World.host + name, answer(text.bytes, "text/plain"))
      let problems = try world.run().problems
      #expect(problems.map(\.code) == ["content-mismatch"])
      #expect(problems.first?.message.contains("delete the local file, and the next pass takes") == true)
      #expect(world.files[name] == String(decoding: Self.blob, as: UTF8.self))
      world.folder.delete(name.path)
      #expect(try world.run().isInSync)
      #expect(world.text(name) == text)
    }
  }

  private static let longer = String(repeating: long, count: 4)
  private static let long = String(repeating: "Too many requests from your address. ", count: 80)

  /// Sources become short, and a page may have any ending.
  @Test func anEarlierTextMayBecomeShort() throws {
    for (name, body, type) in [
      ("a.ts", "export * from './b'", "text/plain"),
      ("a.cfm", Self.page + Self.long + Self.long, "text/html"), ("a.db", "$TTL", "text/plain"),
      ("a.raw", Self.error, "text/plain"), ("a.img", Self.error, "text/plain"),
    ] {
      let world = world()
      add(world, name, listing: "1")
      world.server.answer(World.host + name, answer(String(repeating: "long ", count: 9000).bytes, type))
      #expect(try world.run().isInSync)
      add(world, name, listing: "2")
      world.server.answer(World.host + name, answer(body.bytes, type))
      #expect(try world.run().isInSync, "\(name)")
    }
  }

  /// Where the feed counted far more bytes, a page or an error is told by its first bytes, whatever the server calls it.
  @Test(arguments: [nil, "application/octet-stream", "text/html"])
  func aPageFarBelowTheLengthOfTheFeedIsNoFile(_ type: String?) throws {
    let binary = "application/octet-stream"
    for (name, declared, body) in [
      ("a.dat", binary, Self.page), ("a.dat", binary, "{\"error\":\"expired\"}"),
      ("a.csv", "text/csv", Self.page),
      ("a.csv", "text/csv", "{\"error\":\"expired\"}"), ("a.txt", "text/plain", Self.page),
      ("a.stl", "model/stl", "{\"error\":\"expired\"}"),
    ] {
      let world = world()
      add(world, name, ContentHint(mediaType: declared.bytes, length: 51_200_000))
      world.server.answer(World.host + name, answer(body.bytes, type))
      let problems = try world.run().problems
      #expect(
        problems.map(\.code) == ["content-mismatch"] && world.files.isEmpty, "\(name) \(body) \(problems)")
    }
    // An NZB, or a page of any ending, has the length of what it leads to.
    for (name, declared, body) in [
      ("a.nzb", "application/x-nzb", "<?xml version=\"1.0\"?><nzb/>"), ("a.html", "text/html", Self.page),
      ("a.json", "application/json", "{\"a\":1}"), ("a.txt", "text/plain", "a short text"),
    ] {
      let world = world()
      add(world, name, ContentHint(mediaType: declared.bytes, length: 51_200_000))
      world.server.answer(World.host + name, answer(body.bytes, "text/html" == declared ? declared : nil))
      #expect(try world.run().isInSync, "\(name)")
    }
  }

  /// Signatures and keys are small, and errors are smaller. A text by its name is no page.
  @Test func anEarlierKeyOrTextOutlivesAnError() throws {
    let json = "{\"message\":\"rate limit\"}".bytes
    for (name, before, body, type) in [
      ("x.tar.gz.sig", Self.blob, [], nil), ("x.tar.gz.sig", Self.blob, json, "application/json"),
      ("keyring.gpg", Self.blob, json, "application/json"), ("KEYS", Self.blob, [], nil),
      ("x.yaml", Self.blob, json, "application/json"), ("KEYS", "a key".bytes, Self.page.bytes, "text/html"),
      ("x.pem", "a key".bytes, Self.page.bytes, "text/html"),
      ("notes.txt", "a text".bytes, Self.page.bytes, "text/html"),
    ] as [(String, [UInt8], [UInt8], String?)] {
      let world = world()
      add(world, name, listing: "1")
      world.server.answer(World.host + name, answer(before, nil))
      #expect(try world.run().isInSync, "\(name)")
      add(world, name, listing: "2")
      world.server.answer(World.host + name, answer(body, type))
      let problems = try world.run().problems
      #expect(problems.map(\.code) == ["content-mismatch"], "\(name) \(problems)")
      #expect(world.files[name]?.utf8.count == String(decoding: before, as: UTF8.self).utf8.count, "\(name)")
    }
  }

  /// What somebody else wrote in its place tells nothing of the file.
  @Test func aTextReplacesTheEditOfAUser() throws {
    let world = world()
    add(world, "noend", listing: "1")
    world.server.answer(World.host + "noend", answer(Self.error.bytes, "text/plain"))
    #expect(try world.run().isInSync)
    world.folder.write("noend".path, Self.blob)
    #expect(try world.run().isInSync)
    #expect(world.text("noend") == Self.error)
  }

  /// Servers look at each part of a name.
  @Test func aLabelThatAPartOfTheNameExplainsIsTheFilesOwn() throws {
    let zeros = [UInt8](repeating: 0, count: 3000)
    for (name, sent, coding, body) in [
      ("a.tar.gz.asc", nil, "x-gzip", "-----BEGIN PGP SIGNATURE-----\n".bytes),
      ("a.tar.gz.sig", nil, "x-gzip", [0x89, 1, 0x33] + zeros),
      ("a.tar.gz.sha256", nil, "gzip", "\(String(repeating: "ab", count: 32))  a.tar.gz\n".bytes),
      ("a.tar.gz.txt", nil, "x-gzip", "hi\n".bytes), ("initrd.gz.1", nil, "x-gzip", Self.gzip + zeros),
      ("a.tar.bz2.bak", nil, "x-bzip2", "BZh91AY&SY".bytes + zeros),
      ("a.gz.part1", nil, "gzip", Self.gzip + zeros),
      ("a.tar.lz", nil, "lzip", "LZIP\u{1}".bytes + zeros),
      ("a.lz4", nil, "lz4", [4, 0x22, 0x4D, 0x18] + zeros), ("a.crate", nil, "gzip", Self.gzip + zeros),
      ("a.apk", nil, "gzip", Self.gzip + zeros), ("a.ipk", nil, "gzip", Self.gzip + zeros),
      ("a.vcf.bgz", nil, "gzip", Self.gzip + zeros), ("a.bam", nil, "gzip", Self.gzip + zeros),
      ("a.emz", nil, "gzip", Self.gzip + zeros), ("a.taz", nil, "x-gzip", Self.gzip + zeros),
      ("t.asc", "a.tar.gz.asc", "x-gzip", "-----BEGIN PGP SIGNATURE-----\n".bytes),
      ("a.tar.gz.torrent", nil, "x-gzip", "d8:announce".bytes + zeros),
      ("a.tar.gz.zsync", nil, "x-gzip", "zsync: 0.6.2\n".bytes + zeros),
      ("a.tar.gz.html", nil, "x-gzip", "<html>notes".bytes),
      ("t.bin", "a.tar.gz.001", "x-gzip", Self.gzip + zeros),
      ("t.bin", "a.gz.1", "x-gzip", Self.gzip + zeros),
      ("initrd.gz.img", nil, "x-gzip", Self.gzip + zeros), ("fw.gz.bin", nil, "x-gzip", Self.gzip + zeros),
      ("kernel.gz.efi", nil, "x-gzip", Self.gzip + zeros), ("x.gz.raw", nil, "x-gzip", Self.gzip + zeros),
      ("map.gz.nc", nil, "x-gzip", Self.gzip + zeros), ("x.gz.pkg", nil, "x-gzip", Self.gzip + zeros),
      ("t.img", "initrd.gz.img", "x-gzip", Self.gzip + zeros),
      ("t.bin", "fw.gz.bin", "x-gzip", Self.gzip + zeros), ("t.nc", "map.gz.nc", "x-gzip", Self.gzip + zeros),
    ] as [(String, String?, String, [UInt8])] {
      let world = world()
      add(world, name, sent: sent, listing: sent == nil ? "1" : "enclosure")
      world.server.answer(World.host + (sent ?? name), answer(body, nil, coding: coding))
      let report = try world.run()
      #expect(report.isInSync, "\(name) \(report.problems)")
      #expect(world.server.requests.map(\.encoding) == [.taken], "\(name)")
    }
  }

  /// The server compressed them on the way.
  @Test func whatIsNoCompressedFileIsNotCompressed() throws {
    let body = [UInt8](repeating: 7, count: 3000)
    for (name, coding, begin) in [
      ("a.tar.gz.asc", "gzip", Self.gzip), ("a.tar.gz.sha256", "gzip", Self.gzip),
      ("a.tar.gz.txt", "x-gzip", Self.gzip), ("a.tar.gz.old", "br", [0x1B, 0x9F]),
      ("a.tar.gz.html", "gzip", Self.gzip), ("a.tar.gz.json", "gzip", Self.gzip),
      ("a.tar.gz.torrent", "gzip", Self.gzip), ("a.tar.gz.metalink", "gzip", Self.gzip),
      ("a.tar.gz.meta4", "gzip", Self.gzip), ("a.tar.gz.zsync", "gzip", Self.gzip),
      ("a.tar.gz.pem", "gzip", Self.gzip), ("a.gz.pdf", "gzip", Self.gzip),
    ] as [(String, String, [UInt8])] {
      let world = world()
      add(world, name, listing: "1")
      world.server.answer(World.host + name, answer(begin + body, nil, coding: coding))
      #expect(try world.run().problems.map(\.code) == ["content-mismatch"], "\(name)")
    }
  }

  /// Tarn's own ending tells nothing, and what the author of the feed counted is the file.
  @Test func anExactLengthVouchesForALabel() throws {
    let body = Self.gzip + [UInt8](repeating: 7, count: 3000)
    for (name, sent, length, isTaken) in [
      ("t.bin", "a.tar.gz.001", 3004, true), ("t.pdf", "a.gz.pdf", 3004, true),
      ("t.mp3", "a.gz.mp3", 2900, false), ("t.bin", "a.tar.gz.metalink", nil, false),
      ("t.bin", "a.tar.gz.sigstore", nil, false),
    ] as [(String, String, UInt64?, Bool)] {
      let world = world()
      add(world, name, sent: sent, ContentHint(length: length))
      world.server.answer(World.host + sent, answer(body, nil, coding: "x-gzip"))
      let problems = try world.run().problems
      #expect(problems.map(\.code) == (isTaken ? [] : ["content-mismatch"]), "\(sent) \(problems)")
    }
  }

  /// In the middle of a name it is a word.
  @Test(arguments: ["relatorio.br.pdf", "index.br.html"])
  func aFormatWithoutFirstBytesIsToldByTheLastEnding(_ name: String) throws {
    let world = world()
    add(world, name, listing: "1")
    world.server.answer(World.host + name, answer("%PDF-1.4 ".bytes, nil))
    #expect(try world.run().isInSync)
    #expect(world.server.requests.map(\.encoding) == [.refused])
  }

  /// The name at the server tells the label.
  @Test func theRestOfALabelledFileOfAWindowIsTaken() throws {
    let text = "-----BEGIN PGP MESSAGE-----\n" + String(repeating: "0123456789abcde\n", count: 600)
    let world = world()
    world.rushes = true
    world.policy.retries = 1
    add(world, "t.gpg", sent: "dump.sql.gz.gpg")
    let url = World.host + "dump.sql.gz.gpg"
    var whole = FakeAnswer(etag: "\"1\"", body: text.bytes)
    var first = Server.broken(text, after: 2000, etag: "\"1\"")
    (whole.contentEncoding, first.contentEncoding) = ("x-gzip", "x-gzip")
    world.server.answer(url, whole)
    world.server.script(url, [first])
    #expect(try world.run().isInSync)
    #expect(world.text("t.gpg") == text)
    #expect(world.server.requests.map(\.offset) == [0, 2000])
  }

  /// The zone of a country, which is no recording's ending there.
  @Test func aZoneFileIsNoRecording() throws {
    let (zone, sound) = (world(), world())
    add(zone, "example.com.au", listing: "1")
    zone.server.answer(World.host + "example.com.au", answer("$TTL 3600\n".bytes, "text/plain"))
    #expect(try zone.run().isInSync)
    add(sound, "a.au", ContentHint(mediaType: "audio/basic".bytes))
    sound.server.answer(World.host + "a.au", answer(Self.error.bytes, "text/plain"))
    #expect(try sound.run().problems.map(\.code) == ["content-mismatch"])
  }

  /// It begins with any bytes, or with the directory of the archive.
  @Test func theLastPartOfASplitArchiveIsTaken() throws {
    let end = "PK\u{5}\u{6}".bytes + [UInt8](repeating: 0, count: 18)
    let noise = (0..<2000).map { UInt8(truncatingIfNeeded: $0 * 7 + 3) }
    for (body, type) in [
      (Array(noise.prefix(112)) + end, "application/zip"),
      ("PK\u{1}\u{2}".bytes + noise.prefix(67) + end, nil),
      (Array(noise.prefix(1999)) + end, "text/plain"), (Array(noise.prefix(112)) + end, "text/plain"),
    ] as [([UInt8], String?)] {
      let world = world()
      add(world, "s.zip", listing: "1")
      world.server.answer(World.host + "s.zip", answer(body, type))
      let report = try world.run()
      #expect(report.isInSync, "\(body.count) \(report.problems)")
    }
  }

  /// A printer's letters, or the headers of a mail; the first KiB of a linearized document is text.
  @Test func lettersMayPrecedeADocument() throws {
    let document =
      "%PDF-1.5\r\n12 0 obj\r<</Linearized 1>>\r" + String(repeating: "0000000100 00000 n\r\n", count: 90)
    for letters in ["\u{1B}%-12345X@PJL JOB NAME=\"x\"\r\n", "Content-Type: application/pdf\r\n\r\n"] {
      for (listing, type) in [("1", nil), ("enclosure", "application/pdf")] as [(String, String?)] {
        let world = world()
        add(world, "a.pdf", listing: listing, ContentHint(mediaType: type?.bytes))
        world.server.answer(World.host + "a.pdf", answer((letters + document).bytes, "application/pdf"))
        let report = try world.run()
        #expect(report.isInSync, "\(listing) \(report.problems)")
      }
    }
  }
}
