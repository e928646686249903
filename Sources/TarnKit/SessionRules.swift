internal import TarnCore

/// A rule decides about a download by the head of the response: its status, media type and size. The first matching rule decides.
///
/// Rules of a request come before those of its session. The agent stores both, so they also hold while no program runs. When no
/// rule matches, the statuses 200, 203 and 206 deliver the file. Others end or delay the task as the agent's error table says.
public struct DownloadRule: Sendable, Hashable {
  /// The action says what happens to a download that the rule matches.
  public enum Action: Sendable, Hashable {
    /// The body becomes the file, whatever the status.
    case accept
    /// The task fails with the reason `refused-by-rule`.
    case cancel
    /// The task waits, and `DownloadEvent.Kind.needsRequest` comes. `DownloadTask.refresh` continues it, `DownloadTask.move(to:)`
    /// sets the destination, and `DownloadTask.cancel()` ends it. When it continues, the server is asked again.
    case hold
    /// The file goes to this absolute path, or into this folder when it ends with `/`.
    case place(String)
  }

  /// The rule matches these statuses, from 200 to 599. `nil` means 200 to 299.
  public var statuses: [Int]?
  /// The rule matches these media types, such as `audio/mpeg` or `video/*`. `nil` means any, and also none.
  public var mediaTypes: [String]?
  /// The rule matches files of at least this many bytes. A file of unknown size does not match. `nil` means no lower limit.
  public var leastBytes: UInt64?
  /// The rule matches files of at most this many bytes. A file of unknown size does not match. `nil` means no upper limit.
  public var mostBytes: UInt64?
  /// This happens to a download that the rule matches.
  public var action: Action

  /// Makes a rule that matches when all its conditions do. The agent checks it when the request or the settings are stored.
  ///
  /// - Parameters:
  ///   - action: what happens to a download that matches.
  ///   - statuses: the statuses that match; see `statuses`.
  ///   - mediaTypes: the media types that match; see `mediaTypes`.
  ///   - leastBytes: the smallest size that matches, in bytes; see `leastBytes`.
  ///   - mostBytes: the largest size that matches, in bytes; see `mostBytes`.
  public init(
    _ action: Action, statuses: [Int]? = nil, mediaTypes: [String]? = nil, leastBytes: UInt64? = nil,
    mostBytes: UInt64? = nil
  ) {
    (self.action, self.statuses, self.mediaTypes) = (action, statuses, mediaTypes)
    (self.leastBytes, self.mostBytes) = (leastBytes, mostBytes)
  }

  var stored: ResponseRule {
    let action: ResponseRule.Action =
      switch self.action {
      case .accept: .accept
      case .cancel: .cancel
      case .hold: .hold
      case .place: .place
      }
    var rule = ResponseRule(action)
    if case .place(let to) = self.action { rule.to = to }
    (rule.status, rule.types, rule.leastBytes, rule.mostBytes) = (statuses, mediaTypes, leastBytes, mostBytes)
    return rule
  }

  init(_ rule: ResponseRule) {
    let action: Action =
      switch rule.then {
      case .accept: .accept
      case .cancel: .cancel
      case .hold: .hold
      case .place: .place(rule.to ?? "")
      }
    self.init(
      action, statuses: rule.status, mediaTypes: rule.types, leastBytes: rule.leastBytes,
      mostBytes: rule.mostBytes)
  }
}

/// These limits say how long a download may take. Each is from 1 to 315,360,000 seconds; fractions of a second are cut off. `nil`
/// stands for the session's limit, and in a session for the default.
public struct TimeLimits: Sendable, Hashable {
  /// The server may send nothing for this long. After that the task waits, and is tried again. The default is a minute.
  public var idle: Duration?
  /// The task may take this long in total, from the moment when it may begin. Waiting counts, suspension does not. After that the
  /// task fails with the reason `time-over`. The default is seven days.
  public var whole: Duration?
  /// The task may go without a byte of progress for this long, over all attempts. After that it fails with the reason `no-progress`.
  /// The default is 14 days.
  public var withoutProgress: Duration?

  /// Makes time limits. The agent checks them when the request or the settings are stored.
  ///
  /// - Parameters:
  ///   - idle: the longest silence of the server; see `idle`.
  ///   - whole: the longest time in total; see `whole`.
  ///   - withoutProgress: the longest time without progress; see `withoutProgress`.
  public init(idle: Duration? = nil, whole: Duration? = nil, withoutProgress: Duration? = nil) {
    (self.idle, self.whole, self.withoutProgress) = (idle, whole, withoutProgress)
  }

