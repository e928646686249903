/// The values of all metrics at one moment, as text for Prometheus.
///
/// The sample lines are the same in both formats; only the lines around them differ. A family without samples is left out.
package struct MetricsPage: Sendable {
  private var lines: [Metric: [UInt8]] = [:]

  package init() {}

  // MARK: - Values

  /// - Parameter labels: the values of the metric's labels, in their order.
  package mutating func set(_ metric: Metric, _ value: some BinaryInteger, _ labels: String...) {
    add(metric, String(value), labels)
  }

  package mutating func set(_ metric: Metric, _ value: Bool, _ labels: String...) {
    add(metric, value ? "1" : "0", labels)
  }

  /// Sets a duration in seconds, to the millisecond.
  package mutating func set(_ metric: Metric, _ duration: Duration, _ labels: String...) {
    let milliseconds = duration.nanoseconds / 1_000_000
    add(metric, Self.decimal(milliseconds), labels)
  }

  /// Sets a time in seconds since 1970.
  ///
  /// - Parameter time: nil leaves the sample out.
  package mutating func set(_ metric: Metric, _ time: Timestamp?, _ labels: String...) {
    if let time { add(metric, Self.decimal(time.nanoseconds / 1_000_000), labels) }
  }

  private static func decimal(_ milliseconds: Int64) -> String {
    let (whole, rest) = (abs(milliseconds / 1000), abs(milliseconds % 1000))
    let sign = milliseconds < 0 ? "-" : ""
    guard rest > 0 else { return "\(sign)\(whole)" }
    return "\(sign)\(whole)." + String(repeating: "0", count: 3 - String(rest).utf8.count) + String(rest)
  }

  private mutating func add(_ metric: Metric, _ value: String, _ labels: [String]) {
    var line = Array(metric.rawValue.utf8)
    for (index, (name, text)) in zip(metric.labels, labels).enumerated() {
      line.append(UInt8(ascii: index == 0 ? "{" : ","))
      line += Array("\(name)=\"".utf8)
      Self.escape(text, into: &line)
      line.append(UInt8(ascii: "\""))
    }
    line += Array("\(metric.labels.isEmpty ? "" : "}") \(value)\n".utf8)
    lines[metric, default: []] += line
  }

  /// Escapes the value of a label as both formats require.
  private static func escape(_ text: String, into line: inout [UInt8]) {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\\"), UInt8(ascii: "\""): line += [UInt8(ascii: "\\"), byte]
      case UInt8(ascii: "\n"): line += Array("\\n".utf8)
      default: line.append(byte)
      }
    }
  }

  // MARK: - Text

  package func text(_ format: MetricsFormat) -> [UInt8] {
    var text: [UInt8] = []
    for metric in Metric.allCases {
      guard let lines = lines[metric] else { continue }
      text += Array(Self.head(metric, format).utf8)
      text += lines
    }
    if format == .openMetrics { text += Array("# EOF\n".utf8) }
    return text
  }

  private static func head(_ metric: Metric, _ format: MetricsFormat) -> String {
    switch format {
    case .openMetrics:
      let name = metric.family
      let unit = metric.unit.map { "# UNIT \(name) \($0)\n" } ?? ""
      return "# HELP \(name) \(metric.help).\n# TYPE \(name) \(metric.kind.rawValue)\n\(unit)"
    case .text:
      // The text format has no type info.
      let kind = metric.kind == .counter ? Metric.Kind.counter : .gauge
      return "# HELP \(metric.rawValue) \(metric.help).\n# TYPE \(metric.rawValue) \(kind.rawValue)\n"
    }
  }
}

/// The format in which metrics are written.
package enum MetricsFormat: Sendable, CaseIterable {
  /// OpenMetrics 1.0.0.
  case openMetrics
  /// Prometheus' text format 0.0.4, which the node exporter reads from files.
  case text

  package var contentType: String {
    switch self {
    case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
    case .text: "text/plain; version=0.0.4; charset=utf-8"
    }
  }

  /// Chooses what a client prefers (RFC 9110, 12.5.1). A client that asks for neither format gets text.
  ///
  /// - Parameter accept: the value of the Accept header; `nil` where there is none.
  package init(accept: String?) {
    var (openMetrics, text) = (0.0, 0.0)
    for range in (accept ?? "").split(separator: ",") {
      let parts = range.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
      let quality = parts.dropFirst().first { $0.hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) } ?? 1
      let version = parts.dropFirst().first { $0.hasPrefix("version=") }?.dropFirst("version=".count)
      switch parts.first {
      case "application/openmetrics-text" where version == nil || version == "1.0.0" || version == "0.0.1":
        openMetrics = max(openMetrics, quality)
      case "text/plain" where version == nil || version == "0.0.4", "text/*", "*/*":
        text = max(text, quality)
      default: continue
      }
    }
    self = openMetrics > 0 && openMetrics >= text ? .openMetrics : .text
  }
}
