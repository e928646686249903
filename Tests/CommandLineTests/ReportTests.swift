import Foundation
import TarnConfig
import TestSupport
import Testing

@testable import tarn

/// `tarn report`: what is in it, and what never is.
@Suite final class ReportTests {
  private let place: LocalPlace

  init() throws {
    place = try LocalPlace()
    try place.publish(["a": "one\n"])
  }

  deinit { place.end() }

  /// All texts of a bundle, and the names of its files.
  private func unpack(_ file: String) throws -> (text: String, names: [String]) {
    try place.makeDirectory("unpacked")
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/tar")
    process.arguments = [
      "-xzf", "\(place.path)/\(file)", "-C", "\(place.path)/unpacked", "--strip-components=1",
    ]
    try process.run()
    process.killWhenLate()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    let names = try FileManager.default.contentsOfDirectory(atPath: place.path + "/unpacked").sorted()
    return (names.compactMap { place.text("unpacked/\($0)") }.joined(separator: "\n"), names)
  }

  private func run(_ words: String...) throws -> TarnBinary.Result {
    try TarnBinary.run(
      words,
      environment: [
        "HOME": place.path + "/home", "STATE_DIRECTORY": place.path + "/state",
        "RUNTIME_DIRECTORY": place.path + "/run", "CONFIGURATION_DIRECTORY": place.path,
        "https_proxy": "http://envuser:hush-environ@127.0.0.1:1",
      ], in: place.url)
  }

