import Foundation
import TarnCore
import TarnEngine
import TarnSchedule
import Testing

/// tarn-metrics(7), the rules and the dashboard name the metrics that there are.
@Suite struct MetricsPageTests {
  private static let file = Documents.root.appendingPathComponent("packaging/man/tarn-metrics.7")
  private static let rules = "packaging/prometheus/tarn.rules.yml"

  private let text: String
  /// Items of the page's lists by their headings.
  private let items: [String: [String]]

  init() throws {
    text = try String(contentsOf: Self.file, encoding: .utf8)
    var (items, heading): ([String: [String]], String) = ([:], "")
    for line in text.split(separator: "\n") {
      if line.hasPrefix(".Ss ") || line.hasPrefix(".Sh ") { heading = String(line.dropFirst(4)) }
      guard line.hasPrefix(".It Cm ") || line.hasPrefix(".It Sy ") else { continue }
      let names = line.dropFirst(7).replacingOccurrences(of: "\\-", with: "-").split(separator: " ")
      items[heading, default: []] += names.filter { $0 != "," }.map(String.init)
    }
    self.items = items
  }

  private func source(_ path: String) throws -> String {
    try String(contentsOf: Documents.root.appendingPathComponent(path), encoding: .utf8)
  }

  private static func names(in text: String) -> Set<String> {
    Set(text.matches(of: /\btarn_[a-z_]+/).map { String($0.output) })
  }

  // MARK: - The page

  @Test func everyMetricIsThereWithItsLabelsAndNoOther() {
    for (heading, prefix) in [("The agent", ""), ("Mirrors", "tarn_mirror_"), ("Sessions", "tarn_session_")] {
      let metrics = Metric.allCases.filter { metric in
        prefix.isEmpty
          ? !["tarn_mirror_", "tarn_session_"].contains { metric.rawValue.hasPrefix($0) }
          : metric.rawValue.hasPrefix(prefix)
      }
      let wanted = metrics.map { metric in
        metric.rawValue + (metric.labels.isEmpty ? "" : "{\(metric.labels.joined(separator: ","))}")
      }
      #expect(items[heading]?.sorted() == wanted.sorted(), "\(heading)")
    }
    #expect(Self.names(in: text).subtracting(["tarn_"]) == Set(Metric.allCases.map(\.rawValue)))
  }

  @Test func everyValueOfALabelIsThere() {
    #expect(items["State of a mirror"]?.sorted() == StatusDocument.states.sorted())
    #expect(items["Result of a pass"]?.sorted() == RunSchedule.Outcome.allCases.map(\.rawValue).sorted())
    #expect(items["Kind of an error"]?.sorted() == MetricError.allCases.map(\.rawValue).sorted())
    #expect(items["State of a task"] == TaskState.allCases.map(\.rawValue))
    // What a mirror and the agent tell.
    var page = MetricsPage()
    var mirror = StatusDocument(name: "m", feed: "f", folder: "/f", state: "idle")
    mirror.waitingTransfers = 1
    page.add(mirror)
    page.add(AgentDocument(version: "1", process: 1, started: "s", settingsRead: "r"))
    let lines = String(decoding: page.text(.text), as: UTF8.self).split(separator: "\n")
    func states(_ metrics: String...) -> [String] {
      let found = lines.filter { line in metrics.contains { line.hasPrefix($0 + "{") } }
      return Set(found.compactMap { $0.firstMatch(of: /state="([a-z]+)"/).map { String($0.output.1) } })
        .sorted()
    }
    #expect(items["State of files and bytes"]?.sorted() == states("tarn_mirror_files", "tarn_mirror_bytes"))
    #expect(items["State of transfers"] == states("tarn_mirror_transfers", "tarn_agent_transfers"))
    #expect(states("tarn_mirror_state") == StatusDocument.states.sorted())
  }

  /// The phases of a pass are states of its mirror.
  @Test func aMirrorIsInOneOfTheStates() {
    #expect(Set(PassEvent.Phase.allCases.map(\.rawValue)).isSubset(of: StatusDocument.states))
  }

