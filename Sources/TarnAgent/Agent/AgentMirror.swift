package import TarnConfig
package import TarnCore
import TarnEngine
import TarnRuntime
import TarnSchedule

/// A pass or a repair at work.
struct AgentWork: Sendable {
  let run: UInt64
  /// The id that hooks are told, unique among the passes of all agents.
  let rid: String
  let began: Instant
  let progress: PassProgress
  /// Stops the work, or the approval that it carries out at the moment.
  var stop: StopFlag
  /// True once hooks were notified of the pass; unused in repairs.
  var hasBegun = false
  /// True once the pass has examined the folder, or found that it need not; unused in repairs.
  var hasLooked = false
  /// True when what is in place has to be counted once the pass is over: repairs recorded beside it; unused in repairs.
  var wantsCount = false
  let rateControl: RateControl
  /// The time of the last log line about its progress.
  var told: Instant
  /// The time of the last log line about a transfer that is tried again.
  var toldTrouble: Instant?
  /// The pace at the last check of its progress.
  var pace: PassPace?
  /// The reason why it waits, as it last said; `nil` once it goes on.
  var trouble: PassTrouble?
}

/// One mirror of a running agent: its settings, and its work.
struct AgentMirror: Sendable {
  var settings: MirrorSettings
  /// When the agent took up this feed and folder.
  private(set) var added: Timestamp
  /// The pass at work, from its beginning to its end.
  var work: AgentWork?
  /// The repairs at work, the oldest first.
  var repairs: [AgentWork] = []
  /// The number of a pass that was cancelled before it began. Those who wait for it are told with the end of
  /// the pass at work.
  var withdrawn: UInt64?
  /// True when the next pass is to make the folder anew.
  var recreates = false
  /// The orders for single transfers.
  var steering = PassSteering()
  var priority = ControlCommand.Priority.normal
  /// The reason why the last pass did not do its work; `nil` when it did.
  var failure: PassFault?
  /// The condition that hooks were told; `nil` while it is unknown.
  var condition: MirrorCondition?
  /// The rates of the settings by the time of day.
  var rates: RateTimetable {
    RateTimetable(
      settings.rates, standard: settings.options.last(.limitRate).flatMap { Units.rate($0) ?? nil })
  }
  /// The space that its passes leave free.
  var reserve: Reserve { settings.options.last(.reserve).flatMap(Units.reserve) ?? PassPolicy().reserve }
  /// The id of a held plan that goes ahead as soon as no pass is at work.
  var approved: String?
  /// The last log message about another process that holds the folder; `nil` once the agent has it again.
  var busy: String?
  /// The end of the last pass, for those who wait for it.
  var lastRun: StatusDocument.LastRun?
  var tally = MirrorTally()

  /// Everything at work, the pass first.
  var works: [AgentWork] { (work.map { [$0] } ?? []) + repairs }

  /// Changes the pass or repair with a number.
  mutating func change(_ run: UInt64, _ body: (inout AgentWork) -> Void) {
    if var known = work, known.run == run {
      body(&known)
      work = known
    } else if let index = repairs.firstIndex(where: { $0.run == run }) {
      body(&repairs[index])
    }
  }

  init(_ settings: MirrorSettings, added: Timestamp) { (self.settings, self.added) = (settings, added) }

  /// Returns the mirror with other settings. In another folder, what is known of its files is dropped.
  func with(_ settings: MirrorSettings, now: Timestamp) -> AgentMirror {
    var mirror = self
    mirror.settings = settings
    if !follows(settings.feed) { mirror.failure = nil }
    if !follows(settings.feed) || !isIn(settings.folder) { mirror.added = now }
    guard !isIn(settings.folder) else { return mirror }
    mirror.steering = PassSteering()
    mirror.failure = nil
    mirror.approved = nil
    return mirror
  }

  func isIn(_ folder: String) -> Bool { settings.folder.utf8.elementsEqual(folder.utf8) }

  func follows(_ feed: String) -> Bool { settings.feed.utf8.elementsEqual(feed.utf8) }
}

/// The reason why a pass waits, and until when.
struct PassTrouble: Sendable {
  private let message: String
  private let until: Timestamp

  /// - Parameter pause: the seconds of the pause.
  init(_ message: String, pause: Double, now: Timestamp) {
    self.message = message
    // A pause below a second is too short to tell a person.
    until = pause < 1 ? now : now.adding(seconds: Int64(min(pause, 1e9).rounded(.up)))
  }

  /// The message at the time `now`; a pause that is over is left out.
  func text(now: Timestamp) -> String {
    guard until > now else { return "\(message); trying again" }
    return "\(message); trying again in \((until - now).wholeSeconds) s"
  }
}

extension SyncRequest {
  /// Makes the request of a pass for a configured mirror. Its options are complete: those of earlier passes
  /// are ignored.
  ///
  /// - Parameter credentials: the directory `$CREDENTIALS_DIRECTORY`.
  package init(_ settings: MirrorSettings, credentials: String?) {
    self.init(feed: settings.feed, folder: settings.folder)
    name = settings.name
    state = settings.state
    options = settings.options
    ownOptions = settings.options
    adopt = settings.adopts
    changeFeed = true
    forgetsOptions = true
    isDryRun = settings.isDryRun
    keepsCatalog = settings.watches
    proxyFile = settings.secrets[.proxy].flatMap { $0.path(credentials: credentials) }
    secretFiles = settings.secrets.values.compactMap { $0.path(credentials: credentials) }.sorted()
    missingSecrets = settings.secrets.filter { $0.value.path(credentials: credentials) == nil }.keys
      .sorted { $0.rawValue < $1.rawValue }
  }
}

