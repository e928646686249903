package import TarnCore
import TarnEngine
import TarnTransfer

/// The composition root: every command of Tarn as a function of values. It connects the adapters, holds the
/// folder's lock while a command changes something, and maps every error to a `PassFailure`. Blocking.
package struct Tarn: Sendable {
  /// The absolute base of relative folders and of feeds that are files.
  package var workingDirectory: String
  /// The environment of the process.
  package var environment: [String: String]

  /// Returns the folder and state of the mirror with a name; `nil` for other words. May read the settings,
  /// and ask an agent.
  package var configured: @Sendable (String) -> (folder: String, state: String?)? = { _ in nil }

  /// Returns the mirrors of the settings, each with its folder and its feed. May read the settings.
  package var configuredFolders: @Sendable () -> [(name: String, folder: String, feed: String)] = { [] }

  /// Identifies the settings (`SettingsPaths.place`); `nil` when they could not be taken. May read the
  /// settings.
  package var settingsPlace: @Sendable () -> String? = { nil }

  /// Returns a command for hints that names a mirror of the settings: `tarn sync m --config FILE`.
  package var command: @Sendable (String) -> String = { "tarn \($0)" }

  /// The name of the user when this is the system's agent, and not root: who gives it orders is another one.
  package var serviceUser: String?

  /// The mirrors that this process has open for writing.
  let mirrors = OpenMirrors()

  /// The pool that gives passes of one process their transfers; `nil` for a thread of its own for each.
  var pool: DownloaderPool?

  package init(workingDirectory: String, environment: [String: String]) {
    (self.workingDirectory, self.environment) = (workingDirectory, environment)
  }

  /// The directory `$HOME`, refused as a folder; `nil` when unset.
  package var homeDirectory: String? {
    environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
  }

  /// The version of this build.
  package static let version = "0.2.0"
}

/// A pass to make.
package struct SyncRequest: Sendable {
  /// The name of a configured mirror; `nil` for one that is known by its folder.
  package var name: String?
  /// The feed as given; `nil` for the feed that the mirror remembers.
  package var feed: String?
  /// The folder as given, relative or absolute.
  package var folder: String
  /// The directory of `--state DIR`; `nil` for the record in the folder.
  package var state: String?
  /// The options given now; others are taken from those that the mirror remembers.
  package var options = PassOptions()
  /// True when the options apply to this pass only, and are not remembered.
  package var isOnce = false
  /// True to take a folder that is not empty and not yet a mirror.
  package var adopt = false
  /// True to make a mirror anew whose folder is gone, and fetch all of it again.
  package var recreate = false
  /// True to follow another feed from now on.
  package var changeFeed = false
  /// The mirror's own options from its settings; `nil` when the mirror remembers them.
  package var ownOptions: PassOptions?
  /// True when these options are complete, and remembered ones are ignored.
  package var forgetsOptions = false
  /// True to only tell what would be done: the caller uses `plan`, never `sync`.
  package var isDryRun = false
  /// A file with the proxy's URL, which holds a password: it is read now and never remembered.
  package var proxyFile: String?
  /// The options whose secrets are credentials of a service, when this process has none.
  package var missingSecrets: [PassOptions.Name] = []
  /// The files of secrets that nobody else may read.
  package var secretFiles: [String] = []

  /// The agent's part in its own pass; `nil` for the pass of a command.
  var agent: AgentContext?
  /// True when an agent may watch the folder: the pass then records what is wanted there, for repairs.
  var keepsCatalog = false
  /// True when an agent may make the pass of its own mirror; the agent checks the given options.
  package var mayBeTheAgents = false
  /// The values given beside the name of a configured mirror, for this pass.
  package var given: CommandOverrides?

  /// The values that a command gives beside the mirror.
  package struct CommandOverrides: Sendable {
    package var feed: String?
    package var options: PassOptions
    package var state: String?
    package var adopt: Bool
    package var recreate: Bool

    package init(_ request: SyncRequest) {
      (feed, options, state) = (request.feed, request.options, request.state)
      (adopt, recreate) = (request.adopt, request.recreate)
    }
  }

  package init(feed: String?, folder: String) {
    (self.feed, self.folder) = (feed, folder)
  }

  /// True when given options name files: a missing one, for instance, may end the pass before it begins.
  var givesFiles: Bool {
    let options = name == nil ? options : given?.options ?? PassOptions()
    return PassOptions.Name.ofFiles.contains { options.values[$0] != nil }
  }

  /// The mirror of the settings that names the state; `nil` when the command names it, or nothing does.
  var nameOfState: String? { given?.state == nil ? name : nil }
}

/// What an agent gives to a pass of its own.
struct AgentContext: Sendable {
  /// Sets the rate while the pass is at work.
  var rates: RateControl
  /// The orders for single transfers.
  var steering: PassSteering
  /// The seconds that events are kept.
  var keepEvents: Int64
  /// The agent's own writes in the folder; `nil` when it is not watched.
  var ownWrites: OwnWrites?
  /// True when nothing changed there since the last pass or repair examined it; `nil` when it is not watched.
  var isAsLeft: (@Sendable () -> Bool)?
}
