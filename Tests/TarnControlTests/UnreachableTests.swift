import Glibc
import TarnControl
import TarnCore
import TarnRuntime
import TestSupport
import Testing

/// Why no agent answered.
@Suite struct UnreachableTests {
  private let directory = ScratchDirectory()
  private var path: String { directory.file("s") }

  private func client(
    at path: String? = nil, _ change: (inout ControlClient.Limits) -> Void = { _ in }
  ) -> ControlClient {
    var limits = ControlClient.Limits()
    // The machine may be busy: only what a test is about is short.
    (limits.telling, limits.connecting, limits.answering) = (.seconds(120), .seconds(120), .seconds(120))
    change(&limits)
    return ControlClient(socketPath: path ?? self.path, limits: limits)
  }

  private func reason(_ client: ControlClient) -> ControlUnreachable.Reason? {
    let failure = #expect(throws: ControlUnreachable.self) { try client.status() }
    #expect(failure?.socketPath == path)
    return failure?.reason
  }

  @Test func nothingIsThere() { #expect(reason(client()) == .noSocket) }

  @Test(arguments: [108, 200, 5_000])
  func aPathThatNoSocketHas(length: Int) {
    let client = ControlClient(socketPath: "/" + String(repeating: "x", count: length - 1))
    let failure = #expect(throws: ControlUnreachable.self) { try client.status() }
    #expect(failure?.reason == .noSocket)
  }

  @Test func theLongestPathWorks() throws {
    let path = directory.file(String(repeating: "x", count: 107 - directory.path.utf8.count - 1))
    let listener = try RawListener(
      path, answer: "HTTP/1.1 200 OK\r\nServer: tarn/1\r\nContent-Length: 2\r\n\r\n{}")
    let failure = #expect(throws: ControlUnreachable.self) { try client(at: path).status() }
    #expect(failure?.reason == .notATarn)
    withExtendedLifetime(listener) {}
  }

  @Test func nobodyListens() {
    RawListener.leave(path)
    #expect(reason(client()) == .refused)
  }

  @Test func aPlainFileIsThere() {
    close(open(path, O_CREAT | O_WRONLY, 0o600))
    #expect(reason(client()) == .refused)
  }

  @Test(arguments: [
    "SSH-2.0-OpenSSH_9.2\r\n",
    "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 2\r\n\r\n{}",
    "HTTP/1.1 404 Not Found\r\nServer: nginx\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nServer: tarn/1\r\nContent-Length: 2\r\n\r\n[]",
    "HTTP/1.1 400 Bad Request\r\nServer: tarn/1\r\nContent-Length: 2\r\n\r\n{}",
  ])
  func somethingElseAnswers(answer: String) throws {
    let listener = try RawListener(path, answer: answer)
    #expect(reason(client()) == .notATarn)
    let failure = #expect(throws: ControlUnreachable.self) { try client().follow(after: nil) { _ in true } }
    #expect(failure?.reason == .notATarn)
    withExtendedLifetime(listener) {}
  }

  @Test(arguments: ["", "HTTP/1.1 200 OK\r\nServer: tarn/1\r\nContent-Length: 20\r\n\r\n{"])
  func theConnectionEndsBeforeTheAnswerIsWhole(answer: String) throws {
    let listener = try RawListener(path, answer: answer)
    #expect(reason(client()) == .ended)
    withExtendedLifetime(listener) {}
  }

  @Test func nobodyAnswersInTime() throws {
    let listener = try RawListener(path)
    #expect(reason(client { $0.telling = .milliseconds(50) }) == .timedOut)
    // An order may take its time.
    let patient = client {
      $0.telling = .seconds(600)
      $0.answering = .milliseconds(50)
    }
    let failure = #expect(throws: ControlUnreachable.self) { try patient.reload() }
    #expect(failure?.reason == .timedOut)
    // The order lies in the socket; a question changes nothing, and what was never sent neither.
    #expect(failure?.isOpen == true)
    let question = #expect(throws: ControlUnreachable.self) {
      try client { $0.telling = .milliseconds(50) }.status()
    }
    #expect(question?.isOpen == false)
    #expect(ControlClient.Limits().telling <= .seconds(3) && ControlClient.Limits().answering >= .seconds(60))
    withExtendedLifetime(listener) {}
  }