extension Tarn {
  /// Returns the status of a configured mirror. One that was never synced shows what its settings say.
  package func status(of settings: MirrorSettings, problemLimit: Int) throws(PassFailure) -> StatusDocument {
    do throws(PassFailure) {
      var document = try status(
        folder: settings.folder, state: settings.state, name: settings.name, problemLimit: problemLimit)
      document.name = settings.name
      document.dryRun = settings.isDryRun
      document.options = settings.options.withoutPasswords.named
      // A first pass that has not read its feed yet remembers none. After a change of the feed, the old one
      // is remembered until a pass has read the new one.
      let (feed, known) = (StatusDocument(settings).feed, document.feed)
      if document.feed != feed { (document.feed, document.format) = (feed, nil) }
      if !known.isEmpty, !isFeed(known, of: settings) { document.tellOtherFeed(before: known) }
      if document.held != nil, try !isDeletionOrdered(by: settings, state: settings.state) {
        document.tellNoHold()
      }
      return document
    } catch {
      guard ["no-folder", "not-a-mirror", "marker-missing"].contains(error.code) else { throw error }
      var document = StatusDocument(settings)
      if let loss = loss(of: settings) {
        (document.state, document.lastFailure, document.hint) = ("failing", loss.message, loss.hint)
      }
      return document
    }
  }

  /// True when a feed that a ledger remembers is that of the settings, in any spelling.
  package func isFeed(_ known: String, of settings: MirrorSettings) -> Bool {
    guard let feed = try? feedText(settings.feed) else { return true }
    // An earlier version of Tarn remembered paths as they were given.
    return known == feed || (try? feedText(known)) == feed
  }

  /// Returns the status when no agent answers. The attempts and pauses that the last agent recorded count, as
  /// they will for the next one.
  ///
  /// - Parameters:
  ///   - names: the names of all mirrors of the settings.
  ///   - directory: the agent's state directory.
  package func status(
    of settings: MirrorSettings, among names: [String], record directory: String?, now: Timestamp,
    problemLimit: Int
  ) throws(PassFailure) -> StatusDocument {
    var document = try status(of: settings, problemLimit: problemLimit)
    if let kept = directory.map(AgentRecord.read)?.mirror(settings, among: names) {
      document.set(attempt: kept.history.lastAttempt, failure: kept.failure?.message)
      document.set(askedUntil: kept.history.heldUntil, now: now)
      if document.lastSuccess == nil, loss(of: settings) != nil {
        document.lastSuccess = kept.history.lastSuccess?.rfc3339
      }
      if kept.isPaused, document.process == nil { document.state = "paused" }
    }
    return document
  }
}

extension MirrorSettings {
  /// True when passes delete what the feed no longer names.
  var deletes: Bool { options.isOn(.delete) }
}

extension StatusDocument {
  init(_ settings: MirrorSettings) {
    self.init(
      name: settings.name, feed: Printable.escape(Redaction.text(settings.feed)), folder: settings.folder,
      state: "idle")
    dryRun = settings.isDryRun
  }

  /// Removes a held plan, which a mirror that deletes no more does not carry out.
  fileprivate mutating func tellNoHold() {
    (held, entries.held) = (nil, 0)
    if state == "held" { state = "idle" }
  }

  /// Removes the results of the last pass, which belong to an earlier feed.
  fileprivate mutating func tellOtherFeed(before: String) {
    feedBefore = before
    (lastSuccess, verifiedAt, upstreamChangedAt, incompleteReason) = (nil, nil, nil, nil)
    let blank = StatusDocument(name: name, feed: feed, folder: folder, state: state)
    (entries, bytes) = (blank.entries, blank.bytes)
    (problems, moreProblems, held) = ([], 0, nil)
    if process == nil, lastFailure == nil, state != "interrupted" { state = "idle" }
  }

  /// Adds what an agent knows of its last pass, when that is later than the ledger's. A pass that fails
  /// before it reads its feed may leave nothing in the ledger.
  ///
  /// - Parameter failure: the reason why the pass did not do its work; `nil` when it did.
  mutating func set(attempt: Timestamp?, failure: String?) {
    // Both are RFC 3339 in UTC, so they sort as text.
    guard let attempt = attempt?.rfc3339, attempt > lastAttempt ?? "" else { return }
    lastAttempt = attempt
    guard process == nil, let failure else { return }
    state = "failing"
    if lastFailure != failure { hint = nil }
    lastFailure = failure
  }

  /// - Parameter until: the end of the Retry-After that an agent remembers for the server.
  mutating func set(askedUntil until: Timestamp?, now: Timestamp) {
    askedUntil = until.flatMap { $0 > now ? $0.rfc3339 : nil }
  }
}
