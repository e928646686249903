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
  let rates: RateTimetable
  /// A held plan that may go ahead as soon as no pass is at work.
  var approved: String?
  /// How the last pass ended, for who waits for it.
  var lastRun: StatusDocument.LastRun?

  init(_ settings: MirrorSettings) {
    self.settings = settings
    let standard = settings.options.last(.limitRate).flatMap { Units.rate($0) ?? nil }
    rates = RateTimetable(settings.rates, standard: standard)
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
      return document
    } catch {
      guard error.code == "no-folder" || error.code == "not-a-mirror" else { throw error }
      return StatusDocument(settings)
    }
  }
}

extension StatusDocument {
  init(_ settings: MirrorSettings) {
    self.init(
      name: settings.name, feed: Printable.escape(settings.feed), folder: settings.folder, state: "idle")
  }
}
