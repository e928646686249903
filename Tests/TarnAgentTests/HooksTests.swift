import Glibc
import Logging
import TarnConfig
import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnAgent

/// The thread of hooks, with programs that fail, hang and do as they are told.
@Suite struct HooksTests {
  private let directory = ScratchDirectory()
  private let text = Locked<[UInt8]>([])

  private func hooks(state: String? = nil, clock: any Clock = SystemClock()) -> Hooks {
    let text = text
    let output = LogOutput(.text) { line in text.withLock { $0 += line } }
    return Hooks(
      directory: state, credentials: nil, log: Logger(output, level: .debug), clock: clock,
      random: SeededRandom(seed: 1))
  }

  private var log: String { String(decoding: text.withLock { $0 }, as: UTF8.self) }

  private func hook(_ name: String, _ script: String, timeout: Int64 = 30, retries: Int = 0) -> HookSettings {
    var hook = HookSettings(name: name, way: .command(["/bin/sh", "-c", script]))
    (hook.timeout, hook.retries) = (timeout, retries)
    return hook
  }

  private func document(_ event: HookEvent = .failing, id: String = "1") -> HookDocument {
    var document = HookDocument(
      id: id, time: Timestamp(nanoseconds: 0), event: event, mirror: "iso", feed: "/f", folder: "/srv/iso",
      run: 4, rid: "r", host: "h")
    document.message = "a 'b' $(c) \"d\""
    document.setText()
    return document
  }

  private func wait(_ what: String, until isTrue: () -> Bool) {
    let isSo = isSoInTime(isTrue)
    #expect(isSo, "\(what): \(log)")
  }

  private func read(_ name: String) -> String? { TextFile.read(directory.file(name), limit: 1 << 20) }

  private func health(_ hooks: Hooks, _ name: String) -> HookStatus? {
    hooks.statuses?.first { $0.name == name }
  }

  @Test func aCommandHasVariablesAndTheDocument() throws {
    let hooks = hooks()
    defer { hooks.end() }
    let script =
      "printf '%s|%s' \"$TARN_TEXT\" \"$TARN_HOOK\" > '\(directory.file("env"))';"
      + "cat > '\(directory.file("in.new"))'; mv '\(directory.file("in.new"))' '\(directory.file("in"))'"
    hooks.set([hook("tell", script)])
    hooks.tell(.failing, of: "iso") { document() }
    wait("it was told") { read("in") != nil }
    #expect(read("env") == "iso: failing: a 'b' $(c) \"d\"|tell")
    #expect(read("in").flatMap { JSONText.value(HookDocument.self, from: $0) } == document())
    wait("all is told") { health(hooks, "tell")?.waiting == 0 }
    #expect(health(hooks, "tell") == HookStatus(name: "tell", state: "good"))
  }

  @Test func aHookThatIsMendedIsNotCalledFailing() {
    let hooks = hooks()
    defer { hooks.end() }
    let (bad, other) = (hook("bad", "exit 1"), hook("other", "exit 1"))
    hooks.set([bad, other])
    hooks.tell(.failing, of: "iso") { document() }
    wait("both failed") {
      ["bad", "other"].allSatisfy { health(hooks, $0)?.state == "failing" && health(hooks, $0)?.waiting == 0 }
    }
    hooks.set([hook("bad", "exit 0"), other])
    #expect(health(hooks, "bad")?.state != "failing" && health(hooks, "bad")?.dropped == 1)
    #expect(health(hooks, "other")?.state == "failing", "nothing of it has changed")
  }

  @Test func whatNobodyHearsOfIsNotEvenMade() {
    let hooks = hooks()
    defer { hooks.end() }
    var other = hook("tell", "exit 1")
    other.mirrors = ["other"]
    hooks.set([other])
    for event in [HookEvent.failing, .started] {
      hooks.tell(event, of: "iso") {
        Issue.record("nobody hears \(event)")
        return document(event)
      }
    }
    hooks.tell(.started, of: "other") {
      Issue.record("changes alone")
      return document(.started)
    }
  }