  @Test func everySettingAndEveryAlertIsThere() throws {
    #expect(
      items["THE NETWORK"] == ["metrics-listen", "metrics-token"] && text.contains("\nmetrics\\-file = "))
    let alerts = try source(Self.rules).matches(of: /- alert: (\w+)/).map { String($0.output.1) }
    #expect(alerts.count == 5 && items["ALERT RULES"] == alerts.filter { $0 != "TarnAgentAbsent" })
    #expect(text.contains("\n.Sy TarnAgentAbsent ,"))
  }

  @Test(.enabled(if: Documents.has("mandoc"), "mandoc is not installed")) func mandocHasNoWarning() throws {
    let result = try Documents.run("mandoc", ["-T", "lint", "-W", "warning", Self.file.path])
    #expect(result.status == 0 && result.output == "", "\(result.output)")
  }

  @Test(.enabled(if: Documents.has("groff"), "groff is not installed")) func groffHasNoWarning() throws {
    let result = try Documents.run("groff", ["-mandoc", "-Tutf8", "-ww", "-z", Self.file.path])
    #expect(result.status == 0 && result.output == "", "\(result.output)")
  }

  @Test(.enabled(if: Documents.has("man"), "man is not installed")) func manHasNoWarning() throws {
    let result = try Documents.run(
      "sh", ["-c", "MANWIDTH=80 LC_ALL=C.UTF-8 man --warnings -l \"$0\"", Self.file.path])
    #expect(result.status == 0 && !result.output.contains("warning"), "\(result.output.prefix(500))")
    #expect(result.output.contains("the metrics that the agent exports to Prometheus"))
  }

  // MARK: - Rules and dashboard

  /// Queries of the dashboard, with what Grafana puts into them.
  private func queries() throws -> [String] {
    let board = try JSONSerialization.jsonObject(with: Data(source("packaging/grafana/tarn.json").utf8))
    let panels = (board as? [String: Any])?["panels"] as? [[String: Any]] ?? []
    let targets = panels.flatMap { $0["targets"] as? [[String: Any]] ?? [] }
    return targets.compactMap { $0["expr"] as? String }.map { query in
      query.replacingOccurrences(of: "$__rate_interval", with: "5m")
        .replacingOccurrences(of: "$instance", with: ".*").replacingOccurrences(of: "$mirror", with: ".*")
    }
  }

  /// Names of metrics, and names of labels in braces and lists.
  private func expectKnown(_ query: String) {
    let names = Self.names(in: query)
    #expect(!names.isEmpty, "\(query)")
    for name in names { #expect(Metric(rawValue: name) != nil, "\(name)") }
    let known = Set(names.compactMap(Metric.init(rawValue:)).flatMap(\.labels) + ["instance", "job"])
    let braces = query.matches(of: /[{,]\s*([a-z]+)\s*(=|!=|=~|!~)"/).map { String($0.output.1) }
    let lists = query.matches(of: /\b(?:by|on) \(([a-z, ]+)\)/).flatMap {
      $0.output.1.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
    }
    for label in braces + lists { #expect(known.contains(label), "\(label): \(query)") }
  }

  @Test func theDashboardAsksForWhatThereIs() throws {
    let queries = try queries()
    #expect(queries.count > 20)
    for query in queries { expectKnown(query) }
    let board = try source("packaging/grafana/tarn.json")
    #expect(Self.names(in: board).allSatisfy { Metric(rawValue: $0) != nil })
    for name in ["tarn_build_info", "tarn_mirror_info"] { #expect(board.contains("label_values(\(name)")) }
  }

  @Test func theRulesAskForWhatThereIs() throws {
    let text = try source(Self.rules)
    #expect(Self.names(in: text).count > 5)
    for name in Self.names(in: text) { #expect(Metric(rawValue: name) != nil, "\(name)") }
    for name in Self.names(in: try source("packaging/prometheus/tarn.rules.test.yml")) {
      #expect(Metric(rawValue: name) != nil, "\(name)")
    }
  }

  /// A name that is misspelt would not be seen otherwise.
  @Test func aMisspeltNameIsNoMetric() {
    #expect(Self.names(in: "sum(tarn_mirror_file{x=\"tarn_y\"})") == ["tarn_mirror_file", "tarn_y"])
    #expect(Metric(rawValue: "tarn_mirror_file") == nil)
  }

  @Test(.enabled(if: Documents.has("promtool"), "prometheus is not installed"))
  func promtoolTakesTheRulesAndTheirTestsPass() throws {
    for arguments in [
      ["check", "rules", Self.rules], ["test", "rules", "packaging/prometheus/tarn.rules.test.yml"],
    ] {
      let result = try Documents.run(
        "sh", ["-c", "cd \"$0\" && exec promtool \"$@\"", Documents.root.path] + arguments)
      #expect(result.status == 0 && result.output.contains("SUCCESS"), "\(result.output)")
    }
  }

  @Test(.enabled(if: Documents.has("promtool"), "prometheus is not installed"))
  func promtoolTakesTheQueriesOfTheDashboard() throws {
    let rules = try queries().enumerated().map { index, query in
      "  - record: query:\(index)\n    expr: '\(query.replacingOccurrences(of: "'", with: "''"))'\n"
    }
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("tarn-\(UUID().uuidString).yml")
    defer { try? FileManager.default.removeItem(at: file) }
    try "groups:\n- name: g\n  rules:\n\(rules.joined())".write(to: file, atomically: true, encoding: .utf8)
    let result = try Documents.run("promtool", ["check", "rules", file.path])
    #expect(result.status == 0 && result.output.contains("\(rules.count) rules found"), "\(result.output)")
  }
}
