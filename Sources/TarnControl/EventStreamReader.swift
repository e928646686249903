/// One event of a stream (WHATWG HTML, Server-sent events).
struct StreamEvent: Sendable, Equatable {
  /// The place to continue after this event.
  var id: String?
  var name = "message"
  /// The data. `nil` for a block that only has the stream's place.
  var data: [UInt8]?
}

/// Parses the bytes of a stream into events, however the bytes are divided.
struct EventStreamReader: Sendable {
  /// The most bytes of a line without its end.
  static let longestLine = 1 << 20

  private var line: [UInt8] = []
  private var event = StreamEvent()
  private var isEmpty = true

  /// - Returns: false when a line is longer than any that Tarn sends.
  mutating func read(_ bytes: some Sequence<UInt8>, into events: inout [StreamEvent]) -> Bool {
    for byte in bytes {
      if byte == UInt8(ascii: "\n") {
        endLine(&events)
      } else if line.count == Self.longestLine {
        return false
      } else {
        line.append(byte)
      }
    }
    return true
  }

  private mutating func endLine(_ events: inout [StreamEvent]) {
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    defer { line.removeAll(keepingCapacity: true) }
    guard !line.isEmpty else {
      if !isEmpty { events.append(event) }
      event = StreamEvent()
      isEmpty = true
      return
    }
    let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
    var value = line[colon...].dropFirst()
    if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
    switch String(decoding: line[..<colon], as: UTF8.self) {
    case "id": event.id = String(decoding: value, as: UTF8.self)
    case "event": event.name = String(decoding: value, as: UTF8.self)
    case "data": event.data = event.data.map { $0 + [UInt8(ascii: "\n")] + value } ?? Array(value)
    default: return
    }
    isEmpty = false
  }
}
