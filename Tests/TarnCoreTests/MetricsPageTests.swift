import TarnCore
import Testing

/// Metrics as text.
@Suite struct MetricsPageTests {
  private func text(_ page: MetricsPage, _ format: MetricsFormat = .text) -> String {
    String(decoding: page.text(format), as: UTF8.self)
  }

  @Test func bothFormatsHaveTheSameSamples() {
    var page = MetricsPage()
    page.set(.build, 1, "1.2")
    page.set(.received, UInt64.max, "m")
    page.set(.passDuration, Duration.milliseconds(1_005), "m")
    #expect(
      text(page) == """
        # HELP tarn_build_info The version of Tarn; the value is 1.
        # TYPE tarn_build_info gauge
        tarn_build_info{version="1.2"} 1
        # HELP tarn_mirror_last_pass_duration_seconds How long the last pass took.
        # TYPE tarn_mirror_last_pass_duration_seconds gauge
        tarn_mirror_last_pass_duration_seconds{mirror="m"} 1.005
        # HELP tarn_mirror_received_bytes_total Bytes that came for the feed and the files.
        # TYPE tarn_mirror_received_bytes_total counter
        tarn_mirror_received_bytes_total{mirror="m"} 18446744073709551615

        """)
    #expect(
      text(page, .openMetrics) == """
        # HELP tarn_build The version of Tarn; the value is 1.
        # TYPE tarn_build info
        tarn_build_info{version="1.2"} 1
        # HELP tarn_mirror_last_pass_duration_seconds How long the last pass took.
        # TYPE tarn_mirror_last_pass_duration_seconds gauge
        # UNIT tarn_mirror_last_pass_duration_seconds seconds
        tarn_mirror_last_pass_duration_seconds{mirror="m"} 1.005
        # HELP tarn_mirror_received_bytes Bytes that came for the feed and the files.
        # TYPE tarn_mirror_received_bytes counter
        # UNIT tarn_mirror_received_bytes bytes
        tarn_mirror_received_bytes_total{mirror="m"} 18446744073709551615
        # EOF

        """)
  }

  @Test func labelsAreEscapedAndFamiliesStayTogether() {
    var page = MetricsPage()
    page.set(.repairs, 1, "a\"\\\n\u{E9}")
    page.set(.watchLosses, 7, "a")
    page.set(.repairs, 2, "b")
    let lines = text(page).split(separator: "\n").filter { !$0.hasPrefix("#") }
    #expect(
      lines == [
        "tarn_mirror_repairs_total{mirror=\"a\\\"\\\\\\n\u{E9}\"} 1",
        "tarn_mirror_repairs_total{mirror=\"b\"} 2",
        "tarn_mirror_watch_losses_total{mirror=\"a\"} 7",
      ])
  }

  @Test func timesAreSeconds() {
    var page = MetricsPage()
    page.set(.agentStart, Timestamp(rfc3339: "2026-11-28T12:00:00Z"))
    page.set(.lastSuccess, Timestamp(nanoseconds: -1_500_000_000), "m")
    page.set(.lastAttempt, Timestamp?.none, "m")
    let lines = text(page).split(separator: "\n").filter { !$0.hasPrefix("#") }
    #expect(
      lines == [
        "tarn_agent_start_timestamp_seconds 1795867200",
        "tarn_mirror_last_success_timestamp_seconds{mirror=\"m\"} -1.500",
      ])
  }

  @Test func nothingIsNothing() {
    #expect(text(MetricsPage()) == "")
    #expect(text(MetricsPage(), .openMetrics) == "# EOF\n")
  }

  @Test(
    arguments: [
      (nil, MetricsFormat.text), ("", .text), ("*/*", .text), ("text/html", .text),
      ("application/openmetrics-text", .openMetrics),
      ("Application/OpenMetrics-Text; Version=1.0.0", .openMetrics),
      ("application/openmetrics-text; version=2.0.0", .text),
      // Prometheus 2.42 and 3.
      (
        "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
        .openMetrics
      ),
      (
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
        .openMetrics
      ),
      ("text/plain, application/openmetrics-text;q=0.5", .text),
      ("text/plain;q=0.4, application/openmetrics-text;q=0.5", .openMetrics),
      ("application/openmetrics-text;q=0", .text), ("application/openmetrics-text;q=x", .openMetrics),
    ] as [(String?, MetricsFormat)])
  func theClientChooses(accept: String?, format: MetricsFormat) {
    #expect(MetricsFormat(accept: accept) == format)
  }

  // MARK: - What documents give

  @Test func aMirrorThatNeverRanHasNoTimes() {
    var page = MetricsPage()
    page.add(StatusDocument(name: "m", feed: "https://u:p@h/secret", folder: "/srv/secret", state: "idle"))
    let text = text(page)
    #expect(!text.contains("timestamp") && !text.contains("secret") && !text.contains("watched"))
    #expect(text.contains("tarn_mirror_state{mirror=\"m\",state=\"idle\"} 1\n"))
    #expect(text.contains("tarn_mirror_state{mirror=\"m\",state=\"failing\"} 0\n"))
    #expect(text.contains("tarn_mirror_held_deletions{mirror=\"m\"} 0\n"))
  }

  @Test func aMirrorTellsAllThatItsStatusSays() {
    var document = StatusDocument(name: "m", feed: "f", folder: "/f", state: "held")
    document.format = "checksum list"
    (document.lastSuccess, document.upstreamChangedAt) = ("2026-11-28T12:00:00Z", "2026-11-28T11:00:00Z")
    (document.entries.current, document.entries.failed) = (7, 2)
    (document.bytes.current, document.bytes.pending) = (70, nil)
    document.held = .init(plan: "p", deletions: 4, since: "2026-11-28T10:00:00Z")
    document.watch.mode = "polling"
    (document.trashFiles, document.trashBytes) = (1, 10)
    document.transfers = [
      .init(path: "p", received: 1, total: 2, rate: 3, source: "https://u@h/"),
      .init(path: "q", received: 1, total: 2, rate: 3, source: "h", isWaiting: true),
    ]
    document.waitingTransfers = 9
    var page = MetricsPage()
    page.add(document)
    let lines = Set(text(page).split(separator: "\n").map(String.init))
    for line in [
      "info{mirror=\"m\",format=\"checksum list\"} 1", "state{mirror=\"m\",state=\"held\"} 1",
      "last_success_timestamp_seconds{mirror=\"m\"} 1795867200",
      "feed_changed_timestamp_seconds{mirror=\"m\"} 1795863600", "files{mirror=\"m\",state=\"current\"} 7",
      "files{mirror=\"m\",state=\"failed\"} 2", "bytes{mirror=\"m\",state=\"current\"} 70",
      "held_deletions{mirror=\"m\"} 4", "held_since_timestamp_seconds{mirror=\"m\"} 1795860000",
      "watched{mirror=\"m\"} 0", "trash_files{mirror=\"m\"} 1", "trash_bytes{mirror=\"m\"} 10",
      "transfers{mirror=\"m\",state=\"running\"} 1", "transfers{mirror=\"m\",state=\"waiting\"} 9",
    ] {
      #expect(lines.contains("tarn_mirror_" + line), "\(line)")
    }
    // Nobody knows how much is missing.
    #expect(!lines.contains { $0.contains("state=\"pending\"") && $0.contains("_bytes") })
  }

  @Test func aSessionIsCounted() {
    var page = MetricsPage()
    var session = SessionDocument(
      id: "s", settings: SessionSettings(), isClosed: false, tasks: ["queued": 3], lastEvent: 9,
      acknowledged: 4)
    session.partialBytes = 12
    page.add(session, received: 40)
    let text = text(page)
    for line in [
      "tasks{session=\"s\",state=\"queued\"} 3", "tasks{session=\"s\",state=\"failed\"} 0",
      "received_bytes_total{session=\"s\"} 40", "partial_bytes{session=\"s\"} 12",
      "unacknowledged_events{session=\"s\"} 5",
    ] {
      #expect(text.contains("tarn_session_\(line)\n"), "\(line)")
    }
  }

  // MARK: - The table

  @Test func namesFollowPrometheus() {
    for metric in Metric.allCases {
      #expect(
        metric.rawValue.hasPrefix("tarn_") && metric.rawValue.allSatisfy { $0.isLowercase || $0 == "_" })
      #expect(!metric.help.hasSuffix(".") && !metric.help.isEmpty)
      #expect(
        Set(metric.labels).isSubset(of: ["mirror", "session", "state", "result", "kind", "version", "format"])
      )
      #expect(metric.rawValue.hasPrefix("tarn_mirror_") == (metric.labels.first == "mirror"))
      #expect(metric.rawValue.hasPrefix("tarn_session_") == (metric.labels.first == "session"))
    }
    #expect(Metric.received.kind == .counter && Metric.received.unit == "bytes")
    #expect(Metric.lastSuccess.unit == "seconds" && Metric.files.unit == nil)
  }

  @Test func whatIsNoErrorIsNotCounted() {
    #expect(MetricError(Problem.Kind.held) == nil && MetricError(PassFailure.Kind.stopped) == nil)
    #expect(MetricError(PassFailure.Kind.locked) == nil)
    let all = Set(
      PassFailure.Kind.allCases.compactMap { MetricError($0) }
        + Problem.Kind.allCases.compactMap { MetricError($0) })
    #expect(all == Set(MetricError.allCases))
  }
}
