/// What a task of a session does.
package enum TaskState: String, Codable, Sendable, CaseIterable {
  /// It waits for `resume`.
  case suspended
  /// It waits for its turn.
  case queued
  case running
  /// Something failed that may be over in a while, or it is not to begin before a moment.
  case waiting
  case finished
  case failed
  case cancelled

  /// Nothing more happens by itself.
  package var isEnd: Bool { self == .finished || self == .failed || self == .cancelled }
  /// The session is not over while it has such a task.
  package var isOpen: Bool { self == .queued || self == .running || self == .waiting }
}

/// A task, as its session keeps it.
package struct TaskRecord: Codable, Sendable, Equatable {
  /// Of the session, from 1; never changes, and is never given twice.
  package var number: Int64
  package var state: TaskState
  package var request: TaskRequest
  /// Where the file is, or is going to be; nil until the server has named it.
  package var path: String?
  /// Of the finished file.
  package var bytes: UInt64?
  package var digest: String?
  /// Why it waits, or has failed: a stable code, and words for a person.
  package var code: String?
  package var message: String?
  /// Failures in a row.
  package var attempts: Int = 0
  /// When a task that waits is tried again.
  package var nextAttempt: Timestamp?
  package var added: Timestamp
  package var ended: Timestamp?
  /// nil for a task that has ended.
  package var life: TaskLife?
  /// When its request was known to be good for the last time.
  package var fresh: Timestamp
  /// Of the finished file, when it got its name.
  package var file: FileIdentity?
  /// Inode of the directory that its partial file lies in; nil where it has none.
  package var directory: UInt64?
  /// Path of that directory, where the file is to go to another one by now.
  package var movedFrom: String?

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

  /// Changes the state, and what goes with it: what is over is forgotten, and time counts only while the task is open.
  package mutating func enter(_ next: TaskState, _ terms: TaskTerms) {
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
    if next == .queued || next == .suspended { (code, message, ended) = (nil, nil, nil) }
    if next.isEnd { ended = terms.now }
    state = next
  }

  /// Begins, or begins anew: queued, suspended, or not before the moment that it names.
  package mutating func begin(_ next: TaskState, _ terms: TaskTerms) {
    life = nil
    if state.isOpen { state = .suspended }
    enter(next, terms)
    if next == .queued, let moment = request.notBefore, moment > terms.now { delay(until: moment, terms) }
  }

  /// Its file may take the place of another.
  package var replaces: Bool { request.existing == .replace || file != nil }

  /// Its file goes to another place. What was fetched goes along when the task begins.
  package mutating func move(to: String, _ existing: TaskRequest.Existing?) {
    let place = TaskPlace(to)
    if directory != nil { movedFrom = movedFrom ?? TaskPlace(request.to)?.directory }
    if movedFrom == place?.directory { movedFrom = nil }
    (request.to, request.existing) = (to, existing ?? request.existing)
    path = place.flatMap { place in place.name.map(place.path) }
  }

  /// It is not to begin yet.
  package mutating func delay(until moment: Timestamp, _ terms: TaskTerms) {
    enter(.waiting, terms)
    (code, message, nextAttempt) = (Self.delayed, "it is not to begin before \(moment.rfc3339)", moment)
  }

  /// The code of what is not to begin yet.
  package static let delayed = "not-before"
  /// The code of what a rule holds.
  package static let held = "held"
  /// The code of what waits for a while whether somebody has a better request for it.
  package static let stale = "request-old"
  /// Seconds after which a request may be good no more.
  package static let freshness: Int64 = 3600
}

/// Something that happened to a session.
package struct SessionEvent: Codable, Sendable, Equatable {
  /// The raw value is stable.
  package enum Code: String, Codable, Sendable, CaseIterable {
    /// The server answered for a file.
    case response
    case finished
    case failed
    case cancelled
    /// It is tried again later.
    case waiting
    /// It waits for an answer: another URL, or other headers.
    case needsRequest = "needs-request"
    /// No task is queued, running or waiting any more.
    case allDelivered = "all-delivered"
    /// All tasks of a group have ended.
    case groupDelivered = "group-delivered"
    /// Events up to this one were dropped before anybody had acknowledged them.
    case eventsLost = "events-lost"

    /// A program is woken for it.
    package var isNews: Bool { self != .response && self != .waiting }
  }

  /// Of the session, from 1; 0 until it is stored. Only grows.
  package var number: Int64 = 0
  package var time: Timestamp
  package var code: Code
  /// nil for what is about the session.
  package var task: Int64?
  package var url: String?
  package var label: String?
  package var userInfo: String?
  package var group: String?
  /// Where the file is.
  package var path: String?
  package var bytes: UInt64?
  package var digest: String?
  /// Of a failure.
  package var reason: String?
  package var message: String?
  /// Of a task that waits.
  package var nextAttempt: Timestamp?
  /// What the server said.
  package var response: TaskResponse?
  /// The beginning of a body that is no file, as text: 64 KiB at most. Of a session the newest 100 are kept.
  package var body: String?
  package var times: TaskTimes?
  /// Of `all-delivered` and `group-delivered`: since the one before.
  package var finished: Int?
  package var failed: Int?
  /// Of `events-lost`: the number of the last one that is gone.
  package var lostUpTo: Int64?

  package init(_ code: Code, time: Timestamp, of task: TaskRecord? = nil) {
    (self.code, self.time) = (code, time)
    guard let task else { return }
    (self.task, url, path) = (task.number, task.request.url, task.path)
    (label, userInfo, group) = (task.request.label, task.request.userInfo, task.request.group)
    (bytes, digest, reason, message) = (task.bytes, task.digest, task.code, task.message)
    nextAttempt = task.nextAttempt
  }
}

