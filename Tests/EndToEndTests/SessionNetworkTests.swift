import Foundation
import Testing

/// What sessions tell servers, and what they take from them: against nginx, over TLS too.
@Suite(
  .serialized,
  .enabled(
    if: Tarn.obstacleWithServer == nil && Program.find("openssl") != nil,
    "\(Tarn.obstacleWithServer ?? "openssl is not installed")"))
struct SessionNetworkTests {
  private final class House: AgentHouse {
    let secure: UInt16
    let keys: TemporaryDirectory
    var out: String { place.path + "/out/" }
    /// More of the agent's environment.
    var variables: [String: String] = [:]

    override var home: [String: String] { super.home.merging(variables) { $1 } }

    init() throws {
      keys = try TemporaryDirectory()
      let (certificate, key) = (keys.path + "/ca.pem", keys.path + "/key.pem")
      let openssl = try #require(Program.find("openssl"))
      let words = [
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
        "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate,
      ]
      try #require(try Program(openssl, words).wait().status == 0)
      secure = try Loopback.freePort()
      try super.init(
        locations: """
          listen 127.0.0.1:\(secure) ssl;
          ssl_certificate \(certificate);
          ssl_certificate_key \(key);
          location /away { return 302 /again; }
          location /again { return 302 /told; }
          location /told { add_header X-Answer "forty two"; return 200 "told"; }
          location /post {
            if ($request_method != POST) { return 405; }
            if ($content_type != "application/json") { return 415; }
            return 200 "$content_length";
          }
          location /cached { if ($http_cache_control = "no-cache") { return 200 "fresh"; } return 200 "old"; }
          location /login { add_header Set-Cookie "id=7; Path=/"; return 200 "in"; }
          location /member { if ($cookie_id != "7") { return 403; } return 200 "member"; }
          location /who { return 200 "$http_authorization|"; }
          location /leave { return 302 https://127.0.0.1:\(secure)/who; }
          location /page { return 404 "no such thing"; }
          """, files: ["a.txt": "hello\n"])
      try settings("")
      try FileManager.default.createDirectory(atPath: out, withIntermediateDirectories: true)
    }

    func secureURL(_ name: String) -> String { "https://127.0.0.1:\(secure)/\(name)" }

    /// The SHA-256 of the server's public key, as a pin.
    func pin() throws -> String {
      let script = """
        openssl x509 -in '\(keys.path)/ca.pem' -pubkey -noout | openssl pkey -pubin -outform der \
        | openssl dgst -sha256 -binary | base64
        """
      let outcome = try Program("/bin/sh", ["-c", script]).wait()
      return "sha256//" + outcome.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    func open(_ settings: String) throws {
      try place.write(settings, to: "settings.json")
      let outcome = try tarn("session", "open", "s", "--settings", "settings.json")
      #expect(outcome.status == 0, "\(outcome)")
    }

    func set(_ settings: String) throws {
      try place.write(settings, to: "settings.json")
      let outcome = try tarn("session", "set", "s", "--settings", "settings.json")
      #expect(outcome.status == 0, "\(outcome)")
    }

    /// Adds a task as a program does.
    func add(_ fields: [String: Any]) throws {
      var fields = fields
      fields["to"] = fields["to"] ?? out
      let body = String(decoding: try JSONSerialization.data(withJSONObject: fields), as: UTF8.self)
      let outcome = try Program(
        "/usr/bin/curl",
        [
          "-sf", "--unix-socket", place.path + "/run/tarn.sock", "--data-binary", body,
          "http://tarn/v1/session/tasks?session=s",
        ]
      ).wait()
      #expect(outcome.status == 0, "\(outcome) \(body)")
    }

    func events() throws -> [[String: Any]] {
      try JSON.documents(try tarn("session", "events", "--json", "s").output)
    }

    func wait() throws {
      try waitUntil("all are done") {
        let session = try JSON.documents(try tarn("session", "list", "--json").output).first
        let list = session?["sessions"] as? [[String: Any]]
        let tasks = list?.first?["tasks"] as? [String: Int] ?? [:]
        return !["queued", "running"].contains { tasks[$0] ?? 0 > 0 }
      }
    }

    func state(_ task: Int = 1) throws -> (state: String, code: String?) {
      let all = try JSON.documents(try tarn("session", "show", "--json", "s").output)
      let record = all.dropFirst().compactMap { $0["task"] as? [String: Any] }.first {
        $0["number"] as? Int == task
      }
      return (record?["state"] as? String ?? "", record?["code"] as? String)
    }

    func text(_ name: String) -> String? { place.text("out/" + name) }
  }

