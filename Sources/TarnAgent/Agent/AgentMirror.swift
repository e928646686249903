package import TarnConfig
package import TarnCore
package import TarnEngine
import TarnRuntime

/// One mirror of a running agent: its settings, and the pass at work.
struct AgentMirror: Sendable {
  var settings: MirrorSettings
  /// Of the pass at work; nil when none is.
  var progress: PassProgress?
  /// Of that progress, when it was last looked at.
  var pace: PassPace?
  var stop: StopFlag?
  var run: UInt64?
  var rateControl: RateControl?
  /// Of its transfers, one by one.
  var steering = PassSteering()
  var priority = ControlCommand.Priority.normal
  /// Why the last pass did not do its work; nil when it did.
  var failure: String?
  /// The rate that the settings ask for by the time of day.
  private(set) var rates: RateTimetable
  /// A held plan that may go ahead as soon as no pass is at work.
  var approved: String?
  /// How the last pass ended, for who waits for it.
  var lastRun: StatusDocument.LastRun?

  init(_ settings: MirrorSettings) {
    self.settings = settings
    rates = Self.rates(settings)
  }

  private static func rates(_ settings: MirrorSettings) -> RateTimetable {
    let standard = settings.options.last(.limitRate).flatMap { Units.rate($0) ?? nil }
    return RateTimetable(settings.rates, standard: standard)
  }

  /// The same mirror by other settings. What was said of its files holds only in the same folder.
  func with(_ settings: MirrorSettings) -> AgentMirror {
    var mirror = self
    mirror.settings = settings
    mirror.rates = Self.rates(settings)
    guard !settings.folder.utf8.elementsEqual(self.settings.folder.utf8) else { return mirror }
    mirror.steering = PassSteering()
    mirror.failure = nil
    mirror.approved = nil
    return mirror
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
    adopt = settings.adopts
    changeFeed = true
    forgetsOptions = true
    isDryRun = settings.isDryRun
    keepsCatalog = settings.watches
    proxyFile = settings.secrets[.proxy].flatMap { $0.path(credentials: credentials) }
    secretFiles = settings.secrets.values.compactMap { $0.path(credentials: credentials) }.sorted()
  }
}

extension Tarn {
  /// How a configured mirror is; one that was never synced is as its settings say.
  package func status(of settings: MirrorSettings, problemLimit: Int) throws(PassFailure) -> StatusDocument {
    do throws(PassFailure) {
      var document = try status(folder: settings.folder, state: settings.state, problemLimit: problemLimit)
      document.name = settings.name
      // A first pass that has not read its feed yet remembers none.
      if document.feed.isEmpty { document.feed = StatusDocument(settings).feed }
      return document
    } catch {
      guard error.code == "no-folder" || error.code == "not-a-mirror" else { throw error }
      return StatusDocument(settings)
    }
  }

  /// The same where no agent answers: what the last one wrote down of its attempts counts.
  ///
  /// - Parameter directory: the agent's state directory.
  package func status(
    of settings: MirrorSettings, record directory: String?, problemLimit: Int
  ) throws(PassFailure) -> StatusDocument {
    var document = try status(of: settings, problemLimit: problemLimit)
    let kept = directory.map(AgentRecord.read)?.mirrors[settings.name]
    if let kept, kept.folder.utf8.elementsEqual(settings.folder.utf8) {
      document.take(attempt: kept.lastAttempt, failure: kept.failure)
    }
    return document
  }
}

extension StatusDocument {
  init(_ settings: MirrorSettings) {
    self.init(
      name: settings.name, feed: Printable.escape(Redaction.text(settings.feed)), folder: settings.folder,
      state: "idle")
  }

  /// What an agent knows of its last pass, where the ledger knows of none as late: one that does not come to read its feed
  /// may leave nothing there.
  ///
  /// - Parameter failure: why it did not do its work; nil when it did.
  mutating func take(attempt: Timestamp?, failure: String?) {
    // Both are RFC 3339 in UTC, so that text sorts as time does.
    guard let attempt = attempt?.rfc3339, attempt > lastAttempt ?? "" else { return }
    lastAttempt = attempt
    guard process == nil, let failure else { return }
    state = "failing"
    lastFailure = failure
  }
}
