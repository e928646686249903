import TarnCore
import Testing

@testable import TarnTransfer

/// Which cookies of a chain's earlier hops go to a later one (RFC 6265).
@Suite struct ChainCookiesTests {
  private let now = Timestamp(nanoseconds: 1_700_000_000_000_000_000)

  private func header(
    _ lines: [String], from first: String = "https://a.example.org/dir/file", to next: String
  ) throws -> String? {
    var cookies = ChainCookies()
    cookies.store(lines, from: try SourceURL(first), now: now)
    return cookies.header(for: try SourceURL(next))
  }

  @Test(arguments: [
    ("https://a.example.org/", true), ("https://a.example.org:8443/x?y", true),
    ("http://a.example.org/", true),
    ("https://b.example.org/", false), ("https://example.org/", false), ("https://x.a.example.org/", false),
  ]) func withoutADomainItIsForItsHost(_ url: String, _ goes: Bool) throws {
    #expect(try header(["k=v; Path=/"], to: url) == (goes ? "k=v" : nil))
  }

  @Test(arguments: [
    ("k=v; Path=/; Domain=example.org", "https://b.example.org/", true),
    ("k=v; Path=/; Domain=.Example.ORG", "https://example.org/", true),
    ("k=v; Path=/; Domain=example.org", "https://badexample.org/", false),
    ("k=v; Path=/; Domain=a.example.org", "https://x.a.example.org/", true),
    // Of somebody else, or of everybody.
    ("k=v; Path=/; Domain=b.example.org", "https://b.example.org/", false),
    ("k=v; Path=/; Domain=org", "https://b.example.org/", false),
    ("k=v; Path=/; Domain=ample.org", "https://ample.org/", false),
  ]) func aDomainIsTheHostsOwnOrAboveIt(_ line: String, _ url: String, _ goes: Bool) throws {
    #expect(try header([line], to: url) == (goes ? "k=v" : nil))
  }

  @Test func anAddressHasNoDomainsAboveIt() throws {
    #expect(try header(["k=v; Domain=0.0.1"], from: "http://127.0.0.1/", to: "http://127.0.0.1/") == nil)
    #expect(
      try header(["k=v; Domain=127.0.0.1"], from: "http://127.0.0.1/", to: "http://127.0.0.1:81/") == "k=v")
  }

  @Test(arguments: [
    ("k=v", "/dir/other", true), ("k=v", "/dir", true), ("k=v", "/dir/a/b", true),
    ("k=v", "/directory", false),
    ("k=v", "/", false), ("k=v; Path=/d", "/d/e", true), ("k=v; Path=/d/", "/d/e", true),
    ("k=v; Path=/d/", "/d", false), ("k=v; Path=/d", "/de", false), ("k=v; path=nonsense", "/dir/x", true),
  ]) func pathsMatchBySegments(_ line: String, _ path: String, _ goes: Bool) throws {
    #expect(try header([line], to: "https://a.example.org\(path)") == (goes ? "k=v" : nil))
  }

  @Test func secureOnesGoOverTLSOnly() throws {
    let secure = ["k=v; Path=/; Secure"]
    #expect(try header(secure, to: "https://a.example.org/") == "k=v")
    #expect(try header(secure, to: "http://a.example.org/") == nil)
    #expect(try header(secure, from: "http://a.example.org/", to: "https://a.example.org/") == nil)
  }

  @Test(
    arguments: [
      (["k=1; Path=/", "k=2; Path=/"], "k=2"), (["k=1; Path=/", "k=; Path=/; Max-Age=0"], nil),
      (["k=1; Path=/", "k=1; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], nil),
      (["k=1; Path=/; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], "k=1"),
      (["a=1; Path=/", "b=2", "c=3; Path=/"], "b=2; a=1; c=3"), (["novalue", "=v", "; Path=/"], nil),
      ([" k = \"v w\" ; Path=/; HttpOnly; SameSite=Lax"], "k=\"v w\""), (["k=a=b; Path=/"], "k=a=b"),
    ] as [([String], String?)]) func namesAreSetAnewAndTakenAway(_ lines: [String], _ sent: String?) throws
  {
    #expect(try header(lines, to: "https://a.example.org/dir/x") == sent)
  }

  @Test func whatOneHopMaySetIsBounded() throws {
    let flood =
      (0..<1000).map { "n\($0)=v; Path=/" } + ["long=\(String(repeating: "x", count: 5000)); Path=/"]
    let sent = try #require(try header(flood, to: "https://a.example.org/"))
    #expect(sent.split(separator: ";").count == ChainCookies.most)
    let heavy = (0..<40).map { "n\($0)=\(String(repeating: "x", count: 4000)); Path=/" }
    #expect(try header(heavy, to: "https://a.example.org/")?.utf8.count ?? 0 <= ChainCookies.longestHeader)
  }
}