  private let house: House

  init() throws { house = try House() }

  @Test func eventsTellTheWayAndTheAnswer() throws {
    try house.start()
    try house.open("{}")
    try house.add(["url": house.server.url("away")])
    try house.wait()
    let finished = try #require(try house.events().first { $0["code"] as? String == "finished" })
    let response = try #require(finished["response"] as? [String: Any])
    #expect(response["status"] as? Int == 200 && response["url"] as? String == house.server.url("told"))
    #expect(response["redirects"] as? [String] == ["away", "again"].map(house.server.url))
    #expect((response["headers"] as? [String])?.contains("X-Answer: forty two") == true)
    #expect((finished["times"] as? [String: Any])?["total"] is Int && house.text("told") == "told")
  }

  @Test func theBodyOfARefusalIsTold() throws {
    try house.start()
    try house.open("{}")
    try house.add(["url": house.server.url("page"), "group": "g"])
    try house.wait()
    let events = try house.events()
    let failed = try #require(events.first { $0["code"] as? String == "failed" })
    #expect(failed["body"] as? String == "no such thing" && failed["reason"] as? String == "http-404")
    #expect(events.suffix(2).compactMap { $0["code"] as? String } == ["group-delivered", "all-delivered"])
  }

  @Test func aMethodAndABodyAreSent() throws {
    try house.start()
    try house.open("{}")
    try house.add([
      "url": house.server.url("post"), "method": "POST", "body": "{\"wants\":1}",
      "headers": ["Content-Type: application/json"],
    ])
    try house.wait()
    #expect(house.text("post") == "11")
  }

  @Test func cachesAreToldToAsk() throws {
    try house.start()
    try house.open("{}")
    try house.add(["url": house.server.url("cached")])
    try house.add(["url": house.server.url("cached?2"), "to": house.out + "fresh", "ignoreCache": true])
    try house.wait()
    #expect(house.text("cached") == "old" && house.text("fresh") == "fresh")
  }

  /// Off unless the session asks for them, and of this session only.
  @Test func cookiesBelongToASession() throws {
    try house.start()
    try house.open("{\"cookies\":true,\"transfers\":1}")
    try house.add(["url": house.server.url("login")])
    try house.add(["url": house.server.url("member")])
    try house.wait()
    #expect(house.text("member") == "member")
    // Other settings of the network leave them, and no cookies forget them.
    try house.set("{\"cookies\":true,\"transfers\":1,\"limits\":{\"idle\":90}}")
    try house.add(["url": house.server.url("member?2"), "to": house.out + "second"])
    try house.wait()
    #expect(house.text("second") == "member")
    try house.set("{\"transfers\":1}")
    try house.set("{\"cookies\":true,\"transfers\":1}")
    try house.add(["url": house.server.url("member?3"), "to": house.out + "third"])
    try waitUntil("the third is asked for") {
      try house.tarn("session", "events", "s").output.contains("needs-request")
    }
    let other = try house.tarn(
      "get", "--background", "--session", "other", "--to", house.out + "o/", "-p", house.server.url("login"),
      house.server.url("member"))
    #expect(other.status == 0, "\(other)")
    try waitUntil("the other one is asked for") {
      try house.tarn("session", "events", "other").output.contains("needs-request")
    }
    #expect(house.text("o/member") == nil)
  }

  @Test func defaultHeadersGoWithAll() throws {
    try house.start()
    try house.open("{\"headers\":[\"Authorization: Bearer all\"]}")
    try house.add(["url": house.server.url("who")])
    try house.wait()
    #expect(house.text("who") == "Bearer all|")
  }

