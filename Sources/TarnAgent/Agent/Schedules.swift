import TarnConfig
import TarnCore
import TarnRuntime
import TarnSchedule

/// Makes schedules from settings, with the time zone database and the machine's id.
struct Schedules: Sendable {
  private let zones: ZoneFiles
  private let machine: [UInt8]

  init(environment: [String: String], machineID: String = "/etc/machine-id") {
    zones = ZoneFiles(environment: environment)
    machine = Array((TextFile.read(machineID, limit: 4096) ?? "").utf8)
  }

  /// The timing of a mirror. Valid settings always have one; a zone whose file is gone since counts as UTC.
  func timing(of mirror: MirrorSettings) -> RunSchedule.Timing {
    switch mirror.rhythm {
    case .command: return .onDemand
    case .every(let seconds):
      return Cadence(every: seconds, machine: machine, mirror: mirror.name.utf8).map { .every($0) }
        ?? .onDemand
    case .calendar(let expressions):
      let calendars = expressions.compactMap { text -> RunSchedule.ZonedCalendar? in
        guard let spec = try? CalendarSpec(text) else { return nil }
        return RunSchedule.ZonedCalendar(spec, rules(spec.zone))
      }
      return .calendars(calendars)
    }
  }

  private func rules(_ zone: CalendarSpec.Zone) -> TimeZoneRules {
    switch zone {
    case .utc: .utc
    case .local: local
    case .named(let name): (try? zones.bytes(of: name)).flatMap { try? TZif.parse($0) } ?? .utc
    }
  }

  /// The machine's own zone, read again each time, for it may be set while the agent runs.
  var local: TimeZoneRules {
    switch try? zones.local() {
    case .file(let bytes): (try? TZif.parse(bytes)) ?? .utc
    case .text(let text): TimeZoneRules(posix: text) ?? .utc
    case .utc, nil: .utc
    }
  }
}