/// The head of an answer.
package struct TaskResponse: Codable, Sendable, Equatable {
  package var status: Int
  /// After redirects.
  package var url: String
  package var contentType: String?
  package var contentLength: UInt64?
  package var etag: String?
  package var lastModified: String?
  /// `Name: value` lines, in the order in which they came.
  package var headers: [String]?
  /// The URLs that led there, the one that was asked for first.
  package var redirects: [String]?

  package init(_ head: ResponseHead) {
    (status, url) = (head.status, head.url)
    headers = head.fields.isEmpty ? nil : head.fields
    redirects = head.redirects.isEmpty ? nil : head.redirects
    (contentType, contentLength) = (head.contentType, head.contentRange?.total ?? head.contentLength)
    (etag, lastModified) = (head.etag, head.lastModified)
  }
}

/// Of the last attempt, in milliseconds.
package struct TaskTimes: Codable, Sendable, Equatable {
  /// From its beginning to the head of the answer; nil where none came.
  package var response: Int64?
  package var total: Int64

  package init(response: Int64?, total: Int64) { (self.response, self.total) = (response, total) }
}

/// What a session is set to.
package struct SessionSettings: Codable, Sendable, Equatable {
  /// Transfers at a time, 1 to 64.
  package var transfers: Int?
  /// Run when there is news and no reader is connected: a program, and its arguments.
  package var wake: [String]?
  /// Run when all downloads are done: a program, and its arguments.
  package var hook: [String]?
  /// The desktop is told when all downloads are done.
  package var notify: Bool?
  /// A task whose request may be good no more waits until it is answered.
  package var holdsOld: Bool?
  package var limits: TaskLimits?
  package var rules: [ResponseRule]?
  /// `Name: value` lines of all requests; they go to the origin of each URL only.
  package var headers: [String]?
  /// What servers set is sent back to them, for as long as the agent runs.
  package var cookies: Bool?
  package var hosts: [HostTrust]?
  /// `http://host:port` or `socks5h://host:port`; nil for none.
  package var proxy: String?
  package var quota: SessionQuota?

  package static let standardTransfers = 4

  package init() {}

  /// - Throws: what is wrong with it, for who wrote it.
  package func validate() throws(TaskRequest.Refusal) {
    func refuse(_ message: String) -> TaskRequest.Refusal {
      .init(code: "settings-refused", message: message)
    }
    if let transfers, !(1...64).contains(transfers) { throw refuse("transfers is a number from 1 to 64") }
    for (name, command) in [("wake", wake), ("hook", hook)] {
      guard let command, command.first?.hasPrefix("/") != true else { continue }
      throw refuse("\(name) is an absolute path of a program, and its arguments")
    }
    if let proxy, (try? PassOptions(values: [.proxy: [proxy]]).network())?.proxy == nil {
      throw refuse("proxy is a URL such as http://host:port or socks5h://host:port")
    }
    try limits?.validate()
    try TaskRequest.validate(headers: headers)
    for rule in rules ?? [] { try rule.validate() }
    for host in hosts ?? [] {
      if host.pins?.allSatisfy({ $0.hasPrefix("sha256//") }) == false {
        throw refuse(
          "a pin of \(Printable.escape(host.host)) is sha256// and the digest of a public key in Base64")
      }
      if host.ca?.hasPrefix("/") == false {
        throw refuse("the ca of \(Printable.escape(host.host)) is the absolute path of a PEM file")
      }
    }
    if let keptFor = quota?.keptFor, !(0...315_360_000).contains(keptFor) {
      throw refuse("keptFor is a number of seconds, from 0 to 315360000")
    }
    if let tasks = quota?.tasks, tasks < 1 { throw refuse("a quota of tasks is a number from 1") }
  }
}

/// How one host is trusted, and what it is told.
package struct HostTrust: Codable, Sendable, Equatable {
  /// A name or an address, without port.
  package var host: String
  /// A PEM file of the authorities that may vouch for it, in place of the system's.
  package var ca: String?
  /// Its certificate has one of these public keys: `sha256//BASE64`.
  package var pins: [String]?
  /// A file with `user:password`, or with a token: it is read for each task. Sent to this host only, over plain http, too.
  package var credential: String?

  package init(_ host: String) { self.host = host }
}

/// How much a session may hold.
package struct SessionQuota: Codable, Sendable, Equatable {
  /// Tasks that have not ended.
  package var tasks: Int?
  /// Bytes of unfinished downloads, with what is still to come of those that run.
  package var bytes: UInt64?
  /// Bytes of partial files that nothing works at: the oldest go first.
  package var kept: UInt64?
  /// Seconds for which such a partial file is kept.
  package var keptFor: Int?

  package static let standardTasks = 1_000_000
  package static let standardKeptFor = 30 * 86_400

  package init() {}
}

/// As RFC 3339 text.
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
  /// What stands for a task in the engine's eyes.
  package init(task number: Int64) { self.init(trusted: Array(String(number).utf8)) }

  /// 0 for a path that stands for none.
  package var task: Int64 { Int64(String(decoding: bytes, as: UTF8.self)) ?? 0 }
}
