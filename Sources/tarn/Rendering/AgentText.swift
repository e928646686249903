import TarnCore

/// How a running agent is, for people.
enum AgentText {
  /// `agent: process 812 for 3 hours, 2 of 4 passes at work, 14 transfers, 8.1 MiB/s of at most 10.0 MiB/s`, and what
  /// needs attention.
  ///
  /// - Parameter check: the command that says what is wrong with the settings.
  static func lines(_ agent: AgentDocument, now: Timestamp, style: Style, check: String) -> [String] {
    let age =
      Timestamp(rfc3339: agent.started).map { " for \(Durations.span(max(1, now.seconds - $0.seconds)))" }
      ?? ""
    var parts = ["process \(agent.process)\(age)"]
    if agent.state != "running" { parts.append(Printable.escape(agent.state)) }
    parts.append(
      agent.passes == 0 ? "idle" : "\(Numbers.count(agent.passes, "pass")) at work")
    if agent.transfers > 0 { parts.append(Numbers.count(agent.transfers, "transfer")) }
    if agent.waiting > 0 { parts.append("\(Numbers.grouped(agent.waiting)) waiting") }
    if agent.transfers > 0, agent.rate > 0 { parts.append(Numbers.rate(agent.rate)) }
    if let limit = agent.rateLimit { parts.append("limit \(Numbers.rate(limit))") }
    var lines = [style.paint("agent:", .strong) + " " + parts.joined(separator: ", ")]
    if !agent.rejected.isEmpty {
      let errors = Numbers.count(agent.rejected.count, "error")
      lines.append(
        style.paint("settings:", .bad)
          + " newer ones were rejected for \(errors), the old ones go on: \(check)")
    }
    if !agent.needRestart.isEmpty {
      let names = agent.needRestart.map { Printable.escape($0) }.joined(separator: ", ")
      lines.append(style.paint("settings:", .warning) + " a restart takes up \(names)")
    }
    for host in agent.restingHosts {
      lines.append(
        style.paint("host:", .warning)
          + " \(Printable.escape(host.host)) does not answer, and is left alone until "
          + Printable.escape(host.until))
    }
    return lines
  }
}
