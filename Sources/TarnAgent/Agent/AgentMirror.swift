package import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// One mirror of a running agent: its settings, and the pass at work.
struct AgentMirror: Sendable {
  var settings: MirrorSettings
  /// Of the pass at work; nil when none is.
  var progress: PassProgress?
  var stop: StopFlag?
  var run: UInt64?
  var priority = ControlCommand.Priority.normal
  /// Why the last pass did not do its work; nil when it did.
  var failure: String?
  /// The rate that the settings ask for by the time of day.
  let rates: RateTimetable
  /// The number and outcome of the last pass that ended, for who waits for it.
  var lastEnded: UInt64 = 0

  init(_ settings: MirrorSettings) {
    self.settings = settings
    let standard = settings.options.last(.limitRate).flatMap { Units.rate($0) ?? nil }
    rates = RateTimetable(settings.rates, standard: standard)
  }

  /// A pass as the settings want it. Their options are all that hold: what an earlier pass remembered counts for nothing.
  func request(credentials: String?) -> SyncRequest {
    var request = SyncRequest(settings)
    if case .some(let place) = settings.secrets[.proxy] {
      request.proxyFile = place.path(credentials: credentials)
    }
    request.secretFiles = settings.secrets.compactMap { $0.value.path(credentials: credentials) }.sorted()
    return request
  }
}

extension SyncRequest {
  /// A pass of a configured mirror.
  package init(_ settings: MirrorSettings) {
    self.init(feed: settings.feed, folder: settings.folder)
    state = settings.state
    options = settings.options
    adopt = settings.adopts
    changeFeed = true
    forgetsOptions = true
    isDryRun = settings.isDryRun
  }
}
