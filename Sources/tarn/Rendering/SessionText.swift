import TarnCore
import TarnRuntime

/// Sessions, their tasks and events, as lines.
enum SessionText {
  /// Returns the line of a session: `backup: 2 running, 3 finished; 5 events not acknowledged`.
  static func line(_ session: SessionDocument) -> String {
    if let failure = session.failure {
      return
        "\(session.id): cannot be opened: \(failure); to try it again: tarn session open \(session.id); to give it up: tarn session forget \(session.id)"
    }
    let tasks = TaskState.allCases.compactMap { state in
      session.tasks[state.rawValue].map { "\(Numbers.grouped($0)) \(state.rawValue)" }
    }
    var parts = [tasks.isEmpty ? "no task" : tasks.joined(separator: ", ")]
    if session.lastEvent > session.acknowledged {
      parts.append(
        "\(Numbers.count(Int(session.lastEvent - session.acknowledged), "event")) not acknowledged")
    }
    if let files = session.partialFiles {
      parts.append("\(Units.show(session.partialBytes ?? 0)) in \(Numbers.count(files, "partial file"))")
    }
    if session.isClosed { parts.append("closed") }
    if let wake = session.wake, wake.failures > 0 {
      parts.append("its wake command ran \(Numbers.count(wake.failures, "time")) in vain: \(wake.message)")
    }
    return "\(session.id): \(parts.joined(separator: "; "))"
  }

  static func line(_ document: TaskDocument) -> String {
    let task = document.task
    var parts = ["\(task.number)", task.state.rawValue]
    if let received = document.received {
      parts.append(document.expected.map { Numbers.part(received, of: $0) } ?? Units.show(received))
    } else if let bytes = task.bytes {
      parts.append(Units.show(bytes))
    }
    if let rate = document.rate, rate > 0 { parts.append(Numbers.rate(rate)) }
    let place = Printable.escape(task.path ?? task.request.url)
    parts.append(place)
    if let message = task.message { parts.append(told(message, after: place)) }
    return parts.joined(separator: "  ")
  }

  /// Returns a message without the place at its beginning, which stands before it already.
  private static func told(_ message: String, after place: String) -> String {
    message.hasPrefix(place + ": ") ? String(message.dropFirst(place.count + 2)) : message
  }

  /// Returns the command that continues a task waiting for an answer; `nil` for one that continues by itself,
  /// or has ended.
  static func step(_ task: TaskRecord, of session: String) -> String? {
    guard task.state == .waiting, task.nextAttempt == nil else { return nil }
    if task.code == TaskRecord.lacksRoom, task.request.isRepeatable { return nil }
    let answer = "tarn session answer \(session) \(task.number)"
    switch task.code {
    case "http-401", "http-403": return "\(answer) --header-file FILE, or --url URL"
    case TaskRecord.stale: return "\(answer) --url URL, or without an option where the request is still good"
    default: return answer
    }
  }

  static func show(_ event: SessionEvent, _ session: Session) {
    session.console.data(session.isJSON ? JSONText.line(event) : line(event))
  }

  /// Returns the line of an event: `12  2026-11-28T12:00:00Z  finished  3  /srv/a.iso  1.2 GiB`.
  static func line(_ event: SessionEvent) -> String {
    var parts = ["\(event.number)", event.time.rfc3339, event.code.rawValue]
    if let task = event.task { parts.append("\(task)") }
    let place = (event.path ?? event.url).map { Printable.escape($0) }
    if let place { parts.append(place) }
    if let bytes = event.bytes { parts.append(Units.show(bytes)) }
    if event.code == .response, let response = event.response { parts.append("\(response.status)") }
    if let group = event.group { parts.append("group \(Printable.escape(group))") }
    if let last = event.lostUpTo { parts.append("events up to \(last) are gone") }
    if event.code == .allDelivered || event.code == .groupDelivered {
      parts.append(
        "\(Numbers.grouped(event.finished ?? 0)) finished, \(Numbers.grouped(event.failed ?? 0)) failed")
    }
    if let message = event.message, event.code != .finished {
      parts.append(told(message, after: place ?? ""))
    }
    return parts.joined(separator: "  ")
  }
}
