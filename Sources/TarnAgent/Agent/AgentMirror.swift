package import TarnConfig
package import TarnCore
import TarnEngine
import TarnRuntime
import TarnSchedule

/// A pass or a repair that is at work.
struct AgentWork: Sendable {
  let run: UInt64
  /// For whom it is told to: a number that no other agent's pass has.
  let rid: String
  let began: Instant
  let progress: PassProgress
  /// Ends it, or the approval that it carries out at the moment.
  var stop: StopFlag
  /// Of a pass: hooks were told that it does its work.
  var hasBegun = false
  /// Of a pass: it has looked at the folder, or found that it need not.
  var hasLooked = false
  let rateControl: RateControl
  /// When the log last told of it.
  var told: Instant
  /// When the log last told why a transfer is tried again.
  var toldTrouble: Instant?
  /// Of its progress, when that was last looked at.
  var pace: PassPace?
  /// Why it waits, as it last said; nil once it goes on.
  var trouble: PassTrouble?
}

/// One mirror of a running agent: its settings, and what is at work.
struct AgentMirror: Sendable {
  var settings: MirrorSettings
  /// The pass at work, from its beginning to its end.
  var work: AgentWork?
  /// The repairs at work, the oldest first.
  var repairs: [AgentWork] = []
  /// The number of a pass that was cancelled before it began: who waits for it hears of the end of the one at work, which may not
  /// have begun its work so far.
  var withdrawn: UInt64?
  /// Somebody asked that the next pass makes the folder anew.
  var recreates = false
  /// Of its transfers, one by one.
  var steering = PassSteering()
  var priority = ControlCommand.Priority.normal
  /// Why the last pass did not do its work; nil when it did.
  var failure: PassFault?
  /// How it is, as hooks were told; nil while nothing is known.
  var condition: MirrorCondition?
  /// The rate that the settings ask for by the time of day.
  var rates: RateTimetable {
    RateTimetable(
      settings.rates, standard: settings.options.last(.limitRate).flatMap { Units.rate($0) ?? nil })
  }
  /// A held plan that may go ahead as soon as no pass is at work.
  var approved: String?
  /// What was last said of another process that holds the folder; nil once the agent has it again.
  var busy: String?
  /// How the last pass ended, for who waits for it.
  var lastRun: StatusDocument.LastRun?
  var tally = MirrorTally()

  /// What is at work, the pass first.
  var works: [AgentWork] { (work.map { [$0] } ?? []) + repairs }

  /// Changes what is at work under a number.
  mutating func change(_ run: UInt64, _ body: (inout AgentWork) -> Void) {
    if var known = work, known.run == run {
      body(&known)
      work = known
    } else if let index = repairs.firstIndex(where: { $0.run == run }) {
      body(&repairs[index])
    }
  }

  init(_ settings: MirrorSettings) { self.settings = settings }

  /// The same mirror by other settings. What was said of its files holds only in the same folder.
  func with(_ settings: MirrorSettings) -> AgentMirror {
    var mirror = self
    mirror.settings = settings
    if !follows(settings.feed) { mirror.failure = nil }
    guard !isIn(settings.folder) else { return mirror }
    mirror.steering = PassSteering()
    (mirror.failure, mirror.condition) = (nil, nil)
    mirror.approved = nil
    return mirror
  }

  func isIn(_ folder: String) -> Bool { settings.folder.utf8.elementsEqual(folder.utf8) }

  func follows(_ feed: String) -> Bool { settings.feed.utf8.elementsEqual(feed.utf8) }
}

/// Why a pass waits, and until when.
struct PassTrouble: Sendable {
  private let message: String
  private let until: Timestamp

  /// - Parameter pause: in seconds.
  init(_ message: String, pause: Double, now: Timestamp) {
    self.message = message
    // Less than a second is no promise that a person can use.
    until = pause < 1 ? now : now.adding(seconds: Int64(min(pause, 1e9).rounded(.up)))
  }

