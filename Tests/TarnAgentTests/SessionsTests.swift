import Foundation
import Logging
import TarnCore
import TarnRuntime
import TarnTransfer
import TestSupport
import Testing

@testable import TarnAgent
@testable import TarnServer

/// All sessions of an agent.
@Suite final class SessionsTests {
  private let path = FileManager.default.temporaryDirectory.path + "/tarn-sessions-\(UUID().uuidString)"
  private var sessions: Sessions

  init() throws {
    sessions = try Self.made(path)
    sessions.begin()
  }

  deinit {
    sessions.end()
    try? FileManager.default.removeItem(atPath: path)
  }

  private static func made(_ path: String, _ clock: any Clock = SystemClock()) throws -> Sessions {
    let pool = DownloaderPool(budget: TransferBudget(PlaceLimits(total: 8, perHost: 4)))
    return try Sessions(
      directory: path, socket: nil, pool: pool, log: Logger(LogOutput(.text) { _ in }), clock: clock)
  }

  /// Another agent opens the sessions.
  private func reopen() throws {
    sessions.end()
    sessions = try Self.made(path)
    sessions.begin()
  }

  private func failure<Answer>(_ body: () throws -> Answer) -> ControlFailure? {
    do {
      _ = try body()
      return nil
    } catch {
      return error as? ControlFailure
    }
  }

  /// It would be for all tasks, or for none.
  @Test func anOrderForOneTaskNamesIt() throws {
    _ = try sessions.open("s", nil, isUpdate: false)
    var orders = [SessionOrder(.answer), SessionOrder(.first)]
    for change: (inout SessionOrder) -> Void in [
      { $0.url = "http://h/" }, { $0.headers = [] }, { $0.to = "/tmp/" }, { $0.existing = .replace },
    ] {
      var order = SessionOrder(.retry)
      change(&order)
      orders.append(order)
    }
    for order in orders {
      let failure = failure { try sessions.order(order, "s") }
      #expect(failure?.kind == .usage && failure?.message.contains("'task' is missing") == true, "\(order)")
    }
    #expect(try sessions.order(SessionOrder(.retry), "s").message == "nothing had to be changed")
  }

  /// The request is on its way, and nothing is said about where its file goes.
  @Test func anAnswerWithoutADestinationDoesNotStopAPost() throws {
    let listener = try LoopbackListener()
    _ = try sessions.open("s", nil, isUpdate: false)
    var request = TaskRequest(url: "http://127.0.0.1:\(listener.port)/a", to: path + "/a")
    request.method = "POST"
    _ = try sessions.add([request], to: "s")
    listener.acceptOne()
    var order = SessionOrder(.answer, task: 1)
    order.existing = .replace
    #expect(failure { try sessions.order(order, "s") }?.code == "request-at-work")
    #expect(try sessions.tasks(of: "s", in: [.running], after: 0, limit: 9).tasks.count == 1)
    // With one it stops, and nobody knows whether its request was carried out.
    order.to = path + "/b"
    #expect(try sessions.order(order, "s").message.contains("waits for an order to send its request again"))
  }

  /// The answer is not that there is no such session: the next agent has it.
  @Test func whileTheAgentEndsAllIsRefusedForThatReason() throws {
    _ = try sessions.open("s", nil, isUpdate: false)
    sessions.end()
    #expect(failure { try sessions.list() } == .stopping)
    #expect(failure { try sessions.show("s") } == .stopping)
    #expect(failure { try sessions.events(of: "s", after: 0, limit: 1) } == .stopping)
    #expect(failure { try sessions.order(SessionOrder(.forget), "s") } == .stopping)
    try reopen()
    #expect(try sessions.list().sessions.map(\.id) == ["s"])
  }

  /// The obvious reply to a file that is in the way.
  @Test(arguments: [SessionOrder.Verb.answer, .retry]) func whatBecomesOfAFileIsSaidWithoutItsPlace(
    _ verb: SessionOrder.Verb
  ) throws {
    _ = try sessions.open("s", nil, isUpdate: false)
    var request = TaskRequest(url: "http://127.0.0.1:1/a", to: path + "/a")
    request.suspended = true
    _ = try sessions.add([request], to: "s")
    var order = SessionOrder(verb, task: 1)
    order.existing = .replace
    _ = try sessions.order(order, "s")
    let task = try #require(try sessions.tasks(of: "s", in: [], after: 0, limit: 9).tasks.first?.task)
    #expect(task.request.existing == .replace && task.request.to == path + "/a" && task.state == .suspended)
  }