  var stored: TaskLimits {
    func seconds(_ duration: Duration?) -> Int? { duration.map { Int($0.components.seconds) } }
    return TaskLimits(idle: seconds(idle), whole: seconds(whole), stall: seconds(withoutProgress))
  }

  init(_ limits: TaskLimits) {
    func duration(_ seconds: Int?) -> Duration? { seconds.map { .seconds($0) } }
    self.init(
      idle: duration(limits.idle), whole: duration(limits.whole), withoutProgress: duration(limits.stall))
  }
}

/// A trusted host has certificate authorities, public keys or a credential of its own.
public struct TrustedHost: Sendable, Hashable {
  /// The settings hold for the host with this name or address. It has no port and no zone id.
  public var host: String
  /// The certificate authorities in this PEM file, an absolute path, are trusted for this host instead of the system's. `nil` means
  /// the system's.
  public var authorities: String?
  /// The certificate must have one of these public keys. Each is `sha256//` and the SHA-256 of the key (DER, SubjectPublicKeyInfo)
  /// in Base64. `nil` means any key.
  public var pinnedKeys: [String]?
  /// This refers to the host's secret. It is the absolute path of a file, or the name of a credential of the agent's service
  /// (systemd.exec(5)). The first line is `user:password`, or a token. The agent reads it for each task. No event and no list shows
  /// it. `nil` means no secret.
  public var credential: String?

  /// Makes the settings of one host. The files are not opened until a task needs them.
  ///
  /// - Parameters:
  ///   - host: the name or address; see `host`.
  ///   - authorities: the path of a PEM file; see `authorities`.
  ///   - pinnedKeys: the public keys to accept; see `pinnedKeys`.
  ///   - credential: where the secret is; see `credential`.
  public init(
    _ host: String, authorities: String? = nil, pinnedKeys: [String]? = nil, credential: String? = nil
  ) {
    (self.host, self.authorities, self.pinnedKeys, self.credential) = (
      host, authorities, pinnedKeys, credential
    )
  }

  var stored: HostTrust {
    var trust = HostTrust(host)
    (trust.ca, trust.pins, trust.credential) = (authorities, pinnedKeys, credential)
    return trust
  }

  init(_ trust: HostTrust) {
    self.init(trust.host, authorities: trust.ca, pinnedKeys: trust.pins, credential: trust.credential)
  }
}

/// A quota limits what a session may hold.
public struct Quota: Sendable, Hashable {
  /// The session may have this many tasks that have not ended. More are refused with the code `too-many-tasks`. `nil` means a
  /// million.
  public var tasks: Int?
  /// Unfinished downloads may have this many bytes, including what running ones still have to fetch. Tasks beyond the limit wait,
  /// and a larger file fails. `nil` means no limit.
  public var bytes: UInt64?
  /// Partial files that no task works at may have this many bytes. The oldest are removed first. `nil` means no limit.
  public var partialBytes: UInt64?
  /// Such a partial file is kept for this long; fractions of a second are cut off. `nil` means 30 days.
  public var partialAge: Duration?

  /// Makes a quota. The agent checks it when the settings are stored.
  ///
  /// - Parameters:
  ///   - tasks: the most tasks that have not ended; see `tasks`.
  ///   - bytes: the most bytes of unfinished downloads; see `bytes`.
  ///   - partialBytes: the most bytes of idle partial files; see `partialBytes`.
  ///   - partialAge: how long an idle partial file is kept; see `partialAge`.
  public init(
    tasks: Int? = nil, bytes: UInt64? = nil, partialBytes: UInt64? = nil, partialAge: Duration? = nil
  ) {
    (self.tasks, self.bytes, self.partialBytes, self.partialAge) = (tasks, bytes, partialBytes, partialAge)
  }

  var stored: SessionQuota {
    var quota = SessionQuota()
    (quota.tasks, quota.bytes, quota.kept) = (tasks, bytes, partialBytes)
    quota.keptFor = partialAge.map { Int($0.components.seconds) }
    return quota
  }

  init(_ quota: SessionQuota) {
    self.init(
      tasks: quota.tasks, bytes: quota.bytes, partialBytes: quota.kept,
      partialAge: quota.keptFor.map { .seconds($0) })
  }
}