  /// As of `now`: a pause that is over is not promised any more.
  func text(now: Timestamp) -> String {
    guard until > now else { return "\(message); trying again" }
    return "\(message); trying again in \((until - now).wholeSeconds) s"
  }
}

extension SyncRequest {
  /// A pass of a configured mirror. Its options are all that hold: what an earlier pass remembered counts for nothing.
  ///
  /// - Parameter credentials: `$CREDENTIALS_DIRECTORY`.
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
  /// How a configured mirror is; one that was never synced is as its settings say.
  package func status(of settings: MirrorSettings, problemLimit: Int) throws(PassFailure) -> StatusDocument {
    do throws(PassFailure) {
      var document = try status(
        folder: settings.folder, state: settings.state, name: settings.name, problemLimit: problemLimit)
      document.name = settings.name
      document.dryRun = settings.isDryRun
      document.options = settings.options.withoutPasswords.named
      // A first pass that has not read its feed yet remembers none; of another feed it is, until a pass has read this one.
      let (feed, known) = (StatusDocument(settings).feed, document.feed)
      if document.feed != feed { (document.feed, document.format) = (feed, nil) }
      if !known.isEmpty, !isFeed(known, of: settings) { document.tellOtherFeed(before: known) }
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

  /// Whether a feed that a ledger remembers is that of the settings, however these write it.
  func isFeed(_ known: String, of settings: MirrorSettings) -> Bool {
    guard let feed = try? feedText(settings.feed) else { return true }
    // An earlier Tarn remembered paths as they were given.
    return known == feed || (try? feedText(known)) == feed
  }

  /// The same where no agent answers: what the last one wrote down of its attempts and of pauses counts, as it will for the
  /// next one.
  ///
  /// - Parameters:
  ///   - names: of all mirrors of the settings.
  ///   - directory: the agent's state directory.
  package func status(
    of settings: MirrorSettings, among names: [String], record directory: String?, now: Timestamp,
    problemLimit: Int
  ) throws(PassFailure) -> StatusDocument {
    var document = try status(of: settings, problemLimit: problemLimit)
    if let kept = directory.map(AgentRecord.read)?.mirror(settings, among: names) {
      document.set(attempt: kept.history.lastAttempt, failure: kept.failure?.message)
      document.set(askedUntil: kept.history.heldUntil, now: now)
      if kept.isPaused, document.process == nil { document.state = "paused" }
    }
    return document
  }
}

extension StatusDocument {
  init(_ settings: MirrorSettings) {
    self.init(
      name: settings.name, feed: Printable.escape(Redaction.text(settings.feed)), folder: settings.folder,
      state: "idle")
    dryRun = settings.isDryRun
  }

  /// What the last pass came to is of the feed before.
  fileprivate mutating func tellOtherFeed(before: String) {
    feedBefore = before
    (lastSuccess, verifiedAt, upstreamChangedAt) = (nil, nil, nil)
    let blank = StatusDocument(name: name, feed: feed, folder: folder, state: state)
    (entries, bytes) = (blank.entries, blank.bytes)
    (problems, moreProblems, held) = ([], 0, nil)
    if process == nil, lastFailure == nil, state != "interrupted" { state = "idle" }
  }

  /// What an agent knows of its last pass, where the ledger knows of none as late: one that does not come to read its feed
  /// may leave nothing there.
  ///
  /// - Parameter failure: why it did not do its work; nil when it did.
  mutating func set(attempt: Timestamp?, failure: String?) {
    // Both are RFC 3339 in UTC, so that text sorts as time does.
    guard let attempt = attempt?.rfc3339, attempt > lastAttempt ?? "" else { return }
    lastAttempt = attempt
    guard process == nil, let failure else { return }
    state = "failing"
    if lastFailure != failure { hint = nil }
    lastFailure = failure
  }

  /// - Parameter until: what an agent remembers of its server's wish.
  mutating func set(askedUntil until: Timestamp?, now: Timestamp) {
    askedUntil = until.flatMap { $0 > now ? $0.rfc3339 : nil }
  }
}
