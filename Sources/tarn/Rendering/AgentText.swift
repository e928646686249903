import Glibc
import TarnConfig
import TarnCore

/// The state of a running agent, for people.
enum AgentText {
  /// How to start an agent.
  static let start = "'tarn agent', or 'systemctl \(geteuid() == 0 ? "" : "--user ")start tarn'"

  /// Returns `agent: process 812 for 3 hours, 2 passes at work, 14 transfers, 8.1 MiB/s, limit 10.0 MiB/s`,
  /// and lines about what needs attention.
  ///
  /// - Parameters:
  ///   - mirrors: the mirrors whose resting hosts are shown; `nil` for all.
  ///   - check: the command that tells what is wrong with the settings, for an agent that names none.
  ///   - label: the word at the beginning of the first line.
  static func lines(
    _ agent: AgentDocument, of mirrors: [String]? = nil, now: Timestamp, style: Style, check: String,
    label: String = "agent:"
  ) -> [String] {
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
    var lines = [style.paint(label, .strong) + " " + parts.joined(separator: ", ")]
    lines += (agent.troubles ?? []).map { trouble in
      let hint = trouble.hint.map { "; \(Message.safe($0))" } ?? ""
      return style.paint("agent:", .bad) + " \(Message.safe(trouble.message))\(hint)"
    }
    if !agent.rejected.isEmpty {
      let errors =
        SettingsReport.atLeast(agent.rejected.count) + Numbers.count(agent.rejected.count, "error")
      lines.append(
        style.paint("settings:", .bad)
          + " newer ones were rejected for \(errors), the old ones stay in force: \(firstError(of: agent))"
          + "; to check them: \(agent.settingsCheck.map(Message.safe) ?? check)")
    }
    if !agent.needRestart.isEmpty {
      let names = agent.needRestart.map { Printable.escape($0) }.joined(separator: ", ")
      lines.append(style.paint("settings:", .warning) + " a restart takes up \(names)")
    }
    let hosts = agent.restingHosts.filter { host in
      guard let mirrors, let theirs = host.mirrors else { return true }
      return !Set(mirrors).isDisjoint(with: theirs)
    }
    lines += (agent.hooks ?? []).compactMap { trouble($0) }.map { style.paint("hook:", .warning) + " " + $0 }
    lines += hosts.map { style.paint("host:", .warning) + " " + rest($0, now: now) }
    return lines
  }

  /// Returns the command that tells what is wrong with the settings that the agent of these settings rejected.
  /// Where this user finds nothing wrong, only the agent itself tells.
  static func check(of agent: AgentDocument, _ session: Session) -> String {
    let own = session.sources.paths.command("config check")
    let check = agent.settingsCheck ?? own
    guard check == own, session.sources.checked().settings != nil else { return check }
    return session.sources.paths.command("reload")
  }

  /// Returns the first error of the rejected settings. The agent may not read what others can, so that a check
  /// by somebody else may find none.
  static func firstError(of agent: AgentDocument) -> String {
    let first = agent.rejected.first?.split(whereSeparator: \.isNewline).first
    return (agent.rejected.count > 1 ? "the first is " : "") + Message.safe(String(first ?? ""))
  }

  /// Returns `chat: fails since 2026-11-21T12:00:30Z, 3 attempts: the answer was HTTP 500; 2 events to be
  /// told`; `nil` when all is well.
  static func trouble(_ hook: HookStatus) -> String? {
    var parts: [String] = []
    if hook.state == "failing" {
      let since = hook.since.map { " since \(Printable.escape($0))" } ?? ""
      parts.append(
        "fails\(since), \(Numbers.count(hook.failures, "attempt")): "
          + Message.safe(hook.message ?? "it does not say why"))
      if hook.waiting > 0 { parts.append("\(Numbers.count(hook.waiting, "event")) waiting") }
    }
    if hook.dropped > 0 {
      parts.append("\(Numbers.count(Int(clamping: hook.dropped), "event")) lost since the agent began")
    }
    return parts.isEmpty ? nil : "\(Printable.escape(hook.name)): \(parts.joined(separator: "; "))"
  }

  /// The line in place of these when the agent does not answer.
  static func silent(_ style: Style) -> String {
    style.paint("agent:", .bad) + " does not answer; this is what the ledgers say"
  }

  /// - Parameter since: the time when the agent was first missed.
  static func gone(since: Timestamp, _ style: Style) -> String {
    style.paint("agent:", .bad) + " gone since \(since.rfc3339); this is what the ledgers say"
  }

  /// Returns `https://example.org:443 asked to be left alone until 2026-11-21T12:00:30Z (iso)`. A host that
  /// rests for one mirror may answer another.
  private static func rest(_ host: AgentDocument.RestingHost, now: Timestamp) -> String {
    let mirrors = (host.mirrors ?? []).map { Printable.escape($0) }.joined(separator: ", ")
    let whose = mirrors.isEmpty ? "" : " (\(mirrors))"
    let name = Printable.escape(host.host)
    if let until = Timestamp(rfc3339: host.until), until <= now {
      return "\(name) is tried again now\(whose)"
    }
    if host.asked == true, let asked = host.askedUntil, asked > host.until {
      return "\(name) asked to be left alone until \(Printable.escape(asked)); what needs it may try it from "
        + "\(Printable.escape(host.until)) on\(whose)"
    }
    let until = Printable.escape(host.until)
    if host.asked == true { return "\(name) asked to be left alone until \(until)\(whose)" }
    let why = host.asked == false ? " failed again and again, and" : ""
    // The same host may answer another mirror.
    return mirrors.isEmpty
      ? "\(name)\(why) is left alone until \(until)"
      : "\(name)\(why) is left alone by \(mirrors) until \(until); other mirrors still ask it"
  }
}
