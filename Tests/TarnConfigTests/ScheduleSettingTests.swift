import TarnCore
import Testing

@testable import TarnConfig

/// Schedules that are understood and never come.
@Suite struct ScheduleSettingTests {
  @Test(
    arguments: [
      ("schedule = \"*-02-30 03:00\"", 12, "'*-02-30 03:00' never does", "*-*~1 03:00"),
      ("schedule = \"Mon 2027-01-01\"", 12, "never does", "schedule = "),
      ("schedule = [\"06:00\", \"*-04-31\"]", 22, "'*-04-31' never does", "schedule = "),
      // Berlin's clocks show no 02:30 on that day.
      ("schedule = \"2027-03-28 02:30 Europe/Berlin\"", 12, "never does", "schedule = "),
    ] as [(String, Int, String, String)])
  func whatNeverComesIsRefused(_ line: String, _ column: Int, _ message: String, _ hint: String) {
    for purpose in [SettingsLoader.Purpose.run, .check] {
      let loaded = Sample.load(Sample.mirror(line), purpose: purpose)
      #expect(loaded.settings == nil)
      #expect(loaded.problems.map(\.code) == [.badValue])
      guard let problem = loaded.problems.first else { continue }
      #expect(problem.origin == .file(Sample.main, SettingPosition(line: 4, column: column)))
      #expect(problem.message.contains(message), "\(problem.text)")
      #expect(problem.hint?.contains(hint) == true, "\(problem.text)")
    }
  }

  /// Taken, for it may be meant.
  @Test(arguments: [("limit-rate = \"5\"", 14), ("rate = [{ at = \"08:00-18:00\", limit = \"5\" }]", 8)])
  func aRateWithoutAUnitIsDoubted(_ line: String, _ column: Int) throws {
    for purpose in [SettingsLoader.Purpose.run, .check] {
      let loaded = Sample.load(Sample.mirror(line), purpose: purpose)
      #expect(loaded.settings?.mirrors.count == 1)
      let problem = try #require(loaded.problems.first)
      #expect(loaded.problems.count == 1 && problem.severity == .warning)
      #expect(problem.origin == .file(Sample.main, SettingPosition(line: 4, column: column)))
      #expect(problem.message.contains("5 bytes per second; did you mean 5MiB/s?"), "\(problem.text)")
    }
    #expect(Sample.load(Sample.mirror(line.replacing("\"5\"", with: "\"5B/s\""))).problems == [])
  }

  /// After the day the agent still has to start.
  @Test(arguments: [
    ("schedule = \"2020-01-01 03:00\"", "'2020-01-01 03:00' is over"),
    ("schedule = \"@1234567890\"", "is over"),
    ("schedule = [\"2020-01-01\", \"2021-01-01\"]", "all of these are over"),
    ("schedule = \"2026-11-21 12:00 UTC\"", "is over"),
  ])
  func whatIsOverIsTakenWithAWarning(_ line: String, _ message: String) throws {
    let loaded = Sample.load(Sample.mirror(line))
    #expect(loaded.settings?.mirrors.count == 1)
    let problem = try #require(loaded.problems.first)
    #expect(loaded.problems.count == 1 && problem.severity == .warning)
    #expect(problem.origin == .file(Sample.main, SettingPosition(line: 4, column: 12)))
    #expect(problem.message.contains(message), "\(problem.text)")
    #expect(problem.hint?.contains("now is 2026-11-21T12:00:00Z") == true, "\(problem.text)")
  }

  @Test(arguments: [
    "schedule = \"*-02-29 03:00\"", "schedule = \"2199-12-31 23:59:59\"",
    "schedule = [\"2020-01-01 03:00\", \"2027-01-01 03:00\"]", "schedule = \"2026-11-21 12:00:01 UTC\"",
    "schedule = \"2027-03-28 02:30 UTC\"", "schedule = \"Mon *-02-29\"",
  ])
  func whatComesOnceIsTaken(_ line: String) {
    #expect(Sample.load(Sample.mirror(line)).problems == [])
  }

  @Test(arguments: [
    ("@daily", "schedule = \"daily\""), ("@midnight", "schedule = \"daily\""),
    ("@Weekly", "schedule = \"weekly\""), ("@reboot", "schedule = \"daily\""),
    ("@12x", "schedule = \"daily\""), ("1960-01-01", "schedule = \"*-01-01\""),
    ("0 3 * * *", "schedule = \"*-*-* 03:00\""), ("30 6 * * 1", "schedule = \"Mon *-*-* 06:30\""),
    ("0 0 1 6 7", "schedule = "), ("15 4 1 * *", "schedule = \"*-*-01 04:15\""),
    ("*/5 * * * *", "schedule = \"*:0/5\""), ("0 3 * * mon-fri", "schedule = "),
  ])
  func hintsAreTaken(_ text: String, _ hint: String) throws {
    let problem = try #require(Sample.load(Sample.mirror("schedule = \"\(text)\"")).problems.first)
    let said = try #require(problem.hint)
    #expect(said.contains(hint), "\(problem.text)")
    let start = try #require(said.firstRange(of: "schedule = \"")).lowerBound
    let end = try #require(said[start...].dropFirst(12).firstIndex(of: "\""))
    #expect(Sample.load(Sample.mirror(String(said[start...end]))).problems == [], "\(said)")
  }
}
