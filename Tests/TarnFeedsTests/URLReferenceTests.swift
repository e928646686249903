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
  }
}
