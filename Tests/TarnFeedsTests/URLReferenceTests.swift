import TarnCore
import Testing

@testable import TarnFeeds

@Suite struct URLReferenceTests {
  /// RFC 3986 5.4, less the fragments, which are left out.
  @Test(arguments: [
    ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
    ("/g", "http://a/g"), ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
    (";x", "http://a/b/c/;x"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"),
    ("..", "http://a/b/"), ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"),
    ("../../g", "http://a/g"), ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"),
    ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), ("..g", "http://a/b/c/..g"),
    ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"),
    ("g/../h", "http://a/b/c/h"), ("g;x=1/../y", "http://a/b/c/y"), ("g?y/../x", "http://a/b/c/g?y/../x"),
    ("g#s/../x", "http://a/b/c/g"), ("%2e%2E/x", "http://a/b/c/%2e%2E/x"), ("ü x", "http://a/b/c/%C3%BC%20x"),
  ])
  func resolves(reference: String, expected: String) {
    #expect(URLReference("http://a/b/c/d;p?q").resolve(URLReference(reference)).text == expected)
  }

  @Test func resolvesBelowFiles() {
    #expect(URLReference("file:///srv/list").resolve(URLReference("x/y")).text == "file:///srv/x/y")
    #expect(URLReference("http://host").resolve(URLReference("x")).text == "http://host/x")
  }

  @Test func encodesSegmentsAndDecodesOnce() {
    let raw: [UInt8] = Array("a b/#%?;\u{FC}!$'()*,:@&=+~".utf8) + [0xE9]
    let encoded = Percent.encode(path: raw)
    #expect(String(decoding: encoded, as: UTF8.self) == "a%20b/%23%25%3F;%C3%BC!$'()*,:@&=+~%E9")
    #expect(Percent.decode(encoded) == raw)
    #expect(Percent.decode(Array("%2541%zz%4".utf8)) == Array("%41%zz%4".utf8))
  }

  @Test func ordersOrigins() {
    let one = URLReference("https://Host:443/a")
    #expect(one.isSameOrigin(as: URLReference("HTTPS://host/b")))
    #expect(!one.isSameOrigin(as: URLReference("http://host/b")))
    #expect(!one.isSameOrigin(as: URLReference("https://host:444/b")))
    #expect(one.isSameOrigin(as: URLReference("https://host.:/b")))
    let six = URLReference("http://[::1]:8080/a")
    #expect(six.isSameOrigin(as: URLReference("http://[0:0:0:0:0:0:0:1]:8080/b")))
    #expect(!six.isSameOrigin(as: URLReference("http://[::1]/b")))
    #expect(URLReference("file:/a").isSameOrigin(as: URLReference("file:///b")))
  }

  /// What is called plain comes to itself by the long way, too, and may be fetched from whatever the document's own URL is.
  @Test func plainURLsStayAsTheyAre() {
    let parts = [
      "http://", "https://", "HTTP://", "ftp://", "file://", "http:", "//", "/", ":", "@", "%", "%2e", ".",
      "..", "...", "#", "?",
      "a", "B", "0", "host", "host:80", "[::1]", "~", "ü", " ", "<", "\u{7F}", "\\", "a/b", "./", "/..", "/.",
    ]
    let contexts = ["http://other/x/y?z", "file:///srv/list", ""].map {
      FeedContext(document: FeedDocument(url: $0), hashing: TestHashing())
    }
    var state: UInt64 = 7
    func next(below limit: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % limit
    }
    var plain = 0
    for round in 0..<40_000 {
      var text = round.isMultiple(of: 2) ? "https://" : ""
      for _ in 0...next(below: 6) { text += parts[next(below: parts.count)] }
      guard Array(text.utf8).withUnsafeBufferPointer(URLReference.isPlain) else { continue }
      plain += 1
      for context in contexts {
        let resolved = context.url.resolve(URLReference(text))
        #expect(resolved.text == text && context.isUsable(resolved), "\(text)")
      }
    }
    #expect(plain > 1000)
  }

  @Test(arguments: [
    "http://host", "https://host/", "http://host:8080/a/b.c", "https://[::1]/a", "http://h/a%20b",
    "http://h/...", "http://h/a@b:c",
  ])
  func mostURLsArePlain(_ text: String) {
    #expect(Array(text.utf8).withUnsafeBufferPointer(URLReference.isPlain))
  }
}
