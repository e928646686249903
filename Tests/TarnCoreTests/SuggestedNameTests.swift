import TarnCore
import Testing

/// What servers suggest as a name (RFC 6266), and what becomes of it.
@Suite struct SuggestedNameTests {
  @Test(arguments: [
    ("attachment; filename=\"a b.txt\"", "a b.txt"),
    ("attachment; filename=plain.iso; size=3", "plain.iso"),
    ("inline; FILENAME = \"x.bin\"", "x.bin"),
    ("attachment; filename=\"old.txt\"; filename*=UTF-8''na%C3%AFve.txt", "naïve.txt"),
    ("attachment; filename*=iso-8859-1'en'%A3.txt", "£.txt"),
    ("attachment; filename=\"say \\\"hi\\\".txt\"", "say \"hi\".txt"),
    ("attachment; filename=\"../../etc/passwd\"", "passwd"),
    ("attachment; filename=\"C:\\\\dir\\\\file.txt\"", "file.txt"),
    ("attachment; filename=\"..\"", "last.bin"), ("attachment; filename=\"\"", "last.bin"),
    ("attachment; filename=\".hidden\"", "hidden"), ("attachment", "last.bin"),
    ("attachment; filename=\"tab\u{9}and\u{1b}[31mred.txt\"", "taband[31mred.txt"),
    ("attachment; filename*=UTF-8''%FF%FE; filename=ok.txt", "ok.txt"),
  ]) func whatTheServerSays(disposition: String, name: String) {
    #expect(SuggestedName.name(disposition: disposition, url: "https://h/dir/last.bin?x=/y") == name)
  }

  @Test(arguments: [
    ("https://h/dir/a%20b.iso", "a b.iso"), ("https://h/dir/", "unnamed"), ("https://h", "unnamed"),
    ("https://h/a/..", "unnamed"), ("https://h/a%2Fb", "b"), ("https://h/x.tar.gz?name=y#z", "x.tar.gz"),
    // A sign is no hexadecimal digit.
    ("https://h/a%+4b", "a%+4b"),
  ]) func elseTheLastPartOfTheURL(url: String, name: String) {
    #expect(SuggestedName.name(disposition: nil, url: url) == name)
  }

  @Test func aLongNameKeepsItsEnding() {
    let long = String(repeating: "é", count: 300) + ".tar"
    let name = SuggestedName.name(disposition: "attachment; filename=\"\(long)\"", url: "https://h/")
    #expect(name.utf8.count <= 200 && name.hasSuffix("é.tar"))
    #expect(SuggestedName.numbered(name, 2).utf8.count <= 200)
  }

  @Test func aNumberGoesBeforeTheEnding() {
    #expect(SuggestedName.numbered("a.txt", 1) == "a (1).txt")
    #expect(SuggestedName.numbered("README", 12) == "README (12)")
    #expect(SuggestedName.numbered("release-1.tar.xz", 1) == "release-1 (1).tar.xz")
    #expect(SuggestedName.numbered(".tar.xz", 1) == ".tar (1).xz")
  }

  @Test(arguments: [
    ("a.txt", 1), ("README", 12), ("release-1.tar.xz", 3), ("a (1).txt", 2),
  ]) func aNumberIsTakenOffAgain(leaf: String, number: Int) {
    let found = SuggestedName.withoutNumber(SuggestedName.numbered(leaf, number))
    #expect(found?.leaf == leaf && found?.number == number)
  }

  @Test(arguments: [
    "a.txt", "a(1).txt", "a (x).txt", "a (01).txt", "a ().txt", "(1)", "a (0)", "a (1) b.txt",
  ])
  func aNameWithoutANumberHasNone(name: String) { #expect(SuggestedName.withoutNumber(name) == nil) }
}

/// Requests of programs.
@Suite struct TaskRequestTests {
  private func refusal(_ change: (inout TaskRequest) -> Void) -> String? {
    var request = TaskRequest(url: "https://h/a", to: "/tmp/a")
    change(&request)
    do throws(TaskRequest.Refusal) {
      try request.validate()
      return nil
    } catch {
      return error.code
    }
  }

  @Test func whatIsRightIsTaken() {
    #expect(refusal { _ in } == nil)
    #expect(refusal { $0.to = "/tmp/folder/" } == nil)
    #expect(refusal { $0.digest = "sha256:" + String(repeating: "ab", count: 32) } == nil)
  }