  /// The agent turned it away, and has done nothing: for as long as an answer may take it is asked again.
  @Test func anAgentWithTooManyConnectionsIsAskedAgain() throws {
    let failure = ControlFailure(.unavailable, code: ControlFailure.tooManyConnections, "128 wait already")
    let refusal = String(decoding: try ControlJSON.encode(failure), as: UTF8.self)
    let answer = #"{"schema":"tarn-control/1","message":"done","wasSo":false}"#
    let asked = Locked(0)
    let listener = try RawListener(path) { connection in
      var request = [UInt8](repeating: 0, count: 65_536)
      _ = read(connection, &request, request.count)
      let isFirst = asked.withLock { asked in
        asked += 1
        return asked <= 2
      }
      let (status, body) = isFirst ? ("503 Service Unavailable", refusal) : ("200 OK", answer)
      let text = "HTTP/1.1 \(status)\r\nServer: tarn/1\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
      _ = send(connection, text, text.utf8.count, Int32(MSG_NOSIGNAL))
    }
    #expect(try client().limit(nil).message == "done")
    #expect(asked.withLock { $0 } == 3)
    asked.withLock { $0 = -1_000_000 }
    // So long it is asked again; each answer to an order may take as long as it does.
    let told = #expect(throws: ControlFailure.self) {
      try client { $0.telling = .milliseconds(120) }.limit(nil)
    }
    #expect(told?.code == ControlFailure.tooManyConnections)
    withExtendedLifetime(listener) {}
  }

  @Test func aFullQueueIsWaitedForAndNoLonger() throws {
    let listener = try RawListener(path)
    let waiting = (0..<9).map { _ in RawClient(path) }
    #expect(waiting.allSatisfy { $0.error == 0 })
    #expect(reason(client { $0.connecting = .milliseconds(50) }) == .timedOut)
    let order = #expect(throws: ControlUnreachable.self) {
      try client { $0.connecting = .milliseconds(50) }.reload()
    }
    #expect(order?.reason == .timedOut && order?.isOpen == false)
    withExtendedLifetime(listener) {}
  }

  @Test func aStreamWithoutASignOfLifeIsGivenUp() throws {
    let head =
      "HTTP/1.1 200 OK\r\nServer: tarn/1\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    let gate = Gate()
    let listener = try RawListener(path) { connection in
      var request = [UInt8](repeating: 0, count: 65_536)
      _ = read(connection, &request, request.count)
      _ = send(connection, head, head.utf8.count, Int32(MSG_NOSIGNAL))
      gate.wait()
    }
    defer { gate.open() }
    let client = client { $0.silence = .milliseconds(50) }
    let failure = #expect(throws: ControlUnreachable.self) { try client.follow(after: nil) { _ in true } }
    #expect(failure?.reason == .timedOut)
    withExtendedLifetime(listener) {}
  }

  @Test func anAnswerLongerThanAnyIsNotTaken() throws {
    let body = String(repeating: " ", count: 2_000)
    let listener = try RawListener(
      path, answer: "HTTP/1.1 200 OK\r\nServer: tarn/1\r\nContent-Length: 2000\r\n\r\n\(body)")
    #expect(reason(client { $0.answer = 1_999 }) == .notATarn)
    withExtendedLifetime(listener) {}
  }

  @Test func afterItsEndAClientAsksNothing() throws {
    let listener = try RawListener(path)
    let client = client()
    client.end()
    #expect(reason(client) == .ended)
    withExtendedLifetime(listener) {}
  }
}
