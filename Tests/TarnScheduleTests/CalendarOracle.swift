import Foundation
import TarnCore
import TarnSchedule
import TestSupport

/// `systemd-analyze calendar`, which reads the same grammar and needs no running systemd.
enum CalendarOracle {
  static let program = "/usr/bin/systemd-analyze"

  static var isAvailable: Bool {
    FileManager.default.isExecutableFile(atPath: program)
      && FileManager.default.fileExists(atPath: Zoneinfo.directory + "/Europe/Berlin")
  }

  /// What is said of one expression.
  struct Answer: Equatable {
    /// nil when the expression is refused.
    var normalized: String?
    /// Seconds since 1970, fractions cut off.
    var elapses: [Int64] = []
    /// It gave up searching ("Infinite loop in calendar calculation"), and then says nothing else.
    var gaveUp = false
  }

  /// One run of the program over many expressions.
  static func ask(_ expressions: [String], base: Int64, zone: String, iterations: Int) throws -> [Answer] {
    let files = ["out", "err"].map {
      FileManager.default.temporaryDirectory.appendingPathComponent("tarn-\(UUID().uuidString).\($0)")
    }
    for file in files { try Data().write(to: file) }
    defer { for file in files { try? FileManager.default.removeItem(at: file) } }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments =
      ["calendar", "--iterations=\(iterations)", "--base-time=@\(base)", "--"] + expressions
    process.environment = ["TZ": zone, "LC_ALL": "C", "SYSTEMD_LOG_LEVEL": "err"]
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try FileHandle(forWritingTo: files[0])
    process.standardError = try FileHandle(forWritingTo: files[1])
    try process.run()
    process.killWhenLate()
    process.waitUntilExit()
    let texts = try files.map { String(decoding: try Data(contentsOf: $0), as: UTF8.self) }
    return answers(texts[0], errors: texts[1], to: expressions)
  }

  /// Refused expressions have no block; the others come in order.
  private static func answers(_ text: String, errors: String, to expressions: [String]) -> [Answer] {
    var blocks: [(original: String, answer: Answer)] = []
    var original: String?
    for line in text.split(separator: "\n") {
      guard let colon = line.firstRange(of: ": ") else { continue }
      let key = line[..<colon.lowerBound].drop { $0 == " " }
      let value = String(line[colon.upperBound...])
      if key == "Original form" {
        original = value
      } else if key == "Normalized form" {
        // What is in normal form already is not repeated.
        blocks.append((original ?? value, Answer(normalized: value)))
        original = nil
      } else if let last = blocks.indices.last,
        key == "Next elapse" || key == "(in UTC)" || key.hasPrefix("Iter")
      {
        if let moment = moment(value) { blocks[last].answer.elapses.append(moment) }
      }
    }
    var rest = blocks[...]
    return expressions.map { expression in
      guard let first = rest.first, first.original == trimmed(expression) else {
        return Answer(gaveUp: errors.contains("Failed to determine next elapse for '\(expression)'"))
      }
      rest.removeFirst()
      return first.answer
    }
  }

  private static func trimmed(_ text: String) -> String {
    var text = text
    while text.hasSuffix(" ") { text.removeLast() }
    return text
  }

  /// `Sun 2026-10-25 00:30:00 UTC`; nil when it is in another zone (then a line in UTC follows).
  private static func moment(_ text: String) -> Int64? {
    let words = text.split(separator: " ")
    guard words.count == 4, words[3] == "UTC" else { return nil }
    let date = words[1].split(separator: "-").compactMap { Int($0) }
    let time = words[2].split(separator: ":").compactMap { Int($0) }
    guard date.count == 3, time.count == 3 else { return nil }
    return Timestamp(
      year: date[0], month: date[1], day: date[2], hour: time[0], minute: time[1], second: time[2])?.seconds
  }
}

/// The machine's time zone database.
enum Zoneinfo {
  static let directory = "/usr/share/zoneinfo"

  static func bytes(_ name: String) -> [UInt8]? {
    FileManager.default.contents(atPath: directory + "/" + name).map { Array($0) }
  }

  static func rules(_ name: String) throws -> TimeZoneRules {
    if name == "UTC" { return .utc }
    return try TZif.parse(bytes(name) ?? [])
  }
}