  /// One that fails and one that hangs hold up no third, and whoever tells waits for none.
  @Test func aFailureAndAHangAreToldAndHoldUpNobody() {
    // Time passes only where the test says so: nothing is ended before it has begun.
    let clock = ManualClock()
    let hooks = hooks(clock: clock)
    defer { hooks.end() }
    let child = directory.file("child")
    hooks.set([
      hook("bad", "exit 3"),
      hook("slow", "trap '' TERM; (sleep 600) & echo $! >> '\(child)'; wait; sleep 600", timeout: 30),
      hook("none", "true"), hook("good", "echo told >> '\(directory.file("good"))'"),
    ])
    var missing = HookSettings(name: "missing", way: .command(["no-such-program-at-all"]))
    missing.retries = 5
    hooks.set(hooks.state.withLock { Array($0.settings.values) } + [missing])
    for id in ["1", "2"] { hooks.tell(.failing, of: "iso") { document(id: id) } }
    wait("the good one hears both") { read("good") == "told\ntold\n" }
    wait("the bad one is told") { health(hooks, "bad")?.failures == 2 }
    #expect(health(hooks, "bad")?.message == "it ended with status 3" && health(hooks, "bad")?.dropped == 2)
    wait("a program that is not there") { health(hooks, "missing")?.dropped == 2 }
    #expect(health(hooks, "missing")?.message == "no-such-program-at-all is not in $PATH")
    wait("what hangs has begun its own") { read("child")?.contains("\n") == true }
    wait("what hangs is ended") {
      clock.advance(.seconds(1))
      hooks.ring()
      return health(hooks, "slow")?.failures == 2
    }
    #expect(health(hooks, "slow")?.message == "it took longer than its timeout, and was stopped")
    let process = read("child").flatMap { pid_t($0.split(separator: "\n").first ?? "") } ?? -1
    wait("with what it began") { kill(process, 0) != 0 || Self.isZombie(process) }
    #expect(log.contains("warning: hook bad: it ended with status 3; this event is given up"))
  }

  private static func isZombie(_ process: pid_t) -> Bool {
    TextFile.read("/proc/\(process)/stat", limit: 4096)?.contains(") Z ") == true
  }

  @Test func whatFailsIsTriedAgain() {
    let clock = ManualClock()
    let hooks = hooks(clock: clock)
    defer { hooks.end() }
    let count = directory.file("count")
    hooks.set([hook("tell", "echo x >> '\(count)'; test $(wc -l < '\(count)') -ge 2", retries: 3)])
    hooks.tell(.failing, of: "iso") { document() }
    wait("it fails") { log.contains("hook tell: it ended with status 1; trying again in") }
    #expect(read("count") == "x\n")
    clock.advance(.seconds(60))
    hooks.ring()
    wait("it is told in the second attempt") { log.contains("notice: hook tell: told") }
    #expect(read("count") == "x\nx\n" && health(hooks, "tell")?.state == "good")
  }

  /// What an agent could not tell the next one tells; of hooks that are gone nobody hears.
  @Test func whatWaitsOutlivesTheAgent() {
    let place = directory.path
    // Its clock stands still: none is tried again.
    let first = hooks(state: place, clock: ManualClock())
    first.set([hook("tell", "exit 1", retries: 5), hook("gone", "exit 1", retries: 5)])
    first.tell(.failing, of: "iso") { document(id: "a") }
    first.tell(.recovered, of: "iso") { document(.recovered, id: "b") }
    wait("both fail") { health(first, "tell")?.failures == 1 && health(first, "gone")?.failures == 1 }
    first.end()
    #expect(log.contains("4 events for hooks: the next agent tells them"))
    let second = hooks(state: place)
    second.set([hook("tell", "echo $TARN_ID >> '\(directory.file("told"))'")])
    wait("it goes on") { read("told") == "a\nb\n" }
    #expect(log.contains("2 events of hooks that no longer exist: nobody is told"))
    wait("none waits") { health(second, "tell")?.waiting == 0 }
    second.end()
    #expect(TextFile.read(place + "/hooks.json", limit: 1 << 20) == "[]\n")
    let third = hooks(state: place)
    third.set([hook("tell", "echo again >> '\(directory.file("told"))'")])
    third.end()
    #expect(read("told") == "a\nb\n")
  }

  /// The agent's end waits a moment, not for a time-out.
  @Test func theEndOfTheAgentEndsWhatHangs() {
    let hooks = hooks()
    hooks.set([hook("slow", "echo $$ > '\(directory.file("pid"))'; exec sleep 600", timeout: 600)])
    hooks.tell(.failing, of: "iso") { document() }
    wait("it runs") { read("pid")?.hasSuffix("\n") == true }
    let since = Instant.now
    hooks.end()
    #expect(Instant.now.elapsed(since: since) < .seconds(300))
    let process = pid_t(read("pid")?.split(separator: "\n").first ?? "") ?? -1
    #expect(kill(process, 0) != 0 && errno == ESRCH)
    #expect(log.contains("1 event for hooks: the next agent tells them"))
  }
}
