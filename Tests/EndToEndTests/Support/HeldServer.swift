import Foundation

/// Holds back the files of some of nginx's locations until the test lets them go: what has to happen meanwhile does so on a busy
/// machine, too.
final class HeldServer: Sendable {
  enum Hold {
    /// Nothing comes. What has half a minute of that gives up.
    case answers
    /// Half of the body comes, and the rest at 4 KiB a second: a large one lasts for minutes, and nobody finds it too slow.
    case bodies
  }

  private let port: UInt16
  private let listener: Int32
  private let gate = HeldGate()

  init(_ hold: Hold) throws {
    let (listener, port) = try Loopback.makeListener()
    (self.listener, self.port) = (listener, port)
    let gate = gate
    Thread.detachNewThread {
      while true {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else { break }
        Thread.detachNewThread {
          HeldAnswer(connection, hold, gate)?.give()
          close(connection)
        }
      }
      close(listener)
    }
  }

  deinit {
    gate.open()
    // Its thread closes it.
    shutdown(listener, Int32(SHUT_RDWR))
  }

  /// What nginx needs in a location whose files are held: it still says which file is meant, and logs the requests.
  var location: String {
    """
    proxy_pass http://127.0.0.1:\(port);
    proxy_set_header X-File $request_filename;
    proxy_buffering off;
    proxy_read_timeout 1h;
    """
  }

  /// The number of answers that are held now.
  var count: Int { gate.count }

  func wait(for count: Int = 1) throws {
    try waitUntil("\(count) answers are held") { self.count >= count }
  }

  /// Returns once no request has come for a moment: of what must not come there is no sign.
  func settle() {
    var before = -1
    while before != gate.asked {
      before = gate.asked
      _ = poll(nil, 0, 500)
    }
  }

  /// Lets go of those that are held now, and holds those that come.
  ///
  /// - Returns: how many were held.
  @discardableResult
  func letGo() -> Int { gate.letGo() }

  /// Holds nothing any more.
  func open() { gate.open() }

  /// Holds those that come from now on.
  func holdAgain() { gate.holdAgain() }
}

/// Who waits for being let go.
private final class HeldGate: @unchecked Sendable {
  // Safe because all that changes is behind the condition's lock.
  private let condition = NSCondition()
  private var isOpen = false
  private var turn = 0
  private var held = 0
  private var requests = 0

  private func locked<Result>(_ body: () -> Result) -> Result {
    condition.lock()
    defer { condition.unlock() }
    return body()
  }

  var count: Int { locked { held } }
  var asked: Int { locked { requests } }

  func holdAgain() { locked { isOpen = false } }

  func open() {
    locked { isOpen = true }
    letGo()
  }

  @discardableResult
  func letGo() -> Int {
    locked {
      defer {
        held = 0
        turn += 1
        condition.broadcast()
      }
      return held
    }
  }

  /// - Returns: the turn to be let go in; nil when nothing is held.
  func enter() -> Int? {
    locked {
      requests += 1
      if isOpen { return nil }
      held += 1
      return turn
    }
  }

  /// The one who asked has gone.
  func leave(_ mine: Int) {
    locked { if mine == turn { held -= 1 } }
  }

  /// - Returns: false when it is not let go within a quarter of a second.
  func isLetGo(_ mine: Int) -> Bool {
    locked {
      let end = Date().addingTimeInterval(0.25)
      while mine == turn, condition.wait(until: end) {}
      return mine != turn
    }
  }
}

/// One request for a file, and its answer.
private struct HeldAnswer {
  private let connection: Int32
  private let hold: HeldServer.Hold
  private let gate: HeldGate
  private var head = Data()
  private var body = Data()

  /// Reads the request.
  ///
  /// - Returns: nil when the connection ended before.
  init?(_ connection: Int32, _ hold: HeldServer.Hold, _ gate: HeldGate) {
    (self.connection, self.hold, self.gate) = (connection, hold, gate)
    var request = Data()
    var buffer = [UInt8](repeating: 0, count: 16 << 10)
    while request.range(of: Data("\r\n\r\n".utf8)) == nil {
      let count = recv(connection, &buffer, buffer.count, 0)
      guard count > 0 else { return nil }
      request += buffer[..<count]
    }
    var fields: [String: String] = [:]
    for line in String(decoding: request, as: UTF8.self).components(separatedBy: "\r\n").dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      fields[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(
        in: .whitespaces)
    }
    answer(fields)
  }

  private mutating func answer(_ fields: [String: String]) {
    var status = stat()
    let path = fields["x-file"] ?? ""
    guard stat(path, &status) == 0, let whole = FileManager.default.contents(atPath: path) else {
      head = Data("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8)
      return
    }
    let tag = "\"\(status.st_mtim.tv_sec)-\(status.st_mtim.tv_nsec)-\(whole.count)\""
    var start = 0
    if let range = fields["range"], fields["if-range"] ?? tag == tag, range.hasPrefix("bytes="),
      range.hasSuffix("-"), let first = Int(range.dropFirst(6).dropLast()), first < whole.count
    {
      start = first
    }
    body = Data(whole[start...])
    var lines = [
      start > 0 ? "HTTP/1.1 206 Partial Content" : "HTTP/1.1 200 OK", "Content-Length: \(body.count)",
      "ETag: \(tag)", "Accept-Ranges: bytes", "Connection: close",
    ]
    if start > 0 { lines.append("Content-Range: bytes \(start)-\(whole.count - 1)/\(whole.count)") }
    head = Data((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
  }

  func give() {
    let turn = gate.enter()
    var rest = head + body
    if hold == .bodies {
      let first = head.count + body.count / 2
      guard put(rest.prefix(first)) else { return leave(turn) }
      rest = rest.dropFirst(first)
    }
    while let turn, !gate.isLetGo(turn) {
      // The last byte is for when it is let go.
      let piece = hold == .bodies ? rest.prefix(min(1024, max(0, rest.count - 1))) : Data()
      guard !isGone, put(piece) else { return leave(turn) }
      rest = rest.dropFirst(piece.count)
    }
    _ = put(rest)
  }

  private func leave(_ turn: Int?) {
    if let turn { gate.leave(turn) }
  }

  private var isGone: Bool {
    var byte: UInt8 = 0
    return recv(connection, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) == 0
  }

  /// - Returns: false when the other end is gone.
  private func put(_ data: Data) -> Bool {
    var rest = [UInt8](data)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }
}