  @Test(arguments: [
    "ftp://h/a", "file:///etc/passwd", "https://h/a b", "https://h/ä", "a", "https://user:secret@h/a",
  ])
  func otherURLsAreRefused(url: String) { #expect(refusal { $0.url = url } == "url-refused") }

  @Test(arguments: ["relative", "", "/a/../b", "/a/./b", "/a/\0b"])
  func otherDestinationsAreRefused(to: String) { #expect(refusal { $0.to = to } == "destination-refused") }

  @Test func otherDigestsAndLongTextsAreRefused() {
    #expect(refusal { $0.digest = "sha256:12" } == "digest-refused")
    #expect(refusal { $0.digest = "blake3:12" } == "digest-refused")
    #expect(refusal { $0.userInfo = String(repeating: "x", count: 4097) } == "text-too-long")
  }

  @Test(arguments: ["nocolon", ": x", "A b: c", "A: b\r\nX: c", "A: b\0"])
  func otherHeaderLinesAreRefused(line: String) {
    #expect(refusal { $0.headers = ["Accept: */*", line] } == "header-refused")
    var settings = SessionSettings()
    settings.headers = [line]
    #expect(throws: TaskRequest.Refusal.self) { try settings.validate() }
  }

  /// Tarn asks for parts, and whether a file has changed; an answer to other conditions would be misread.
  @Test(arguments: ["Range: bytes=0-9", "if-none-match: \"1\"", "If-Modified-Since: x", "IF-RANGE: x"])
  func headersOfTarnsOwnAreRefused(line: String) {
    #expect(refusal { $0.headers = [line] } == "header-refused")
    #expect(refusal { ($0.headers, $0.method) = ([line], "PUT") } == nil)
    var settings = SessionSettings()
    settings.headers = [line]
    #expect(throws: TaskRequest.Refusal.self) { try settings.validate() }
  }

  @Test(arguments: [["/bin/a", "b\0c"], ["relative"], []])
  func otherCommandsAreRefused(command: [String]) {
    var settings = SessionSettings()
    settings.wake = command
    #expect(throws: TaskRequest.Refusal.self) { try settings.validate() }
  }

  @Test func methodsRulesAndLimitsAreChecked() {
    #expect(refusal { $0.method = "POST" } == nil && refusal { $0.method = "post" } == "method-refused")
    #expect(refusal { $0.body = "x" } == "body-refused")
    #expect(
      refusal { ($0.method, $0.body) = ("PUT", String(repeating: "x", count: 65_537)) } == "body-refused")
    #expect(refusal { ($0.method, $0.rules) = ("POST", [ResponseRule(.hold)]) } == "rule-refused")
    #expect(refusal { $0.rules = [ResponseRule(.place)] } == "rule-refused")
    #expect(refusal { $0.limits = TaskLimits(whole: 0) } == "limits-refused")
    #expect(refusal { $0.resuming = .init(file: "part") } == "resuming-refused")
    #expect(refusal { $0.resuming = .init(file: "/a/part") } == "resuming-refused")
  }

  private func refusal(etag: String? = nil, lastModified: String? = nil) -> String? {
    var request = TaskRequest(url: "http://h/a", to: "/a")
    var resuming = TaskRequest.Resuming(file: "/a/part")
    (resuming.etag, resuming.lastModified) = (etag, lastModified)
    request.resuming = resuming
    do throws(TaskRequest.Refusal) {
      try request.validate()
      return nil
    } catch {
      return error.code
    }
  }

  /// RFC 9110 8.8.3: a weak ETag does not tell two files apart byte by byte.
  @Test(arguments: ["W/\"1\"", "1", "\"1", "1\"", "\"", "", "\"a\"\r\nX: 1", "\"a\"b\"", "\"a b\""])
  func whatIsNoStrongETagProvesNothing(_ etag: String) {
    #expect(refusal(etag: etag) == "resuming-refused")
    #expect(refusal(etag: etag, lastModified: "Wed, 25 Nov 2026 10:00:00 GMT") == "resuming-refused")
  }

  @Test(arguments: ["\"1\"", "\"\"", "\"a-b/c\"", "\"W/\"", "\"ü\""]) func aStrongETagIsAProof(_ etag: String)
  {
    #expect(refusal(etag: etag) == nil)
  }

  @Test(arguments: [
    ("Wed, 25 Nov 2026 10:00:00 GMT", true), ("Wednesday, 25-Nov-26 10:00:00 GMT", true),
    ("Wed Nov 25 10:00:00 2026", true), ("Wed, 25 Nov 2026 6:43:24 GMT", true),
    ("Wed, 25 Nov 2026 99:99:99 GMT", false), ("Wed, 25 Nov 2026 10:00 GMT", false), ("abc", false),
    ("", false),
    ("2026-11-25T10:00:00Z", false),
    ("Wed, 25 Nov 2026 10:00:00 GMT\r\nX: 1", false),
  ]) func aDateIsAsTheServerSentIt(_ date: String, isGood: Bool) {
    #expect(refusal(lastModified: date) == (isGood ? nil : "resuming-refused"))
  }

  @Test(arguments: [
    ("audio/mpeg", true), ("AUDIO/*", true), ("application/vnd.a+xml", true), ("*/*", false),
    ("audio", false),
    ("audio/", false), ("audio/x; q=1", false), ("", false), ("/x", false), ("a/b/c", false), ("a/*b", false),
  ]) func aRulesTypeCanMatch(_ type: String, isGood: Bool) {
    var rule = ResponseRule(.cancel)
    rule.types = [type]
    do throws(TaskRequest.Refusal) {
      try rule.validate()
      #expect(isGood)
    } catch {
      #expect(!isGood && error.code == "rule-refused")
    }
  }

  @Test func aRuleThatNeverMatchesIsRefused() {
    var (types, status) = (ResponseRule(.accept), ResponseRule(.accept))
    (types.types, status.status) = ([], [])
    for rule in [types, status] {
      #expect(throws: TaskRequest.Refusal.self) { try rule.validate() }
    }
  }

  @Test(arguments: [("/etc/key", true), ("name", true), ("rel/key", false), ("", false)])
  func aCredentialIsAPathOrAName(_ credential: String, isGood: Bool) {
    var settings = SessionSettings()
    settings.hosts = [HostTrust("h")]
    settings.hosts?[0].credential = credential
    do throws(TaskRequest.Refusal) {
      try settings.validate()
      #expect(isGood)
    } catch {
      #expect(!isGood && error.code == "settings-refused")
    }
  }

  /// By status, media type and size; what is not known fits no size.
  @Test func rulesFitHeads() {
    func head(_ status: Int, _ type: String?, _ length: UInt64?) -> ResponseHead {
      var head = ResponseHead(status: status, url: "https://h/a")
      (head.contentType, head.contentLength) = (type, length)
      return head
    }
    var rule = ResponseRule(.hold)
    #expect(
      rule.fits(head(200, nil, nil)) && rule.fits(head(206, nil, nil)) && !rule.fits(head(404, nil, nil)))
    rule.status = [404]
    #expect(rule.fits(head(404, nil, nil)) && !rule.fits(head(200, nil, nil)))
    (rule.status, rule.types) = (nil, ["video/*", "Audio/MPEG"])
    #expect(rule.fits(head(200, "video/mp4; codecs=x", nil)) && rule.fits(head(200, "audio/mpeg", nil)))
    #expect(!rule.fits(head(200, "videos/x", nil)) && !rule.fits(head(200, nil, nil)))
    (rule.types, rule.leastBytes, rule.mostBytes) = (nil, 10, 20)
    #expect(rule.fits(head(200, nil, 10)) && rule.fits(head(200, nil, 20)))
    #expect(
      !rule.fits(head(200, nil, 9)) && !rule.fits(head(200, nil, 21)) && !rule.fits(head(200, nil, nil)))
    var part = head(206, nil, 1)
    part.contentRange = ContentRange(first: 14, last: 14, total: 15)
    #expect(rule.fits(part))
  }

