/// The state of a session's task.
package enum TaskState: String, Codable, Sendable, CaseIterable {
  /// The task waits for `resume`.
  case suspended
  /// The task waits for its turn.
  case queued
  case running
  /// The task waits after a temporary failure, until a certain time, or for an answer of a client.
  case waiting
  case finished
  case failed
  case cancelled

  /// True for a state in which nothing more happens by itself.
  package var isEnd: Bool { self == .finished || self == .failed || self == .cancelled }
  /// True for a state in which the session still has work to do.
  package var isOpen: Bool { self == .queued || self == .running || self == .waiting }
}

/// A task as its session stores it.
package struct TaskRecord: Codable, Sendable, Equatable {
  /// The number within the session, from 1. It never changes and is never reused.
  package var number: Int64
  package var state: TaskState
  package var request: TaskRequest
  /// The path of the file, or its future path; `nil` until the server has named it.
  package var path: String?
  /// The size of the finished file, and its digest.
  package var bytes: UInt64?
  package var digest: String?
  /// Why the task waits or has failed: a stable code, and a message for people.
  package var code: String?
  package var message: String?
  /// The number of failures in a row.
  package var attempts: Int = 0
  /// When a waiting task is tried again.
  package var nextAttempt: Timestamp?
  package var added: Timestamp
  package var ended: Timestamp?
  /// The task's time limits; `nil` for a task that has ended.
  package var life: TaskLife?
  /// When its request was last known to be valid.
  package var fresh: Timestamp
  /// The identity of the finished file when it got its name.
  package var file: FileIdentity?
  /// Where that file came from; `nil` when it is not known.
  package var origin: FileOrigin?
  /// The inode of the directory that holds the partial file; `nil` where there is none.
  package var directory: UInt64?
  /// The ID of that directory's file system; `nil` when it is not known.
  package var disk: String?
  /// The path of that directory, when the file has a new destination in another one, or somebody renamed it.
  package var movedFrom: String?
  /// What a client wants of the running task. It is carried out when the transfer has stopped, also after a crash.
  package var wish: TaskWish?
  /// True when a client has changed the destination. No rule changes it again.
  package var isMoved = false

  private enum CodingKeys: String, CodingKey {
    case number, state, request, path, bytes, digest, code, message, attempts, nextAttempt, added, ended
  }

  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      number: try values.decode(Int64.self, forKey: .number),
      state: try values.decode(TaskState.self, forKey: .state),
      request: try values.decode(TaskRequest.self, forKey: .request),
      added: try values.decode(Timestamp.self, forKey: .added))
    path = try values.decodeIfPresent(String.self, forKey: .path)
    bytes = try values.decodeIfPresent(UInt64.self, forKey: .bytes)
    digest = try values.decodeIfPresent(String.self, forKey: .digest)
    code = try values.decodeIfPresent(String.self, forKey: .code)
    message = try values.decodeIfPresent(String.self, forKey: .message)
    attempts = try values.decode(Int.self, forKey: .attempts)
    nextAttempt = try values.decodeIfPresent(Timestamp.self, forKey: .nextAttempt)
    ended = try values.decodeIfPresent(Timestamp.self, forKey: .ended)
  }

  package init(number: Int64, state: TaskState, request: TaskRequest, added: Timestamp) {
    (self.number, self.state, self.request, self.added) = (number, state, request, added)
    fresh = added
  }

  /// Changes the state and what depends on it: outdated fields are cleared, and time counts only while the task is open.
  package mutating func enter(_ next: TaskState, _ terms: TaskTerms) {
    // Its bytes may have come a moment ago. Who knows that none came keeps the time: see `DownloadSession.fail`.
    if state == .running, next != .running { life?.stall = terms.life(of: request).stall }
    switch (state.isOpen, next.isOpen) {
    case (false, true): life = state == .suspended ? life?.moved(by: terms.age) : nil
    case (true, false): life = life?.moved(by: -terms.age)
    default: break
    }
    if next.isOpen { life = life ?? terms.life(of: request) }
    if next == .suspended, life == nil {
      life = TaskLife((request.limits ?? TaskLimits()).over(terms.limits))
    }
    if next.isEnd { life = nil }
    if next != .waiting { nextAttempt = nil }
    if next != .running { wish = nil }
    if next == .queued || next == .suspended { (code, message, ended) = (nil, nil, nil) }
    if next.isEnd { ended = terms.now }
    state = next
  }

  /// Begins the task, or begins it again: queued, suspended, or waiting until the time that the request names.
  package mutating func begin(_ next: TaskState, _ terms: TaskTerms) {
    life = nil
    if state.isOpen { state = .suspended }
    if next == .queued { enterQueue(terms) } else { enter(next, terms) }
  }

  /// Queues the task, or lets it wait until the time that the request names.
  package mutating func enterQueue(_ terms: TaskTerms) {
    enter(.queued, terms)
    if let moment = request.notBefore, moment > terms.now { delay(until: moment, terms) }
  }

  /// True when the file may replace another.
  package var replaces: Bool { request.existing == .replace || file != nil }

  /// Changes the destination. What was fetched is moved along when the task begins.
  package mutating func move(to: String, _ existing: TaskRequest.Existing?) {
    let place = TaskPlace(to)
    if directory != nil { movedFrom = movedFrom ?? TaskPlace(request.to)?.directory }
    if movedFrom == place?.directory { movedFrom = nil }
    isMoved = isMoved || to != request.to
    (request.to, request.existing) = (to, existing ?? request.existing)
    // A file that has bytes keeps its name in a folder: no server may be asked again what it is called.
    let earlier = directory == nil ? nil : path.flatMap { TaskPlace($0)?.name }
    path = place.flatMap { place in (place.name ?? earlier).map(place.path) }
  }

  /// Delays the task until a moment.
  package mutating func delay(until moment: Timestamp, _ terms: TaskTerms) {
    enter(.waiting, terms)
    // Its time counts from the moment when it may begin.
    life = terms.life(of: request).moved(by: max(0, moment.seconds - terms.now.seconds))
    (code, message, nextAttempt) = (Self.delayed, "it is not to begin before \(moment.rfc3339)", moment)
  }

  /// The code of a task that must not begin yet.
  package static let delayed = "not-before"
  /// The code of a task that a rule holds.
  package static let held = "held"
  /// The code of a task that waits for a while, in case a better request for it arrives.
  package static let stale = "request-old"
  /// The code of a task that waits for room in the session's quota. With a time for the next attempt, the disk lacks it.
  package static let lacksRoom = FolderFailure.Code.quota.rawValue
  /// Seconds after which a request may no longer be valid.
  package static let freshness: Int64 = 3600
}

