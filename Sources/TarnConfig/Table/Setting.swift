package import TarnCore

/// One setting: the source for reading, showing, documentation and the schema.
package struct Setting: Sendable, Equatable {
  package enum Scope: String, Sendable, CaseIterable {
    case agent, limits, hook, mirror

    /// The header as written in TOML: `[mirror.NAME]`.
    package var header: String { [.hook, .mirror].contains(self) ? "[\(rawValue).NAME]" : "[\(rawValue)]" }
  }

  package var scope: Scope
  package var name: String
  package var kind: SettingKind
  /// One line of help, without a full stop at its end.
  package var help: String
  /// The standard value as TOML; `nil` when there is none, or when it depends on the place.
  package var standard: String?
  /// A plausible value, as TOML.
  package var example: String
  /// The option of a pass that this setting gives; `nil` for others.
  package var option: PassOptions.Name?

  /// The words of the help for a setting without a standard value: what applies while it is not set.
  var unset: String? {
    let mark = "; unset: "
    return help.firstRange(of: mark).map { String(help[$0.upperBound...]) }
  }

  package static let all: [Setting] = agent + limits + hook + mirror

  package static func find(_ name: String, in scope: Scope) -> Setting? {
    index[scope]?[name]
  }

  package static func all(in scope: Scope) -> [Setting] { byScope[scope] ?? [] }

  private static let byScope = Dictionary(grouping: all, by: \.scope)

  private static let index = byScope.mapValues {
    Dictionary($0.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  private static func words<Choice: RawRepresentable & CaseIterable>(
    _ type: Choice.Type
  ) -> SettingKind where Choice.RawValue == String {
    .choice(type.allCases.map(\.rawValue))
  }

  private static let agent = [
    Setting(
      scope: .agent, name: "socket", kind: .path,
      help: "The control socket; $TARN_SOCKET and --socket take precedence over it",
      example: "\"/run/tarn/tarn.sock\""),
    Setting(
      scope: .agent, name: "log-format", kind: words(AgentSettings.LogFormat.self),
      help: "The form of messages; auto: journal if systemd reads them, text otherwise",
      standard: TOMLText.quote(AgentSettings().logFormat.rawValue), example: "\"json\""),
    Setting(
      scope: .agent, name: "keep-events", kind: .span(or: nil),
      help: "How long to keep events, for readers that were away", standard: "\"14d\"",
      example: "\"30 days\""),
    Setting(
      scope: .agent, name: "status-access", kind: words(AgentSettings.StatusAccess.self),
      help: "Who may ask for the status; the owner and the socket's group may steer",
      standard: TOMLText.quote(AgentSettings().statusAccess.rawValue), example: "\"owner\""),
    Setting(
      scope: .agent, name: "metrics-file", kind: .path,
      help: "A text file of metrics for Prometheus' node exporter; its name ends in .prom",
      example: "\"/var/lib/prometheus/node-exporter/tarn.prom\""),
    Setting(
      scope: .agent, name: "metrics-listen", kind: .socketAddress,
      help: "The address at which Prometheus may ask for the metrics; a port alone is a port of 127.0.0.1",
      example: "\"127.0.0.1:9754\""),
    Setting(
      scope: .agent, name: "metrics-token", kind: .secretFile,
      help: "The token that a request to metrics-listen has to send",
      example: "{ credential = \"metrics-token\" }"),
  ]

  private static let limits = [
    Setting(
      scope: .limits, name: "passes", kind: .number(1...64, or: nil),
      help: "How many mirrors are at work at once",
      standard: String(LimitSettings().passes), example: "2"),
    Setting(
      scope: .limits, name: "connections", kind: .number(1...256, or: nil),
      help: "How many connections all mirrors use together", standard: String(LimitSettings().connections),
      example: "64"),
    Setting(
      scope: .limits, name: "connections-per-host", kind: .number(1...64, or: nil),
      help: "How many connections all mirrors use to one host",
      standard: String(LimitSettings().connectionsPerHost), example: "2"),
    Setting(
      scope: .limits, name: "limit-rate", kind: .rate,
      help: "The rate of all mirrors together, in bytes per second",
      standard: "\"off\"", example: "\"10MiB/s\""),
    Setting(
      scope: .limits, name: "rate", kind: .rates,
      help: "Another rate at some times of the day; the first row that applies decides",
      example: "[{ at = \"Mon..Fri 08:00-18:00\", limit = \"2MiB/s\" }]"),
  ]

  private static let hook = [
    Setting(
      scope: .hook, name: "command", kind: .command,
      help:
        "A program and its arguments, without a shell; it gets TARN_ variables, and JSON on standard input",
      example: "[\"/usr/local/bin/tell\", \"--now\"]"),
    Setting(
      scope: .hook, name: "webhook", kind: .address, help: "Post the JSON document to this URL",
      example: "\"https://example.org/hook\""),
    Setting(
      scope: .hook, name: "ping", kind: .address,
      help: "Tell a monitor when passes begin and end, as healthchecks.io expects it",
      example: "{ file = \"/etc/tarn/secret/ping-url\" }"),
    Setting(
      scope: .hook, name: "mirrors", kind: .names, help: "The mirrors that the hook is told of; unset: all",
      example: "[\"iso\"]"),
    Setting(
      scope: .hook, name: "events", kind: .words(HookEvent.allCases.map(\.rawValue)),
      help:
        "The events that the hook is told of; unset: failing, held and recovered; started and ended for a ping",
      example: "[\"failing\", \"recovered\"]"),
    Setting(
      scope: .hook, name: "timeout", kind: .span(or: nil), help: "How long an attempt may take",
      standard: "\"30s\"", example: "\"10s\""),
    Setting(
      scope: .hook, name: "retries", kind: .number(0...100, or: nil),
      help: "How many attempts follow the first, after pauses that grow from 5 s to 15 min", standard: "10",
      example: "3"),
    Setting(
      scope: .hook, name: "secret", kind: .secretFile,
      help: "The key that signs a webhook; X-Hub-Signature-256 holds the HMAC-SHA256 of the body",
      example: "{ file = \"/etc/tarn/secret/hook-key\" }"),
    Setting(
      scope: .hook, name: "header-file", kind: .secretFile,
      help: "Send the 'Name: value' lines of this file with a webhook or a ping",
      example: "{ credential = \"hook-headers\" }"),
  ]

  private static let mirror =
    [
      Setting(
        scope: .mirror, name: "feed", kind: .feed, help: "The feed to follow: a URL, or an absolute path",
        example: "\"https://example.org/iso/SHA256SUMS\""),
      Setting(
        scope: .mirror, name: "folder", kind: .path, help: "The directory to keep current",
        example: "\"/srv/mirrors/iso\""),
      Setting(
        scope: .mirror, name: "every", kind: .interval,
        help: "The time from one pass to the next; without it and schedule, passes begin only on command",
        example: "\"1h\""),
      Setting(
        scope: .mirror, name: "schedule", kind: .calendar,
        help: "When passes begin, as in systemd.time(7); replaces every",
        example: "\"Mon..Fri *-*-* 06:00\""),
      Setting(
        scope: .mirror, name: "rate", kind: .rates,
        help: "Another rate at some times of the day; the first row that applies decides",
        example: "[{ at = \"08:00-18:00\", limit = \"2MiB/s\" }, { at = \"22:00-06:00\", limit = \"off\" }]"),
      Setting(
        scope: .mirror, name: "watch", kind: .boolean,
        help: "Whether the agent watches the folder, and undoes local changes at once",
        standard: "true",
        example: "false"),
      Setting(
        scope: .mirror, name: "rescan", kind: .interval,
        help: "How often the agent also looks through a watched folder", standard: "\"1d\"",
        example: "\"1 week\""),
      Setting(
        scope: .mirror, name: "state", kind: .path,
        help:
          "The directory for the state of the mirror, if it is not in the folder; on the same file system",
        example: "\"/srv/mirrors/.iso-state\""),
      Setting(
        scope: .mirror, name: "adopt", kind: .boolean,
        help: "Whether to take a folder that is not empty; files that match the feed become the mirror's",
        standard: "false",
        example: "true"),
      Setting(
        scope: .mirror, name: "dry-run", kind: .boolean,
        help: "Whether every pass only plans, and changes nothing",
        standard: "false", example: "true"),
    ] + PassOptions.Name.allCases.map(\.setting)
}
