import TarnCore
import TestSupport
import Testing

@testable import TarnFeeds

/// What is no feed: the message says what it looks like, the hint what to do.
@Suite struct UnrecognisedTests {
  private func refusal(_ text: String, url: String = "https://example.org/pub/list") -> FeedFailure? {
    let outcome = parse(text, url: url)
    #expect(outcome.items.isEmpty)
    return outcome.failure
  }

  @Test(arguments: [
    ("<?xml version=\"1.0\"?>\n<opml version=\"2.0\"><body/></opml>", "OPML", "tarn feeds"),
    ("<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"/>", "S3", "checksum list"),
    ("<?xml version=\"1.0\"?><EnumerationResults ContainerName=\"x\"/>", "Azure", "checksum list"),
    ("<D:multistatus xmlns:D=\"DAV:\"/>", "WebDAV", "browser"),
    ("<repomd xmlns=\"http://linux.duke.edu/metadata/repo\"/>", "yum", "mirror list"),
    ("<metadata xmlns=\"http://linux.duke.edu/metadata/common\"/>", "yum", "mirror list"),
    ("<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"/>", "sitemap", "URL list"),
    ("<Error><Code>AccessDenied</Code></Error>", "error message", "password"),
    ("<what><ever/></what>", "its root is 'what'", "address"),
    ("[{\"tag_name\":\"v1\",\"assets\":[]}]", "releases", "SHA256SUMS"),
    ("{\"url\":\"x\",\"tag_name\":\"v1\",\"assets\":[{\"a\":", "releases", "SHA256SUMS"),
    (
      "{\"message\":\"API rate limit exceeded\",\"documentation_url\":\"x\"}", "error message of GitHub",
      "limit"
    ),
    ("[{\"version\":\"go1.22\",\"stable\":true,\"files\":[]}]", "Go", "URLs"),
    ("{\"name\":\"consul\",\"versions\":{}}", "HashiCorp", "URLs"),
    ("{\"conceptrecid\":\"1\",\"files\":[]}", "Zenodo", "URL list"),
    ("{\"status\":\"OK\",\"data\":{}}", "Dataverse", "URL list"),
    ("{\"name\":\"x\",\"resources\":[]}", "Data Package", "URL list"),
    ("{\"files\":[{\"path\":\"a\"}]}", "no manifest", "'manifest'"),
    ("{\"a\":1}", "it has a", "URL list"), ("[]", "JSON", "URL list"),
    ("manifest-version = \"2\"\n[pkg.cargo]\n", "Rust", "URL list"),
    ("#mtree\n./a type=file size=1\n", "mtree", "sha256sum"),
    ("%PDF-1.7\n", "a file itself", "'tarn get' downloads it"),
    ("zsync: 0.6.2\nFilename: a\n", "zsync", "one line"),
    (
      ".:\ntotal 4\n-rw-r--r-- 1 root root 1 Nov 21 04:08 a\n-rw-r--r-- 1 root root 1 Nov 21 04:08 b\n",
      "ls -l", "sha256sum"
    ),
    (
      "./a:\ntotal 4\n-rw-r--r-- 1 root root 1 Nov 21 04:08 b\n\n./c:\ntotal 0\n\n./d:\ntotal 0\n\n./e:\ntotal 0\n",
      "ls -lR", "sha256sum"
    ),
    // Of SHA-256 one group less would be SHA-224.
    (
      "a.iso: CA978112 CA1BBDCA FAC231B3 9A23DC4D A786EFF8\n       B9807785\n", "as gpg prints",
      "digits missing"
    ),
    ("a.iso: 0C C1 75 B9 C0 F1 B6 A8  31 C3 99 E2 69 77 26\n", "as gpg prints", "gpg --print-md"),
    ("a: SHA1 = 86F7 E437 FAA5 A7FC E15D  1DDC B9EA EAEA 3776\n", "as gpg prints", "sha256sum"),
    ("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48b  a.iso\n", "has 63 digits", "cut"),
    (
      "\(String(repeating: "ab", count: 32))  a.iso\r\(String(repeating: "cd", count: 32))  b.iso\r",
      "CR alone",
      "line feeds"
    ),
    ("https://a.example/1\rhttps://a.example/2\r", "CR alone", "line feeds"),
    ("https://a.example/1\rhttps://a.example/2\nhttps://a.example/3\n", "CR alone", "line feeds"),
    ("# list\nhttps://a.example/1\rhttps://a.example/2\n", "CR alone", "line feeds"),
    (
      "\(String(repeating: "ab", count: 20))\tHEAD\n\(String(repeating: "cd", count: 20))\trefs/heads/main\n",
      "Git repository", "URL list"
    ),
    ("0000000 4554 5453 0a31\n0000006\n", "dump", "bytes it shows"),
    ("00000000: 7465 7374 310a                           test1.\n", "dump", "bytes it shows"),
    ("43871     1 a.txt\n12345 17 b.txt\n", "cksum", "sha256sum"),
    ("DIST a.tar.gz 1 BLAKE2B ab SHA512 cd\n", "Gentoo", "URL list"),
    ("Package: a\nVersion: 1\nFilename: pool/a.deb\n", "Debian", "directory index"),
    ("Origin: Debian\nSuite: stable\nDate: today\n", "Debian", "directory index"),
    ("-----BEGIN PGP SIGNATURE-----\n\niQEz\n", "OpenPGP", "list that it signs"),
    ("version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS", "file itself"),
    ("a/b.txt\nc.txt\n", "without addresses", "https://"), ("ftp://a.example/x\n", "ftp", "http"),
    ("stable 20260115\nbeta 20260203\n", "eight hexadecimal digits", ".sfv"),
    ("d8:announce3:abc4:infod4:name1:xee", "torrent", "one line"), ("%PDF-1.7\n", "PDF", "one line"),
    ("GIF89a\u{1}\u{2}", "image", "one line"), ("ID3\u{4}\u{0}", "MP3", "one line"),
    ("PK\u{3}\u{4}\u{0}", "ZIP", "one line"), ("x\u{0}y", "binary", "one line"),
  ])
  func tellsWhatItIs(text: String, what: String, advice: String) throws {
    let failure = try #require(refusal(text))
    #expect(failure.code == "feed-not-recognised")
    #expect(failure.message.contains(what), "\(failure.message)")
    #expect(failure.hint?.contains(advice) == true, "\(failure.hint ?? "")")
    #expect(failure.message.contains("it reads: RSS") == failure.message.contains("it begins with"))
  }

  @Test func aFileIsToldByItsBytes() {
    var iso = [UInt8](repeating: 0, count: 0x9000)
    iso.replaceSubrange(0x8001..<0x8006, with: Array("CD001".utf8))
    var tar = Array("a.txt".utf8) + [UInt8](repeating: 0, count: 507)
    tar.replaceSubrange(257..<262, with: Array("ustar".utf8))
    for (bytes, what) in [
      (iso, "ISO image"), (tar, "tar archive"), ([0xFF, 0xFB, 0x90, 0x64, 0, 0], "MP3"),
      ([0xFD, 0x37, 0x7A, 0x58, 0x5A, 0, 0, 4], "xz"), ([0xFF, 0xD8, 0xFF, 0xE0], "JPEG"),
      (Array("\0\0\0 ftypM4A ".utf8), "MP4"),
    ] {
      let failure = parse(bytes).failure
      #expect(failure?.code == "feed-not-recognised" && failure?.message.contains(what) == true, "\(what)")
    }
    // Text that only begins as a file does.
    for text in ["MZ is no program\n", "BZh\n"] {
      #expect(refusal(text)?.message.contains("it begins with '\(text.dropLast())'") == true)
    }
  }

  @Test func anythingElseIsToldByItsBegin() {
    let known = refusal("\n hello \u{202E}world\n")
    #expect(known?.message.contains(#"it begins with 'hello \xe2\x80\xaeworld'"#) == true)
    #expect(known?.message.contains("it reads: RSS, Atom") == true)
  }

  @Test func aPageTellsItsFeed() {
    let page = """
      <!DOCTYPE html><html><head><title>A show</title><link rel="stylesheet" href="x.css">
      <link rel='alternate home' type='Application/RSS+xml' title="Feed" href="../feed.xml?a=1&amp;b=2">
      <link rel="alternate" type="application/atom+xml" href="second.atom"></head><body>x</body></html>
      """
    let known = refusal(page, url: "https://example.org/show/index.html")
    #expect(known?.code == "feed-is-a-web-page")
    #expect(known?.message.contains("https://example.org/feed.xml?a=1&b=2") == true)
    let local = refusal(
      page.replacing("../feed.xml", with: "file:///etc/passwd"), url: "https://example.org/x/")
    #expect(local?.message.contains("https://example.org/x/second.atom") == true)
  }

  @Test(arguments: [
    "<html><head><title>Index of /pub/</title></head><body><a href=\"a.iso\">a</a></body></html>",
    "<!doctype html><html><body><h1> Directory Listing of x</h1><a href=\"/x\">a</a></body></html>",
    "<html><body><p>Files</p><a href=\"../\">up</a><a href=\"?C=N\">Name</a><a href=\"a.iso\">a</a><a href=\"b/\">b</a>"
      + "<a href=\"/pub/c.iso\">c</a><a href=\"https://www.example.com/\">made by</a></body></html>",
    "<html><body><a href=\"a.iso\">a.iso</a><br><a href=\"b.iso\">b.iso</a></body></html>",
  ])
  func anUnknownIndexNamesTheOption(page: String) {
    let known = refusal(page, url: "https://example.org/pub/")
    #expect(known?.code == "feed-is-a-web-page")
    #expect(known?.message.contains("directory index, of a server that Tarn does not know") == true)
    #expect(known?.hint?.contains("--format links") == true)
  }

  @Test func otherPagesAreToldAsSuch() {
    let login = "<html><body><form><input name=u><input TYPE=\"password\"></form></body></html>"
    #expect(refusal(login)?.message.contains("login page") == true)
    let plain =
      "<html><body><a href=\"/a\">a</a><a href=\"/b\">b</a><a href=\"/c\">c</a><a href=\"d\">d</a></body></html>"
    #expect(refusal(plain)?.message == "this is a web page (a login page or an error page?), not a feed")
    // A single link below it may be that of a file.
    for page in [plain, "<html><body>Get it <a href=\"a.iso\">here</a>.</body></html>"] {
      let page = refusal(page, url: "https://example.org/p/")
      #expect(page?.message.contains("web page") == true && page?.hint?.contains("--format links") == true)
    }
    // A page without a frame, as some servers write them.
    let bare = "<title>x</title><body><pre><a href=\"a\">a</a><a href=\"b\">b</a><a href=\"c\">c</a></pre>"
    #expect(refusal(bare, url: "https://example.org/pub/")?.hint?.contains("--format links") == true)
    let below = parse(login, url: "https://example.org/pub/", place: "sub").failure
    #expect(below?.message.contains("login page") == true)
  }

  /// However much the head of a document is cut.
  @Test func itNeverFails() {
    let texts = [
      "<html><head><link rel=\"alternate\" type=\"application/rss+xml\" href=\"x\"></head>",
      "{\"a\":{\"b\":[1,2,{\"c\":\"\\u00", "[[[[{\"a\"", "<opml version", "a: CA97 CA97\n   CA97",
    ]
    for text in texts {
      let bytes = Array(text.utf8)
      for count in 1...bytes.count {
        #expect(parse(Array(bytes[..<count])).failure?.code.isEmpty == false, "\(text) at \(count)")
      }
    }
  }

  private static let kinds = [
    "\n", " ", "#\n", "a", "a: ", "0", "<", "{\"", "[", "\u{0}", "a\n", "-----BEGIN PGP\n", "x 00\n",
  ]

  /// Longer than what is looked at, of one kind of byte or line.
  @Test(arguments: kinds) func longDocumentsOfOneKindAreRefused(text: String) {
    let many = String(repeating: text, count: 70_000 / text.utf8.count)
    #expect(parse(many).failure?.code.isEmpty == false)
  }

  @Test(.enabled(if: !Sanitizer.isOfThreads, "it takes long under ThreadSanitizer"), arguments: kinds)
  func longDocumentsOfOneKindAreRefusedInASubfolder(text: String) {
    let many = String(repeating: text, count: 70_000 / text.utf8.count)
    #expect(parse(many, place: "sub").failure?.code.isEmpty == false)
  }

  /// Parts of lists in any order: each document is read or refused, and in blocks as at once.
  @Test func anyMixtureIsReadOrRefused() {
    let parts: [String] = [
      ChecksumFormsTests.md5, ChecksumFormsTests.sha1, ChecksumFormsTests.sha256, ChecksumFormsTests.sha512,
      "CA978112 CA1BBDCA", "0C C1 75", "sha256:", "SHA256 (", ") = ", "SIZE (", "# BLAKE2B HASH\n",
      "sha256sum:\n", "a.iso",
      "sub/b.txt", "..", "-", "\\", "\\n", "\"", ": ", ":", "=", " ", "  ", "\t", " *", "\n", "\n", "\n",
      "\r\n", "\r", "\u{0}", ";",
      "#", " 12 bytes", "12", "https://a.example/x", " out=y", "refs/",
      "%%%% HASHDEEP-1.0\n%%%% size,md5,filename\n",
      "## Invoked from: C:\\x\n", "-----BEGIN PGP SIGNED MESSAGE-----\n\n", "-----BEGIN PGP SIGNATURE-----\n",
      "-----END PGP SIGNATURE-----\n", "untrusted comment: x\n", "<a href=\"x\">", "{\"files\":[",
      "Package: x\n",
    ]
    var state: UInt64 = 27
    func next(_ most: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % most
    }
    let names = ["list", "x.iso.sha256", "a.iso", "MD5SUMS", "b2sums", "x.sfv", ""]
    for _ in 0..<(Sanitizer.takesShare ? 200 : 2000) {
      let text = (0...next(24)).map { _ in parts[next(parts.count)] }.joined()
      let url = "https://example.org/pub/\(names[next(names.count)])"
      let outcome = parse(text, url: url)
      #expect(outcome.faults == [], "\(text)")
      #expect(parse(text, url: url, step: 7) == outcome, "\(text)")
    }
  }
}
