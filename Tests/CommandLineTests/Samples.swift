import TarnCore

@testable import TarnEngine

/// Values to render.
enum Samples {
  static let now = Timestamp(year: 2026, month: 11, day: 21, hour: 12) ?? Timestamp(nanoseconds: 0)

  static func path(_ text: String) -> RelativePath { RelativePath(trusted: Array(text.utf8)) }

  /// Five files in sync after 2.1 seconds.
  static func report() -> PassReport {
    var report = PassReport(feed: "https://example.org/iso/SHA256SUMS", folder: "/srv/iso", started: now)
    report.ended = Timestamp(nanoseconds: now.nanoseconds + 2_100_000_000)
    report.manifest.format = "checksum list"
    report.manifest.isComplete = true
    report.counts.wanted = 5
    report.counts.fetched = 3
    report.counts.updated = 1
    report.counts.current = 1
    report.bytes.wanted = 1_258_291
    report.bytes.current = 200_000
    report.bytes.published = 1_058_291
    return report
  }

  static func problem(_ kind: Problem.Kind, _ name: String, _ code: String, _ message: String) -> Problem {
    Problem(name: Array(name.utf8), kind: kind, code: code, message: message, seen: now)
  }

  static func status() -> StatusDocument {
    var status = StatusDocument(
      name: "/srv/iso", feed: "https://example.org/iso/SHA256SUMS", folder: "/srv/iso", state: "idle")
    status.format = "checksum list"
    status.lastSuccess = "2026-11-21T10:00:00Z"
    status.lastAttempt = status.lastSuccess
    status.entries.wanted = 1234
    status.entries.current = 1234
    status.bytes.current = 3_435_973_837
    return status
  }
}
