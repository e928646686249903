import TarnCore
import TarnRuntime
import Testing

@testable import TarnAgent
@testable import TarnConfig
@testable import TarnEngine

/// What the log says of work that lasts, by a clock that the test sets.
@Suite struct AgentProgressTests {
  private let clock = ManualClock(now: 1_000_000_000)
  private let written = Locked<[UInt8]>([])

  /// An agent with one mirror, which does not run.
  private func agent() throws -> Agent {
    var settings = Settings()
    settings.mirrors = [
      MirrorSettings(name: "iso", feed: "http://127.0.0.1:1/SHA256SUMS", folder: "/nonexistent/iso")
    ]
    var loaded = LoadedSettings()
    loaded.settings = settings
    let (read, written) = (loaded, written)
    let log = LogOutput(.text, clock: clock) { line in written.withLock { $0 += line } }
    var parts = Agent.Parts(
      tarn: Tarn(workingDirectory: "/", environment: [:]),
      paths: SettingsPaths(environment: [:], isRoot: false, workingDirectory: "/"), load: { read }, log: log,
      environment: [:])
    parts.clock = clock
    return try Agent(parts)
  }

  /// As `tarn sync` says it into a log: a pass of two days is not silent, and one of a minute not noisy.
  @Test func longWorkIsToldOnceAMinute() throws {
    let agent = try agent()
    let work = agent.work(7, of: nil)
    work.progress.change { ($0.phase, $0.filesDone, $0.filesTotal) = (.transferring, 3, 10) }
    func set(_ work: AgentWork?) {
      agent.shared.withLock { shared in shared.mirrors["iso"]?.work = work }
    }
    func told(after pause: Duration) -> [Substring] {
      clock.advance(pause)
      agent.tellProgress()
      agent.tellProgress()
      let bytes = written.withLock { bytes in
        defer { bytes = [] }
        return bytes
      }
      return String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    }
    /// For how long the loop may sleep.
    func pause() -> Duration? {
      agent.shared.withLock { agent.nextProgressLine($0) }?.remaining(at: clock.monotonic())
    }
    set(work)
    #expect(pause() == .seconds(60))
    for minute in 1...2 {
      #expect(told(after: .seconds(59)) == [])
      #expect(pause() == .seconds(1))
      let lines = told(after: .seconds(1))
      let line = "1970-01-01T00:0\(minute):01Z iso: fetching: 3 of 10 files"
      #expect(lines.count == 1 && lines.first?.hasPrefix(line) == true, "\(lines)")
      #expect(pause() == .seconds(60))
    }
    set(nil)
    #expect(pause() == nil)
    #expect(told(after: .seconds(600)) == [])
  }
}