/// An event of a session.
package struct SessionEvent: Codable, Sendable, Equatable {
  /// The kind of event. The raw value is stable.
  package enum Code: String, Codable, Sendable, CaseIterable {
    /// The server has answered for a file.
    case response
    case finished
    case failed
    case cancelled
    /// The task is tried again later.
    case waiting
    /// The task waits for an answer with another URL or other headers.
    case needsRequest = "needs-request"
    /// No task is queued, running or waiting any more.
    case allDelivered = "all-delivered"
    /// No task of a group is queued, running or waiting any more.
    case groupDelivered = "group-delivered"
    /// The events up to `lostUpTo` were dropped before anybody acknowledged them.
    case eventsLost = "events-lost"

    /// True when the event wakes a program.
    package var isNews: Bool { self != .response && self != .waiting }
  }

  /// The number within the session, from 1; 0 until it is stored. It only grows.
  package var number: Int64 = 0
  package var time: Timestamp
  package var code: Code
  /// The number of the task; `nil` for an event of the session.
  package var task: Int64?
  package var url: String?
  package var label: String?
  package var userInfo: String?
  package var group: String?
  /// The path of the file.
  package var path: String?
  package var bytes: UInt64?
  package var digest: String?
  /// The code of a failure.
  package var reason: String?
  package var message: String?
  /// When a waiting task is tried again.
  package var nextAttempt: Timestamp?
  /// The server's answer.
  package var response: TaskResponse?
  /// The beginning of a body that is not the file, as text: at most 64 KiB. A session keeps the newest 100.
  package var body: String?
  package var times: TaskTimes?
  /// Tasks finished and failed since the previous such event, for `all-delivered` and `group-delivered`.
  package var finished: Int?
  package var failed: Int?
  /// The number of the last event that is gone, for `events-lost`.
  package var lostUpTo: Int64?

  package init(_ code: Code, time: Timestamp, of task: TaskRecord? = nil) {
    (self.code, self.time) = (code, time)
    guard let task else { return }
    (self.task, url, path) = (task.number, task.request.url, task.path)
    (label, userInfo, group) = (task.request.label, task.request.userInfo, task.request.group)
    // A task that has begun again bears those of the file before.
    if code == .finished { (bytes, digest) = (task.bytes, task.digest) }
    (reason, message) = (task.code, task.message)
    nextAttempt = task.nextAttempt
    // An answer is about this attempt, and a running task bears the failure of the one before.
    if code == .response { (reason, message) = (nil, nil) }
  }
}

