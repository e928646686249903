import Glibc
import TarnConfig
import TarnCore
import TarnCrypto
import TarnRuntime
import TestSupport
import Testing

@testable import TarnAgent

/// What goes to the network for a hook.
@Suite struct HookRequestTests {
  private let directory = ScratchDirectory()

  private func document(_ event: HookEvent = .failing) -> HookDocument {
    var document = HookDocument(
      id: "d1", time: Timestamp(nanoseconds: 0), event: event, mirror: "iso", feed: "/f", folder: "/srv/iso",
      run: 4, rid: "11111111-2222-4333-8444-555555555555", host: "h")
    document.message = "caf\u{E9} \"x\""
    document.setText()
    return document
  }

  private func secret(_ text: String, mode: mode_t = 0o600) -> SecretPlace {
    let path = directory.file("secret")
    #expect(TextFile.replace(path, with: text) == nil && chmod(path, mode) == 0)
    return .file(path)
  }

  private func message(_ hook: HookSettings) -> String? {
    do throws(HookRequest.Failure) {
      _ = try HookRequest.make(document(), for: hook, credentials: nil)
      return nil
    } catch {
      return error.message
    }
  }

  /// RFC 4231, test cases 1, 2 and 6 (a key longer than a block).
  @Test func theCodeIsThatOfTheRFC() {
    func code(_ key: [UInt8], _ text: String) -> String? {
      HMACSignature.sha256(of: Array(text.utf8), key: key)?.hex
    }
    #expect(
      code(Array(repeating: 0x0B, count: 20), "Hi There")
        == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
    #expect(
      code(Array("Jefe".utf8), "what do ya want for nothing?")
        == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    #expect(
      code(Array(repeating: 0xAA, count: 131), "Test Using Larger Than Block-Size Key - Hash Key First")
        == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
    #expect(code([], "") == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
  }

  @Test func aWebhookIsSigned() throws {
    var hook = HookSettings(name: "chat", way: .webhook(.url("https://example.org/x")))
    hook.secret = secret("Jefe\n")
    hook.timeout = 7
    let request = try #require(try HookRequest.make(document(), for: hook, credentials: nil))
    let body = try #require(request.body)
    let code = HMACSignature.sha256(of: Array(body.utf8), key: Array("Jefe".utf8))?.hex ?? ""
    #expect(request.headers.contains("X-Hub-Signature-256: sha256=\(code)"))
    #expect(
      request.headers.contains("X-Tarn-Event: failing") && request.headers.contains("X-Tarn-Delivery: d1"))
    #expect(request.headers.contains("Content-Type: application/json"))
    #expect(request.method == "POST" && request.totalTimeout == 7 && request.url == "https://example.org/x")
    #expect(request.keepsBody)
    #expect(JSONText.value(HookDocument.self, from: body) == document())
    hook.secret = nil
    let plain = try #require(try HookRequest.make(document(), for: hook, credentials: nil))
    #expect(!plain.headers.contains { $0.contains("Signature") })
  }

  @Test(arguments: [
    ("https://hc.example/abc", "/start", "https://hc.example/abc/start?rid=R"),
    ("https://hc.example/abc/", "", "https://hc.example/abc?rid=R"),
    ("https://hc.example/k/slug?create=1", "/fail", "https://hc.example/k/slug/fail?create=1&rid=R"),
    ("https://hc.example/abc?", "/3", "https://hc.example/abc/3?rid=R"),
    ("https://hc.example/abc#x", "", "https://hc.example/abc?rid=R"),
  ]) func aPingKeepsItsQuery(_ url: String, _ suffix: String, _ expected: String) {
    #expect(HookRequest.ping(url, suffix: suffix, rid: "R") == expected)
  }

  @Test func anAddressThatIsASecretIsReadWhenItIsUsed() throws {
    let hook = HookSettings(
      name: "monitor", way: .ping(.secret(secret("https://hc.example/hunter2\nmore\n"))))
    let request = try #require(try HookRequest.make(document(.started), for: hook, credentials: nil))
    #expect(request.url == "https://hc.example/hunter2/start?rid=11111111-2222-4333-8444-555555555555")
    _ = secret("http://other.example/x\n")
    let again = try #require(try HookRequest.make(document(.started), for: hook, credentials: nil))
    #expect(again.url.hasPrefix("http://other.example/x/start"))
  }

  /// What is wrong is told without what stands there.
  @Test func aSecretThatIsNoneIsToldWithoutIt() throws {
    var hook = HookSettings(name: "chat", way: .webhook(.secret(secret("hunter2"))))
    #expect(message(hook) == "the first line of the file of its URL is no http or https URL")
    _ = secret("https://e.example/", mode: 0o644)
    #expect(message(hook)?.contains("others can read it") == true)
    hook.way = .webhook(.secret(.credential("c")))
    #expect(message(hook)?.contains("$CREDENTIALS_DIRECTORY") == true)
    hook.way = .webhook(.url("https://e.example/"))
    hook.secret = secret("\n")
    #expect(message(hook) == "the file of its key is empty")
    hook.secret = nil
    hook.headerFile = secret("A: b\nhunter2\n")
    #expect(message(hook) == "line 2 of its header file is not a 'Name: value' header")
    hook.headerFile = .file(directory.file("nothing"))
    #expect(message(hook)?.hasPrefix("the file of its headers cannot be read") == true)
  }

  @Test func anAnswerIsItsStatus() {
    func result(_ status: Int, _ asked: Int64? = nil) -> HookQueue.Result {
      var head = ResponseHead(status: status, url: "https://e.example/hunter2")
      head.retryAfter = asked
      return HookReceiver.result(.complete(head))
    }
    #expect(result(200) == .delivered && result(204) == .delivered)
    #expect(result(500) == .failed("the answer was HTTP 500", isTransient: true))
    #expect(result(429, 9) == .failed("the answer was HTTP 429", isTransient: true, retryAfter: 9))
    #expect(result(404) == .failed("the answer was HTTP 404", isTransient: false))
    for status in [301, 302, 303] {
      let why = "the answer was HTTP \(status), a redirect that drops the event: give the final URL"
      #expect(result(status) == .failed(why, isTransient: false))
    }
  }

  @Test func aUUIDIsOneOfVersionFour() {
    let random = SeededRandom(seed: 7)
    let names = (0..<100).map { _ in random.uuid() }
    #expect(Set(names).count == 100)
    for name in names {
      #expect(
        name.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil)
    }
  }
}