  private func secret(_ name: String, _ text: String) throws {
    try place.write(text, name)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: "\(place.path)/\(name)")
  }

  @Test func noSecretLeaves() throws {
    try secret("headers", "Authorization: Bearer hush-bearer\nX-Api-Key: hush-apikey\n")
    try secret("netrc", "machine 127.0.0.1 login hush-login password hush-netrc\n")
    try secret("cookies", "127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\thush-cookie\n")
    try secret("proxy", "http://hush-proxyuser:hush-proxyword@127.0.0.1:1\n")
    try secret("home/.netrc", "machine example.org login hush-homelogin password \"hush-home\"\n")
    try place.write(
      """
      [mirror.m]
      feed = "http://127.0.0.1:1/feed?token=hush-query&sig=hush%2Fescaped#hush-fragment"
      folder = "\(place.path)/m"
      every = "1h"
      header-file = "\(place.path)/headers"
      netrc-file = "\(place.path)/netrc"
      cookies = "\(place.path)/cookies"
      proxy = { file = "\(place.path)/proxy" }
      retries = 0
      [mirror.n]
      feed = "\(place.path)/feed/SHA256SUMS"
      folder = "\(place.path)/n"
      every = "1h"
      netrc = true
      [hook.h]
      command = ["/bin/true", "--token", "hush-argument", "--user", "ann:hush-user"]
      [hook.p]
      ping = "http://127.0.0.1:1/hush-ping/x"

      """, "tarn.toml")
    #expect(try run("sync", "m").status == 66)
    #expect(try run("sync", "n").status == 0)
    let byHand = try run("sync", "--retries", "0", "http://127.0.0.1:1/x?key=hush-byhand", "hand")
    #expect(byHand.status == 66)
    let result = try run("report", "--to", "r.tar.gz")
    #expect(result.status == 0 && result.output.contains("tar -xzf r.tar.gz"), "\(result)")
    let mode = try FileManager.default.attributesOfItem(atPath: place.path + "/r.tar.gz")[.posixPermissions]
    #expect(mode as? Int == 0o600)
    let (text, names) = try unpack("r.tar.gz")
    #expect(
      names == [
        "README.txt", "doctor.txt", "events.jsonl", "journal.txt", "settings-check.txt", "settings-files.txt",
        "settings.toml", "status.json", "status.txt", "unit.txt", "version.txt",
      ])
    for range in text.ranges(of: "hush") {
      Issue.record("a secret: \(text[range.lowerBound...].prefix(40))")
    }
    #expect(!text.contains("envuser"))
    #expect(
      text.contains("[mirror.m]") && text.contains("http://127.0.0.1:1/feed?***"), "\(text.prefix(2000))")
    #expect(text.contains("its record is whole") && text.contains("\"schema\""))
    #expect(try run("report", "--to", "r.tar.gz").status == 64, "never in the place of another file")
  }

  /// Settings with errors may hold what no rule lets them hold.
  @Test func settingsThatAreNotTakenKeepTheirSecretsToo() throws {
    try place.write(
      "[mirror.m]\nfeed = \"https://joe:hush-inline@127.0.0.1:1/x?t=hush-query\"\nfolder = \"/srv/m\"\nevry = 3\n",
      "tarn.toml")
    let result = try run("report", "--offline", "--json")
    #expect(result.status == 0, "\(result)")
    let answer = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
    let (text, _) = try unpack(try #require(answer?["file"] as? String))
    #expect(!text.contains("hush"), "\(text.ranges(of: "hush").map { text[$0.lowerBound...].prefix(30) })")
    #expect(text.contains("evry"))
  }

  @Test(arguments: [
    ("see https://u:p4ss@h/x?a=1&b=2 now", "see https://***@h/x?*** now"),
    ("'https://h/x?t=AA'hush': it is gone", "'https://h/x?***': it is gone"),
    ("('https://h/x?t=AA').", "('https://h/x?***')."),
    ("Authorization: Bearer abcdef", "Authorization: ***"),
    ("\"x-token\": \"abc\", \"n\": 1", "\"x-token\": \"***\", \"n\": 1"),
    ("GET /a?token=abc&n=1", "GET /a?token=***&n=1"), ("Set-Cookie: a=b; Path=/", "Set-Cookie: ***"),
    ("every = \"1h\"  # /etc/tarn/tarn.toml:3:8", "every = \"1h\"  # /etc/tarn/tarn.toml:3:8"),
    ("basic sentences stay", "basic sentences stay"), ("Basic dXNlcjpwYXNz", "Basic ***"),
  ]) func formsOfSecrets(_ text: String, _ clean: String) {
    #expect(Scrubber().clean(text) == clean)
  }

  /// An address at `/tarn` made the word unreadable everywhere.
  @Test func theWordsOfHooksStayElsewhere() {
    var scrubber = Scrubber()
    scrubber.learn(.webhook(.url("http://h:8000/tarn")))
    scrubber.learn(.webhook(.url("http://joe:pw@h/tarn?x")))
    scrubber.learn(.ping(.url("https://h/hang/debian-12-netinst-amd64/IncomingWebhookConnector")))
    scrubber.learn(.command(["/bin/sh", "-c", "notify-send tarn hang", "--name=mirror-of-debian-bookworm"]))
    for text in [
      "tarn: the hook hang of the mirror hangs", "debian-12-netinst-amd64 IncomingWebhookConnector",
      "mirror-of-debian-bookworm notify-send --name=x", "feed = \"http://h:8000/tarn/SHA256SUMS\"",
      "[hook.hang]", "http://h:8000/tarns",
    ] { #expect(scrubber.clean(text) == text) }
    #expect(scrubber.clean("webhook = \"http://h:8000/tarn\"") == "webhook = \"http://h:8000/***\"")
    #expect(scrubber.clean("\"http://joe:pw@h/tarn?x\"") == "\"http://***@h/***?***\"")
    #expect(
      scrubber.clean("ping = 'https://h/hang/debian-12-netinst-amd64/IncomingWebhookConnector'")
        == "ping = 'https://h/***'")
    #expect(
      scrubber.clean("command = [\"/bin/sh\", \"-c\", \"a \\\"b\\\" [c]\"]  # /etc/tarn/tarn.toml:3:11")
        == "command = [\"/bin/sh\", ***]  # /etc/tarn/tarn.toml:3:11")
    let alone = "command = [\"/bin/true\"]  # /x"
    #expect(scrubber.clean(alone) == alone)
    #expect(
      scrubber.clean(alone + ", instead of [\"/bin/x\", \"a\"] from /y")
        == "command = [\"/bin/true\", ***] from /y")
  }

  @Test(arguments: [
    ("https://hooks.slack.com/services/T0000/B0000/x9KqPz3VbTn7LwYcR2mHdJs8", "x9KqPz3VbTn7LwYcR2mHdJs8"),
    ("https://hc-ping.com/5f0c2b9e-7d41-4a3b-9c8e-1f2a3b4c5d6e", "5f0c2b9e-7d41-4a3b-9c8e-1f2a3b4c5d6e"),
    (
      "https://discord.com/api/webhooks/12345/aBcD-eFgH_iJkL9mN0pQrS-tUvWxYz12",
      "aBcD-eFgH_iJkL9mN0pQrS-tUvWxYz12"
    ),
    ("https://api.telegram.org/bot123:ABC/sendMessage", "bot123:ABC"),
    ("https://e.example/bot1:AAHdqTcvCHvGWJxfSeofSAsKPALDsaw/x", "AAHdqTcvCHvGWJxfSeofSAsKPALDsaw"),
    ("https://e.example/x?key=open-sesame", "open-sesame"), ("https://joe:sesame@e.example/x", "sesame"),
  ]) func theTokensOfHooksAreTakenOutEverywhere(_ address: String, _ token: String) {
    for way in [
      HookSettings.Way.webhook(.url(address)), .ping(.url(address)), .command(["/bin/curl", address]),
      .command(["/bin/sh", "-c", "curl -fsS '\(address)' -d x"]),
    ] {
      var scrubber = Scrubber()
      scrubber.learn(way)
      #expect(scrubber.clean("it said \(token), twice") == "it said ***, twice", "\(way)")
      #expect(!scrubber.clean(address).contains(token))
    }
  }

  /// Nobody knows what belongs to a hook in settings that are refused, and just those are sent.
  @Test(arguments: [
    "ping = \"https://h.example/SECRET-a\"", "webhook = 'https://h.example/SECRET-a/b'",
    "webhook = \"\"\"https://h.example/SECRET-a\"\"\"",
    "webhook = \"\"\"\nhttps://h.example/SECRET-a\n\"\"\"",
    "webhok = \"https://h.example/SECRET-a\"", "  \"ping\" = { url = \"https://h.example/SECRET-a\" }",
    "command = [\"/bin/curl\", \"https://h.example/SECRET-a\"]", "command = \"curl -H SECRET-a SECRET-b\"",
    "command = 'curl SECRET-a'", "netrc = \"machine a login b password SECRET-a\"",
    "netrc = \"machine a login b password two SECRET-a\"",
    "password = SECRET-a", "password = \"SECRET-a", "token = \"SECRET-a b\"", "api-key = 'SECRET-a",
    "password= \"SECRET-a", "secret =\"SECRET-a", "command = [\"/bin/x\", \"--token\", \"SECRET-a b",
    "command = [\"/bin/x --token SECRET-a", "command = ['/bin/x', '--token', 'SECRET-a'",
    "command = [\n  \"/bin/x\",\n  \"--token\", \"SECRET-a\"\n",
    "feed = \"https://h.example/list?SECRET-a\"", "feed = \"https://joe:SECRET-a@h.example/list\"",
  ]) func refusedSettingsKeepTheirSecrets(_ line: String) {
    let text = "[hook.a]\n\(line)\nevry = \"1h\"\n"
    var scrubber = Scrubber()
    scrubber.learn(settings: text, areRefused: true)
    let shown = scrubber.clean(text)
    #expect(!shown.contains("SECRET") && shown.contains("***"), "\(shown)")
    #expect(shown.hasSuffix("evry = \"1h\"\n"))
    let told = scrubber.clean("t.toml:2:8: unexpected https://h.example/SECRET-a here, and 2 | \(line)")
    #expect(!told.replacing("https://h.example/SECRET-a here", with: "").contains("SECRET"), "\(told)")
  }

  @Test func theFeedsOfRefusedSettingsStay() {
    let text = "feed = \"https://h.example/debian/dists/\"\nfolder = \"/srv/a\"\n"
    var scrubber = Scrubber()
    scrubber.learn(settings: text, areRefused: true)
    #expect(scrubber.clean(text) == text)
  }

  @Test func aTokenInAnArgumentIsTakenOutEverywhere() {
    var scrubber = Scrubber()
    scrubber.learn(.command(["/bin/x", "--to=5f0c2b9e7d414a3b9c8e", "-t", "x9KqPz3VbTn7LwYcR2mHdJs8"]))
    #expect(scrubber.clean("5f0c2b9e7d414a3b9c8e x9KqPz3VbTn7LwYcR2mHdJs8") == "*** ***")
  }

  @Test func whatIsKnownIsTakenOutEverywhere() {
    var scrubber = Scrubber()
    scrubber.learn(headers: "X-Plain: swordfish\n")
    scrubber.learn(netrc: "machine h\n  login joey password \"two words\"\n")
    scrubber.learn(cookies: "# comment\nh\tTRUE\t/\tFALSE\t0\tsid\tc00kie\n")
    scrubber.learn(address: "http://h/p?a=%2Fslashed&bb")
    #expect(
      scrubber.clean("swordfish joey two words c00kie /slashed %2Fslashed bb") == "*** *** *** *** *** *** bb"
    )
  }
}