  @Test func anOrderThatChangesNothingSaysSo() throws {
    _ = try sessions.open("s", nil, isUpdate: false)
    var request = TaskRequest(url: "http://127.0.0.1:1/a", to: path + "/a")
    request.suspended = true
    _ = try sessions.add([request], to: "s")
    var urgent = SessionOrder(.prioritize, task: 1)
    urgent.priority = .high
    #expect(try sessions.order(urgent, "s").wasSo == false)
    #expect(try sessions.order(SessionOrder(.cancel, task: 1), "s").wasSo == false)
    urgent.priority = .low
    #expect(try sessions.order(urgent, "s").wasSo)
    // Its events are not acknowledged, and so it stays.
    #expect(try sessions.order(SessionOrder(.close), "s").wasSo == false)
    #expect(try sessions.order(SessionOrder(.close), "s").wasSo)
  }

  /// Who comes with a number of the session before gets all that there is, and acknowledges nothing of it.
  @Test func aSessionThatWasMadeAnewShowsAllItsEvents() throws {
    _ = try sessions.open("s", nil, isUpdate: false)
    var request = TaskRequest(url: "http://127.0.0.1:1/a", to: path + "/a")
    request.suspended = true
    _ = try sessions.add([request], to: "s")
    _ = try sessions.order(SessionOrder(.cancel, task: 1), "s")
    let all = try sessions.events(of: "s", after: 0, limit: 9).events.map(\.number)
    let last = try #require(all.last)
    #expect(try sessions.events(of: "s", after: last, limit: 9).events.isEmpty)
    #expect(try sessions.events(of: "s", after: last + 1, limit: 9).events.map(\.number) == all)
    #expect(try sessions.events(of: "s", after: .max, limit: 9).events.isEmpty)
    let (page, passed) = try sessions.next(of: "s", after: last + 1, limit: 9)
    #expect(page.events.count == all.count && passed == 0)
    // And acknowledges nothing that it has not seen.
    var order = SessionOrder(.acknowledge)
    order.number = last + 1
    #expect(failure { try sessions.order(order, "s") }?.code == "no-such-event")
    #expect(try sessions.show("s").acknowledged == 0)
    order.number = last
    #expect(try sessions.order(order, "s").wasSo == false && sessions.show("s").acknowledged == last)
    order.number = .max
    #expect(try sessions.order(order, "s").wasSo)
  }

  /// A batch has up to 1,000 lines. Nothing of it is added.
  @Test func aRefusedBatchNamesItsLine() throws {
    _ = try sessions.open("s", nil, isUpdate: false)
    let good = TaskRequest(url: "http://127.0.0.1:1/a", to: path + "/a")
    var (named, bad) = (good, good)
    named.url = "http://me:secret@127.0.0.1:1/a"
    bad.digest = "sha256:12"
    let first = failure { try sessions.add([named, good], to: "s") }
    #expect(first?.code == "url-refused" && first?.message.hasPrefix("line 1: a URL with a name") == true)
    let last = failure { try sessions.add([good, good, bad], to: "s") }
    #expect(last?.code == "digest-refused" && last?.message.hasPrefix("line 3: sha256:12: ") == true)
    // There is no doubt about a single one, which may be no line where it was written.
    let alone = failure { try sessions.add([bad], to: "s") }
    #expect(alone?.message.hasPrefix("sha256:12: ") == true)
    #expect(try sessions.show("s").tasks.isEmpty)
  }

