internal import TarnCore

/// A rule that decides about a download by the head of the response: its status, media type and size. The first matching rule
/// decides.
///
/// Rules of a request come before those of its session. The agent stores both, so they also hold while no program runs. When no
/// rule matches, the statuses 200 to 299 deliver the file. Others end or delay the task as the agent's error table says.
public struct DownloadRule: Sendable, Hashable {
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

  /// The statuses that match, from 200 to 599. `nil` for 200 to 299.
  public var statuses: [Int]?
  /// The media types that match, such as `audio/mpeg` or `video/*`. `nil` for any.
  public var mediaTypes: [String]?
  /// The smallest and the largest size that match, in bytes. A file of unknown size does not match when either is set.
  public var leastBytes: UInt64?
  public var mostBytes: UInt64?
  public var action: Action

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

/// The time limits of a download, in whole seconds. `nil` for the session's limit, and in a session for the standard one.
public struct TimeLimits: Sendable, Hashable {
  /// The longest time without a byte from the server. After it the task is tried again. The standard is a minute.
  public var idle: Duration?
  /// The longest time in total, from the moment when the task may begin. Waiting counts, suspension does not. The standard is seven
  /// days.
  public var whole: Duration?
  /// The longest time without a byte of progress, over all attempts. The standard is 14 days.
  public var withoutProgress: Duration?

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

/// The trust in one host, and the credential for it.
public struct TrustedHost: Sendable, Hashable {
  /// A name or an address, without a port and without a zone id.
  public var host: String
  /// The absolute path of a PEM file with the certificate authorities to trust for this host, instead of the system's.
  public var authorities: String?
  /// The public keys of which the certificate must have one: `sha256//` and the SHA-256 of the key (DER, SubjectPublicKeyInfo) in
  /// Base64.
  public var pinnedKeys: [String]?
  /// A reference to the host's secret: the absolute path of a file, or the name of a credential of the agent's service
  /// (systemd.exec(5)). The first line is `user:password`, or a token. The agent reads it for each task. No event and no list shows
  /// it.
  public var credential: String?

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

/// The limits of what a session may hold.
public struct Quota: Sendable, Hashable {
  /// The tasks that have not ended. `nil` for a million.
  public var tasks: Int?
  /// The bytes of unfinished downloads, including what running ones still have to fetch. `nil` for no limit. Tasks beyond the limit
  /// wait.
  public var bytes: UInt64?
  /// The bytes of partial files that no task works at. The oldest are removed first. `nil` for no limit.
  public var partialBytes: UInt64?
  /// The time for which such a partial file is kept. `nil` for 30 days.
  public var partialAge: Duration?

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