  @Test(arguments: [
    ("a/b", "absolute"), ("/a/../b", "'..' stands for another folder"), ("/a/./b", "'.' stands for"),
    ("/a\0b", "NUL"), ("/d/" + String(repeating: "x", count: 256), "256 bytes"),
    ("/d/.tarn-x-1.part", "partial files"),
  ]) func aPlaceThatIsNoneHasAReason(path: String, said: String) {
    #expect(TaskPlace(path) == nil && TaskPlace.fault(of: path)?.contains(said) == true)
  }

  @Test func placesAreTakenApart() {
    #expect(TaskPlace("/a/b/c") == TaskPlace(directory: "/a/b", name: "c"))
    #expect(TaskPlace("/a/b/") == TaskPlace(directory: "/a/b", name: nil))
    #expect(TaskPlace("/c") == TaskPlace(directory: "/", name: "c"))
    #expect(TaskPlace(directory: "/", name: nil).path("x") == "/x")
  }
}

/// Which failures wait and which end.
@Suite struct TaskVerdictTests {
  @Test(arguments: [
    "timed-out", "too-slow", "host-not-found", "connection-refused", "connection-lost", "http-408",
    "http-429", "http-500", "http-502", "http-503", "http-504", "http-507", "http-522",
    "no-space", "quota-exceeded", "other-file-system",
  ]) func theseWait(code: String) { #expect(TaskVerdict.judge(code) == .wait) }

  @Test(arguments: [
    "http-404", "http-410", "http-400", "tls-failed", "in-the-way", "permission-denied", "not-there",
  ])
  func theseEnd(code: String) { #expect(TaskVerdict.judge(code) == .end) }

  @Test(arguments: ["http-401", "http-403"]) func theseAsk(code: String) {
    #expect(TaskVerdict.judge(code) == .ask)
  }

  @Test func aWrongDigestEndsTheSecondTime() {
    #expect(TaskVerdict.judge("digest-mismatch", wrongContents: 1) == .wait)
    #expect(TaskVerdict.judge("digest-mismatch", wrongContents: 2) == .end)
  }

  /// Each code is in the table: what it does not name ends.
  @Test func everyCodeOfADownloadIsJudged() {
    for code in DownloadFailure.Code.allCases { _ = TaskVerdict.judge(code.rawValue) }
    #expect(HTTPStatus(name: "http-404")?.code == 404)
    #expect(HTTPStatus(name: "http-x") == nil)
  }
}