  /// A secret is read for each task, and goes to its host only.
  @Test func credentialsGoByReference() throws {
    try house.start()
    try house.place.write("user:secret\n", to: "credential")
    let credential = house.place.path + "/credential"
    try house.open(
      "{\"hosts\":[{\"host\":\"127.0.0.1\",\"credential\":\"\(credential)\",\"ca\":\"\(house.keys.path)/ca.pem\"}]}"
    )
    try house.add(["url": house.server.url("who")])
    try house.wait()
    #expect(house.text("who") == "Basic dXNlcjpzZWNyZXQ=|")
    try house.place.write("token\n", to: "credential")
    try house.add(["url": house.server.url("who?2"), "to": house.out + "token"])
    // Another origin is not told, where a redirect leads to it.
    try house.add(["url": house.server.url("leave"), "to": house.out + "left"])
    try house.wait()
    #expect(house.text("token") == "Bearer token|" && house.text("left") == "|")
    // Nothing of it is in the events.
    let all = try house.tarn("session", "events", "--json", "s").output
    #expect(!all.contains("dXNlcjpzZWNyZXQ"))
    try FileManager.default.removeItem(atPath: credential)
    try house.add(["url": house.server.url("who?3"), "to": house.out + "none"])
    try house.wait()
    #expect(try house.state(4) == ("waiting", "credential-not-readable"))
  }

  @Test func aHostIsTrustedByItsOwnAuthority() throws {
    try house.start()
    try house.open("{}")
    try house.add(["url": house.secureURL("told")])
    try house.wait()
    #expect(try house.state() == ("failed", "tls-failed"))
    try house.set("{\"hosts\":[{\"host\":\"127.0.0.1\",\"ca\":\"\(house.keys.path)/ca.pem\"}]}")
    #expect(try house.tarn("retry", "session:s/1").status == 0)
    try house.wait()
    #expect(try house.state() == ("finished", nil) && house.text("told") == "told")
  }

  @Test func aPinnedKeyIsAskedFor() throws {
    try house.start()
    func hosts(_ pin: String) -> String {
      "{\"hosts\":[{\"host\":\"127.0.0.1\",\"ca\":\"\(house.keys.path)/ca.pem\",\"pins\":[\"\(pin)\"]}]}"
    }
    try house.open(hosts("sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="))
    try house.add(["url": house.secureURL("told")])
    try house.wait()
    #expect(try house.state() == ("failed", "tls-failed"))
    try house.set(hosts(try house.pin()))
    #expect(try house.tarn("retry", "session:s/1").status == 0)
    try house.wait()
    #expect(try house.state() == ("finished", nil))
  }

  /// A server that is silent is asked again.
  @Test func silenceIsNotWaitedForForEver() throws {
    let silent = try SilentServer()
    try house.start()
    try house.open("{\"limits\":{\"idle\":1}}")
    try house.add(["url": "http://127.0.0.1:\(silent.port)/a"])
    try waitUntil("it waits") { try house.state().state == "waiting" }
    #expect(try ["too-slow", "timed-out"].contains(house.state().code ?? ""))
  }

  @Test func aQuotaOfTasksHolds() throws {
    try house.start()
    try house.open("{\"quota\":{\"tasks\":2}}")
    let silent = try SilentServer()
    for number in 0..<2 { try house.add(["url": "http://127.0.0.1:\(silent.port)/\(number)"]) }
    let refused = try house.tarn("get", "--background", "--session", "s", house.server.url("a.txt"))
    #expect(refused.status != 0 && refused.errors.contains("may have 2 tasks"), "\(refused)")
    #expect(try house.tarn("cancel", "session:s").status == 0)
    try waitUntil("both are cancelled") { try house.state(2).state == "cancelled" }
    let taken = try house.tarn(
      "get", "--background", "--session", "s", "--to", house.out, house.server.url("a.txt"))
    #expect(taken.status == 0, "\(taken)")
  }

  @Test func settingsThatAreNoneAreRefused() throws {
    try house.start()
    for settings in [
      "{\"rules\":[{\"then\":\"place\"}]}", "{\"hosts\":[{\"host\":\"h\",\"pins\":[\"x\"]}]}",
      "{\"limits\":{\"idle\":0}}", "{\"rules\":[{\"when\":1}]}",
    ] {
      try house.place.write(settings, to: "settings.json")
      let outcome = try house.tarn("session", "open", "s", "--settings", "settings.json")
      #expect(outcome.status != 0 && outcome.errors.contains("tarn:"), "\(settings): \(outcome)")
    }
  }

  // MARK: Telling people

  private func script(_ name: String, _ text: String) throws -> String {
    let file = try house.place.write("#!/bin/sh\n" + text + "\n", to: name)
    chmod(file.path, 0o755)
    return file.path
  }

