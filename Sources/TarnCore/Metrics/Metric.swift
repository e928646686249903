/// The metrics that an agent exports, by name. tarn-metrics(7) has them as a table.
///
/// Names follow Prometheus: the base unit at the end, `_total` for what only grows, `_info` for a constant 1 whose labels carry the
/// information. No label is a path or an address.
package enum Metric: String, CaseIterable, Sendable {
  // MARK: The agent

  case build = "tarn_build_info"
  case agentStart = "tarn_agent_start_timestamp_seconds"
  case settingsRead = "tarn_agent_settings_read_timestamp_seconds"
  case settingsRejected = "tarn_agent_settings_rejected"
  case passesAtWork = "tarn_agent_passes"
  case transfers = "tarn_agent_transfers"
  case restingHosts = "tarn_agent_resting_hosts"

  // MARK: Mirrors

  case mirror = "tarn_mirror_info"
  case state = "tarn_mirror_state"
  case added = "tarn_mirror_added_timestamp_seconds"
  case lastSuccess = "tarn_mirror_last_success_timestamp_seconds"
  case lastAttempt = "tarn_mirror_last_attempt_timestamp_seconds"
  case lastChange = "tarn_mirror_last_change_timestamp_seconds"
  case nextRun = "tarn_mirror_next_run_timestamp_seconds"
  case verified = "tarn_mirror_verified_timestamp_seconds"
  case feedChanged = "tarn_mirror_feed_changed_timestamp_seconds"
  case interval = "tarn_mirror_interval_seconds"
  case passDuration = "tarn_mirror_last_pass_duration_seconds"
  case passes = "tarn_mirror_passes_total"
  case repairs = "tarn_mirror_repairs_total"
  case errors = "tarn_mirror_errors_total"
  case files = "tarn_mirror_files"
  case bytes = "tarn_mirror_bytes"
  case received = "tarn_mirror_received_bytes_total"
  case mirrorTransfers = "tarn_mirror_transfers"
  case free = "tarn_mirror_folder_free_bytes"
  case usable = "tarn_mirror_folder_usable_bytes"
  case heldDeletions = "tarn_mirror_held_deletions"
  case heldSince = "tarn_mirror_held_since_timestamp_seconds"
  case trashFiles = "tarn_mirror_trash_files"
  case trashBytes = "tarn_mirror_trash_bytes"
  case watched = "tarn_mirror_watched"
  case watchLosses = "tarn_mirror_watch_losses_total"

  // MARK: Sessions

  case tasks = "tarn_session_tasks"
  case sessionReceived = "tarn_session_received_bytes_total"
  case partialBytes = "tarn_session_partial_bytes"
  case unacknowledged = "tarn_session_unacknowledged_events"

  package enum Kind: String, Sendable { case gauge, counter, info }

  package var kind: Kind {
    if rawValue.hasSuffix("_info") { return .info }
    return rawValue.hasSuffix("_total") ? .counter : .gauge
  }

  /// The name without the suffix of its kind, as OpenMetrics names the family.
  package var family: String {
    switch kind {
    case .gauge: rawValue
    case .counter: String(rawValue.dropLast("_total".utf8.count))
    case .info: String(rawValue.dropLast("_info".utf8.count))
    }
  }

  /// The unit, `seconds` or `bytes`; `nil` for plain counts.
  package var unit: String? { ["seconds", "bytes"].first { family.hasSuffix("_" + $0) } }

  /// The names of the labels, in their order.
  package var labels: [String] {
    switch self {
    case .agentStart, .settingsRead, .settingsRejected, .passesAtWork, .restingHosts: []
    case .build: ["version"]
    case .transfers: ["state"]
    case .mirror: ["mirror", "format"]
    case .state, .files, .bytes, .mirrorTransfers: ["mirror", "state"]
    case .passes: ["mirror", "result"]
    case .errors: ["mirror", "kind"]
    case .tasks: ["session", "state"]
    case .sessionReceived, .partialBytes, .unacknowledged: ["session"]
    default: ["mirror"]
    }
  }

  /// The help text: one sentence without its full stop.
  package var help: String {
    switch self {
    case .build: "The version of Tarn; the value is 1"
    case .agentStart: "When the agent started"
    case .settingsRead: "When the agent read the settings that hold"
    case .settingsRejected: "1 while newer settings have errors and the old ones stay in force, else 0"
    case .passesAtWork: "Passes at work"
    case .transfers: "Transfers of all mirrors and sessions that run or wait for a free slot"
    case .restingHosts: "Hosts that some mirrors leave alone for a while"
    case .mirror: "The format that the feed was read as; the value is 1"
    case .state: "1 for the state that the mirror is in, 0 for all others"
    case .added: "When the agent took up the mirror with its present feed and folder"
    case .lastSuccess: "When a pass last ended in sync"
    case .lastAttempt: "When a pass last began"
    case .lastChange: "When the agent last changed a file of the folder, since it started"
    case .nextRun: "When the next pass begins"
    case .verified: "When the files were last verified"
    case .feedChanged: "When the feed last changed, as its server says"
    case .interval: "The time from one planned pass to the next"
    case .passDuration: "How long the last pass took"
    case .passes: "Passes that ended, by result"
    case .repairs: "Repairs that changed a file of the watched folder"
    case .errors: "Errors of files and of passes, by kind"
    case .files: "Files that the feed wants, by how they stand"
    case .bytes: "Bytes of these files that are in place, and that are missing"
    case .received: "Bytes that came for the feed and the files"
    case .mirrorTransfers: "Transfers of the mirror that run or wait for a free slot"
    case .free: "Free space of the folder's file system"
    case .usable: "Free space of the folder's file system beyond the reserve"
    case .heldDeletions: "Deletions that wait for an approval"
    case .heldSince: "When the held deletions began to wait"
    case .trashFiles: "Files in the trash"
    case .trashBytes: "Bytes in the trash"
    case .watched: "1 while changes of the folder are seen at once, 0 while they are not"
    case .watchLosses: "How often the folder could not be watched any more"
    case .tasks: "Tasks of the session, by state"
    case .sessionReceived: "Bytes that came for the session"
    case .partialBytes: "Bytes of unfinished files of the session"
    case .unacknowledged: "Events of the session that nobody has acknowledged"
    }
  }
}

/// The subject of an error.
package enum MetricError: String, CaseIterable, Sendable {
  case fileFailed = "file-failed"
  case fileRefused = "file-refused"
  case fileConflict = "file-conflict"
  case feedUnreachable = "feed-unreachable"
  case feedMalformed = "feed-malformed"
  case folderUnusable = "folder-unusable"
  case inputOutput = "input-output"
  case permission
  case configuration
  case defect

  /// - Returns: `nil` for what waits for approval, which is no error.
  package init?(_ kind: Problem.Kind) {
    switch kind {
    case .failed: self = .fileFailed
    case .refused: self = .fileRefused
    case .conflict: self = .fileConflict
    case .held: return nil
    }
  }

  /// - Returns: nil for a pass that was stopped, or that found another process at work.
  package init?(_ kind: PassFailure.Kind) {
    switch kind {
    case .feedUnreachable: self = .feedUnreachable
    case .feedMalformed: self = .feedMalformed
    case .folderUnusable: self = .folderUnusable
    case .inputOutput: self = .inputOutput
    case .permission: self = .permission
    case .usage, .configuration: self = .configuration
    case .noAgent, .defect: self = .defect
    case .locked, .stopped: return nil
    }
  }
}
