internal import TarnCore

/// What becomes of a download by the head of the server's answer: the status, the media type and the size. The first rule that fits decides.
///
/// Rules of a request go before those of its session. They are stored with both, and hold while no program runs. Where none fits, the
/// statuses 200 to 299 bring the file, and others end or delay the task as its error table says.
public struct DownloadRule: Sendable, Hashable {
  public enum Action: Sendable, Hashable {
    /// The body is the file, whatever the status.
    case accept
    /// The task fails with the reason `refused-by-rule`.
    case cancel
    /// The task waits, and `DownloadEvent.Kind.needsRequest` is told: `DownloadTask.refresh` lets it go on, `DownloadTask.move(to:)` says
    /// where to, `DownloadTask.cancel()` ends it. The server is asked again then.
    case hold
    /// The file goes there: an absolute path, or a folder with `/` at its end.
    case place(String)
  }

  /// It fits these statuses only, from 200 to 599; nil for 200 to 299.
  public var statuses: [Int]?
  /// It fits these media types only, such as `audio/mpeg` or `video/*`; nil for any.
  public var mediaTypes: [String]?
  /// It fits files of so many bytes and more, or of so many and fewer. A file of unknown size does not fit where one of them is said.
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

/// How long a download may take. Whole seconds; nil for what the session says, and there for the standard.
public struct TimeLimits: Sendable, Hashable {
  /// Without a byte from the server: then the task is tried again. The standard is a minute.
  public var idle: Duration?
  /// In all, from the moment when it may begin. Waiting counts, suspension does not. The standard is seven days.
  public var whole: Duration?
  /// Without a byte of progress over all attempts. The standard is 14 days.
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

/// How one host is trusted, and what it is told.
public struct TrustedHost: Sendable, Hashable {
  /// A name or an address, without port.
  public var host: String
  /// The absolute path of a PEM file with the authorities that may vouch for it, in place of the system's.
  public var authorities: String?
  /// Its certificate has one of these public keys: `sha256//` and the SHA-256 of the key (DER, SubjectPublicKeyInfo) in Base64.
  public var pinnedKeys: [String]?
  /// A reference to its secret: the absolute path of a file, or the name of a credential of the agent's service (systemd.exec(5)). Its first
  /// line is `user:password`, or a token. The agent reads it for each task; no event and no list shows it.
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

/// How much a session may hold.
public struct Quota: Sendable, Hashable {
  /// Tasks that have not ended; nil for a million.
  public var tasks: Int?
  /// Bytes of unfinished downloads, with what is still to come of those that run; nil for no bound. What would be more waits.
  public var bytes: UInt64?
  /// Bytes of partial files that nothing works at: the oldest go first; nil for no bound.
  public var partialBytes: UInt64?
  /// For how long such a partial file is kept; nil for 30 days.
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