  @Test func aHookAndTheDesktopHearOfTheEnd() throws {
    let hook = try script(
      "hook.sh", "echo \"$TARN_SESSION $TARN_FINISHED $TARN_FAILED\" >> '\(house.place.path)/hooked'")
    _ = try script("bin/notify-send", "echo \"$@\" >> '\(house.place.path)/notified'")
    house.variables["PATH"] = house.place.path + "/bin:/usr/bin:/bin"
    try house.start()
    try house.open("{\"hook\":[\"\(hook)\"],\"notify\":true}")
    // In one transaction: they are done together.
    let handed = try house.tarn(
      "get", "--background", "--session", "s", "--to", house.out, house.server.url("told"),
      house.server.url("page"))
    #expect(handed.status == 0, "\(handed)")
    try waitUntil("the hook was told of both") { house.place.text("hooked")?.hasSuffix("\n") == true }
    #expect(house.place.text("hooked") == "s 1 1\n")
    try waitUntil("the desktop was told") { house.place.text("notified")?.hasSuffix("\n") == true }
    #expect(house.place.text("notified")?.contains("Session s is done") == true)
  }

  /// Where a manager of the user's runs, it runs the command, free of the agent's limits.
  @Test func aProgramIsWokenAsAUnit() throws {
    let wake = try script("wake.sh", "echo \"$TARN_SESSION $TARN_REASON\" >> '\(house.place.path)/woken'")
    _ = try script(
      "bin/systemd-run",
      """
      echo "$@" >> '\(house.place.path)/units'
      while [ "$1" != "--" ]; do
        case "$1" in --setenv=*) export "${1#--setenv=}";; esac
        shift
      done
      shift
      exec "$@"
      """)
    try house.place.write("", to: "runtime/systemd/private")
    house.variables = [
      "PATH": house.place.path + "/bin:/usr/bin:/bin", "XDG_RUNTIME_DIR": house.place.path + "/runtime",
    ]
    try house.start()
    try house.open("{\"wake\":[\"\(wake)\",\"word\"]}")
    try house.add(["url": house.server.url("told")])
    try waitUntil("it was woken") { house.place.text("woken")?.hasSuffix("\n") == true }
    #expect(house.place.text("woken")?.hasPrefix("s finished") == true)
    let unit = try #require(house.place.text("units")?.split(separator: "\n").first)
    #expect(unit.hasPrefix("--user --collect") && unit.contains("--unit=tarn-wake-s "), "\(unit)")
    #expect(unit.hasSuffix("-- \(wake) word"), "\(unit)")
    _ = try house.tarn("session", "ack", "s", "\(Int64.max)")
  }

  /// What it started lives on, and has its descriptors.
  @Test func aWakeCommandMayLeaveAProgramBehind() throws {
    let wake = try script(
      "wake.sh",
      "sleep 600 & echo $! >> '\(house.place.path)/left'; echo begun >> '\(house.place.path)/woken'")
    try house.start()
    try house.open("{\"wake\":[\"\(wake)\"]}")
    defer {
      for line in house.place.text("left")?.split(separator: "\n") ?? [] { kill(pid_t(line) ?? 0, SIGKILL) }
    }
    try house.add(["url": house.server.url("told")])
    try waitUntil("it is woken twice") { house.place.text("woken") == "begun\nbegun\n" }
    #expect(try !house.tarn("session", "list").output.contains("it runs still"))
    _ = try house.tarn("session", "ack", "s", "\(Int64.max)")
  }

  /// The next agent does not run it beside the one that runs still.
  @Test func aWakeCommandNeverRunsTwiceAtOnce() throws {
    let wake = try script(
      "wake.sh",
      "echo begun >> '\(house.place.path)/woken'; while [ ! -e '\(house.place.path)/go' ]; do sleep 0.05; done"
    )
    let first = try house.start()
    try house.open("{\"wake\":[\"\(wake)\"]}")
    try house.add(["url": house.server.url("told")])
    try waitUntil("it was woken") { house.place.text("woken")?.hasSuffix("\n") == true }
    first.signal(SIGKILL)
    _ = try first.wait()
    try house.start()
    try waitUntil("the next one has tried") {
      try house.tarn("session", "list").output.contains("it runs still")
    }
    #expect(house.place.text("woken") == "begun\n")
    try house.place.write("", to: "go")
    try waitUntil("it is woken again") { house.place.text("woken")?.split(separator: "\n").count ?? 0 > 1 }
    _ = try house.tarn("session", "ack", "s", "\(Int64.max)")
  }
}
