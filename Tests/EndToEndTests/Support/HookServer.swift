import Foundation

/// An HTTP server of the loopback that keeps what is sent to it, and answers as it is told.
final class HookServer: @unchecked Sendable {
  // Safe because all that changes is behind the lock.
  struct Request {
    var method: String
    var target: String
    /// Names in small letters.
    var headers: [String: String]
    var body: Data

    var document: [String: Any] {
      (try? JSONSerialization.jsonObject(with: body)) as? [String: Any] ?? [:]
    }

    var event: String { document["event"] as? String ?? "" }
  }

  /// In place of a status: no answer.
  static let silence = 0

  let port: UInt16
  private let lock = NSLock()
  private var kept: [Request] = []
  private var answers = [200]
  /// The path that answers of redirects lead to.
  private static let elsewhere = "/elsewhere"

  init() throws {
    let listener: Int32
    (listener, port) = try Loopback.makeListener()
    Thread.detachNewThread { [self] in
      while true {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else { return }
        Thread.detachNewThread { [self] in
          serve(connection)
          close(connection)
        }
      }
    }
  }

  func url(_ path: String) -> String { "http://127.0.0.1:\(port)/\(path)" }

  var requests: [Request] { lock.withLock { kept } }

  /// The next requests get these, one after the other, and all later ones the last.
  func answer(_ statuses: Int...) { lock.withLock { answers = statuses } }

  private func serve(_ connection: Int32) {
    var data = Data()
    while let request = read(connection, &data) {
      let status = lock.withLock {
        kept.append(request)
        return answers.count > 1 ? answers.removeFirst() : answers[0]
      }
      guard status != Self.silence else {
        // Until the other end gives up.
        while receive(connection, &data) {}
        return
      }
      let location = 300..<400 ~= status ? "Location: \(Self.elsewhere)\r\n" : ""
      let text = "HTTP/1.1 \(status) X\r\n\(location)Content-Length: 0\r\n\r\n"
      _ = text.withCString { send(connection, $0, strlen($0), Int32(MSG_NOSIGNAL)) }
    }
  }

  /// - Returns: nil once the connection has ended.
  private func read(_ connection: Int32, _ data: inout Data) -> Request? {
    let end = Data("\r\n\r\n".utf8)
    while true {
      if let head = data.range(of: end) {
        let lines = String(decoding: data[..<head.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
          let parts = line.split(separator: ":", maxSplits: 1)
          headers[parts[0].lowercased()] =
            parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : ""
        }
        let length = headers["content-length"].flatMap { Int($0) } ?? 0
        while data.distance(from: head.upperBound, to: data.endIndex) < length {
          guard receive(connection, &data) else { return nil }
        }
        let bodyEnd = data.index(head.upperBound, offsetBy: length)
        let words = lines[0].split(separator: " ").map(String.init)
        let request = Request(
          method: words[0], target: words[1], headers: headers, body: Data(data[head.upperBound..<bodyEnd]))
        data = Data(data[bodyEnd...])
        return request
      }
      guard receive(connection, &data) else { return nil }
    }
  }

  private func receive(_ connection: Int32, _ data: inout Data) -> Bool {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    let count = recv(connection, &buffer, buffer.count, 0)
    guard count > 0 else { return false }
    data += buffer[..<count]
    return true
  }
}