  @Test func aSessionIsForgottenBesideWhoListsIt() throws {
    let isOver = Locked(false)
    let failures = Locked<[String]>([])
    let reader = try WorkerThread.start(name: "reader") { [sessions] in
      while !isOver.withLock({ $0 }) {
        do {
          _ = try sessions.list()
        } catch {
          failures.withLock { $0.append("\(error)") }
        }
      }
    }
    for number in 0..<40 {
      _ = try sessions.open("s\(number)", nil, isUpdate: false)
      #expect(try sessions.order(SessionOrder(.forget), "s\(number)").message.contains("is forgotten"))
    }
    isOver.withLock { $0 = true }
    reader.join()
    #expect(failures.withLock { $0 } == [])
    #expect(try FileManager.default.contentsOfDirectory(atPath: path) == [])
  }

  /// The wake command failed once, and then somebody sets the clock.
  @Test func aClockThatIsSetBackDelaysNoWake() throws {
    let clock = ManualClock(now: 1_700_000_000_000_000_000)
    sessions.end()
    sessions = try Self.made(path, clock)
    sessions.begin()
    var settings = SessionSettings()
    settings.wake = ["/bin/sh", "-c", "exit 3"]
    _ = try sessions.open("s", settings, isUpdate: false)
    var request = TaskRequest(url: "http://127.0.0.1:1/a", to: path + "/a")
    request.suspended = true
    _ = try sessions.add([request], to: "s")
    _ = try sessions.order(SessionOrder(.cancel, task: 1), "s")
    try waitForWakes(1)
    // `tarn status` says so.
    let trouble = try #require(sessions.wakeTroubles().first)
    #expect(trouble.code == "wake-command" && sessions.wakeTroubles().count == 1)
    #expect(trouble.message.hasPrefix("the wake command of session s ran 1 time in vain: "))
    clock.setWall(clock.time.adding(seconds: -86_400).nanoseconds)
    clock.advance(.seconds(5))
    _ = try sessions.order(SessionOrder(.resume), "s")
    try waitForWakes(2)
    var read = SessionOrder(.acknowledge)
    read.number = try sessions.show("s").lastEvent
    _ = try sessions.order(read, "s")
    #expect(sessions.wakeTroubles().isEmpty)
  }

  private func waitForWakes(_ failures: Int, at place: SourceLocation = #_sourceLocation) throws {
    let hasEnded = try isSoInTime { try sessions.show("s").wake?.failures == failures }
    #expect(hasEnded, "the wake command did not end \(failures) times", sourceLocation: place)
  }

  @Test func whatACrashLeavesOfAForgottenSessionGoes() throws {
    _ = try sessions.open("s", nil, isUpdate: false)
    sessions.end()
    try FileManager.default.moveItem(atPath: path + "/s", toPath: path + "/.forgotten-s")
    try reopen()
    #expect(try sessions.list().sessions.isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: path) == [])
  }

  @Test func aSessionThatCannotBeOpenedIsListedAndForgotten() throws {
    _ = try sessions.open("s", nil, isUpdate: false)
    _ = try sessions.open("t", nil, isUpdate: false)
    sessions.end()
    try Data(repeating: 0x5A, count: 8192).write(to: URL(fileURLWithPath: path + "/s/ledger.sqlite"))
    try reopen()
    let listed = try sessions.list().sessions
    #expect(listed.map(\.id) == ["s", "t"] && listed.map { $0.failure == nil } == [false, true])
    #expect(failure { try sessions.show("s") }?.code == "session-failed")
    #expect(try sessions.order(SessionOrder(.forget), "s").message.contains("is forgotten"))
    #expect(failure { try sessions.show("s") }?.code == "no-such-session")
    #expect(try sessions.list().sessions.map(\.id) == ["t"])
    #expect(try sessions.open("s", nil, isUpdate: false).failure == nil)
  }
}

/// A server that takes a connection and says nothing.
private final class LoopbackListener {
  let port: UInt16
  private let descriptor: Int32
  private var connection: Int32 = -1

  init() throws {
    let made = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    descriptor = made
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let bound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(made, $0, length) == 0 && listen(made, 8) == 0 && getsockname(made, $0, &length) == 0
      }
    }
    try #require(bound)
    port = UInt16(bigEndian: address.sin_port)
  }

  deinit {
    close(connection)
    close(descriptor)
  }

  /// Waits until somebody connects.
  func acceptOne() { connection = accept(descriptor, nil, nil) }
}