/// The head of a server's answer.
package struct TaskResponse: Codable, Sendable, Equatable {
  package var status: Int
  /// The URL after redirects.
  package var url: String
  package var contentType: String?
  package var contentLength: UInt64?
  package var etag: String?
  package var lastModified: String?
  /// The header lines (`Name: value`) in the order in which they came.
  package var headers: [String]?
  /// The URLs of the redirects, the requested one first.
  package var redirects: [String]?

  package init(_ head: ResponseHead) {
    (status, url) = (head.status, head.url)
    headers = head.fields.isEmpty ? nil : head.fields
    redirects = head.redirects.isEmpty ? nil : head.redirects
    (contentType, contentLength) = (head.contentType, head.contentRange?.total ?? head.contentLength)
    (etag, lastModified) = (head.etag, head.lastModified)
  }
}

/// Where a finished file came from, and what identifies its version there. Later answers, such as refusals, do not change it.
package struct FileOrigin: Codable, Sendable, Equatable {
  /// The URL that was asked for, before redirects.
  package var url: String
  /// The URL that answered, after redirects; `nil` when it is not known.
  package var answered: String?
  package var etag: String?
  package var lastModified: String?

  package init(url: String, answered: String? = nil, etag: String?, lastModified: String?) {
    (self.url, self.answered, self.etag, self.lastModified) = (url, answered, etag, lastModified)
  }
}

/// The times of the last attempt, in milliseconds.
package struct TaskTimes: Codable, Sendable, Equatable {
  /// The time from the beginning to the head of the answer; `nil` where none came.
  package var response: Int64?
  package var total: Int64

  package init(response: Int64?, total: Int64) { (self.response, self.total) = (response, total) }
}

/// The settings of a session.
package struct SessionSettings: Codable, Sendable, Equatable {
  /// The most transfers at a time, 1 to 64.
  package var transfers: Int?
  /// The program, with its arguments, to run when there are events and no reader is connected.
  package var wake: [String]?
  /// The program, with its arguments, to run when all downloads are done.
  package var hook: [String]?
  /// True to notify the desktop when all downloads are done.
  package var notify: Bool?
  /// True when a task whose request may no longer be valid waits until it is answered.
  package var holdsOld: Bool?
  package var limits: TaskLimits?
  package var rules: [ResponseRule]?
  /// `Name: value` lines for all requests. They are sent only to the origin of each URL.
  package var headers: [String]?
  /// True when cookies that servers set are sent back to them, while the agent runs.
  package var cookies: Bool?
  package var hosts: [HostTrust]?
  /// The proxy, `http://host:port` or `socks5h://host:port`; `nil` for none.
  package var proxy: String?
  package var quota: SessionQuota?

  package static let standardTransfers = 4

  package init() {}

  /// - Throws: what is wrong with the settings, for their author.
  package func validate() throws(TaskRequest.Refusal) {
    func refuse(_ message: String) -> TaskRequest.Refusal {
      .init(code: "settings-refused", message: message)
    }
    if let transfers, !(1...64).contains(transfers) { throw refuse("transfers is a number from 1 to 64") }
    for (name, command) in [("wake", wake), ("hook", hook)] {
      guard let command else { continue }
      let isText = !command.contains { $0.utf8.contains(0) }
      if isText, command.first?.hasPrefix("/") == true { continue }
      throw refuse("\(name) is an absolute path of a program, and its arguments, without NUL")
    }
    if let proxy, (try? PassOptions(values: [.proxy: [proxy]]).network())?.proxy == nil {
      throw refuse("proxy is a URL such as http://host:port or socks5h://host:port")
    }
    try limits?.validate()
    try TaskRequest.validate(headers: headers)
    try TaskRequest.refuseOwnHeaders(headers)
    for rule in rules ?? [] { try rule.validate() }
    var names: Set<HostName> = []
    for host in hosts ?? [] {
      guard let name = HostName(host.host) else {
        throw refuse(
          HostName.hasZone(host.host)
            ? "\(Printable.escape(host.host)): an address has no zone id here; leave out what begins with %"
            : "\(Printable.escape(host.host)) is no name or address of a host, without a port")
      }
      if !names.insert(name).inserted { throw refuse("\(Printable.escape(host.host)) is there twice") }
      if host.pins?.allSatisfy({ $0.hasPrefix("sha256//") }) == false {
        throw refuse(
          "a pin of \(Printable.escape(host.host)) is sha256// and the digest of a public key in Base64")
      }
      if let credential = host.credential, !credential.hasPrefix("/"),
        credential.isEmpty || credential.contains("/")
      {
        throw refuse(
          "the credential of \(Printable.escape(host.host)) is the absolute path of a file, or the name of a credential of the service"
        )
      }
      if host.ca?.hasPrefix("/") == false {
        throw refuse("the ca of \(Printable.escape(host.host)) is the absolute path of a PEM file")
      }
    }
    if let keptFor = quota?.keptFor, !(0...315_360_000).contains(keptFor) {
      throw refuse("keptFor is a number of seconds, from 0 to 315360000")
    }
    if let tasks = quota?.tasks, tasks < 1 { throw refuse("a quota of tasks is a number of at least 1") }
  }
}

/// The trust settings and the credential of one host.
package struct HostTrust: Codable, Sendable, Equatable {
  /// The name or address of the host, without port: compare it as a `HostName`.
  package var host: String
  /// A PEM file of the authorities that may vouch for the host, in place of the system's.
  package var ca: String?
  /// The public keys of which the certificate must have one, as `sha256//BASE64`.
  package var pins: [String]?
  /// A file with `user:password` or a token, read for each task. It is sent only to this host, also over plain http.
  package var credential: String?

  package init(_ host: String) { self.host = host }
}

/// The limits of what a session may hold.
package struct SessionQuota: Codable, Sendable, Equatable {
  /// The most tasks that have not ended.
  package var tasks: Int?
  /// The most bytes of unfinished downloads, including what running ones still expect.
  package var bytes: UInt64?
  /// The most bytes of partial files that nothing works on. The oldest are removed first.
  package var kept: UInt64?
  /// Seconds for which such a partial file is kept.
  package var keptFor: Int?

  package static let standardTasks = 1_000_000
  package static let standardKeptFor = 30 * 86_400

  package init() {}
}

/// Coded as RFC 3339 text.
extension Timestamp: Codable {
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let time = Timestamp(rfc3339: try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "no time of RFC 3339")
    }
    self = time
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(rfc3339)
  }
}

extension RelativePath {
  /// Makes the path that stands for a task in the engine.
  package init(task number: Int64) { self.init(trusted: Array(String(number).utf8)) }

  /// The number of the task; 0 for a path that stands for none.
  package var task: Int64 { Int64(String(decoding: bytes, as: UTF8.self)) ?? 0 }
}
