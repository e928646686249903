package import TarnCore
import TarnEngine
import TarnTransfer

/// The composition root: every command of Tarn as a function of values. It builds the graph of adapters, holds the
/// folder's lock where a command changes something, and maps whatever goes wrong to a `PassFailure`. Blocking.
package struct Tarn: Sendable {
  /// Absolute; the base of relative folders and of feeds that are files.
  package var workingDirectory: String
  /// The process's environment.
  package var environment: [String: String]

  /// The folder and state of the mirror with that name; nil for a word that is none. May read the settings, and ask an
  /// agent.
  package var configured: @Sendable (String) -> (folder: String, state: String?)? = { _ in nil }

  /// The mirrors of the settings, by name: the folder of each. May read the settings.
  package var configuredFolders: @Sendable () -> [(name: String, folder: String)] = { [] }

  /// Which settings these are (`SettingsPaths.place`); nil where they could not be taken. May read the settings.
  package var settingsPlace: @Sendable () -> String? = { nil }

  /// A command by words, in advice, that names a mirror of the settings: `tarn sync m --config FILE`.
  package var command: @Sendable (String) -> String = { "tarn \($0)" }

  /// What this process has open for writing.
  let mirrors = OpenMirrors()

  /// Where passes of one process get their transfers; nil for a thread of its own for each.
  var pool: DownloaderPool?

  package init(workingDirectory: String, environment: [String: String]) {
    (self.workingDirectory, self.environment) = (workingDirectory, environment)
  }

  /// `$HOME`, refused as a folder; nil when unset.
  package var homeDirectory: String? {
    environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
  }

  /// The version of this build.
  package static let version = "0.2.0"
}

/// A pass to make.
package struct SyncRequest: Sendable {
  /// Of a configured mirror; nil for one that is known by its folder.
  package var name: String?
  /// As given; nil for the feed that the mirror remembers.
  package var feed: String?
  /// As given, relative or absolute.
  package var folder: String
  /// `--state DIR`; nil for the one in the folder.
  package var state: String?
  /// Given now; what is not given is remembered.
  package var options = PassOptions()
  /// The options hold for this pass, and are not remembered.
  package var isOnce = false
  /// Take a folder that is not empty and not yet a mirror.
  package var adopt = false
  /// Make a mirror anew whose folder is gone, and fetch all of it again.
  package var recreate = false
  /// Follow another feed from now on.
  package var changeFeed = false
  /// The mirror's own options, where its settings have them; nil where it remembers them.
  package var ownOptions: PassOptions?
  /// These options are all that hold: what the mirror remembers of earlier ones counts for nothing.
  package var forgetsOptions = false
  /// Say what would be done: the caller asks for `plan`, never for `sync`.
  package var isDryRun = false
  /// A file with the proxy's URL, which holds a password: it is read now and never remembered.
  package var proxyFile: String?
  /// Options whose secrets are credentials of a service, where this process has none.
  package var missingSecrets: [PassOptions.Name] = []
  /// Files of secrets that must be nobody else's to read.
  package var secretFiles: [String] = []

  /// Of a pass that an agent makes; nil for that of a command.
  var agent: AgentContext?
  /// An agent may watch the folder: a pass writes down what is wanted there, so that it can repair what changes.
  var keepsCatalog = false
  /// Where an agent looks after the mirror, the pass is to be its own; the agent judges what is given for it.
  package var mayBeTheAgents = false
  /// Of a configured mirror: what was given beside its name, for this pass.
  package var given: CommandOverrides?

  /// What a command gives beside the mirror.
  package struct CommandOverrides: Sendable {
    package var options: PassOptions
    package var state: String?
    package var adopt: Bool
    package var recreate: Bool

    package init(_ request: SyncRequest) {
      (options, state) = (request.options, request.state)
      (adopt, recreate) = (request.adopt, request.recreate)
    }
  }

  package init(feed: String?, folder: String) {
    (self.feed, self.folder) = (feed, folder)
  }

  /// The command line has options for which a pass may be refused before it begins: a file that is not there, say.
  var givesFiles: Bool {
    let options = name == nil ? options : given?.options ?? PassOptions()
    return PassOptions.Name.ofFiles.contains { options.values[$0] != nil }
  }

  /// The mirror of the settings that says where its state is; nil where the command does, or nobody.
  var nameOfState: String? { given?.state == nil ? name : nil }
}

/// What an agent gives a pass of its own.
struct AgentContext: Sendable {
  /// Sets the rate while the pass goes on.
  var rates: RateControl
  /// Orders about single transfers.
  var steering: PassSteering
  /// Seconds for which events are kept.
  var keepEvents: Int64
  /// What it wrote into the folder; nil when nobody watches that.
  var ownWrites: OwnWrites?
  /// Nothing changed there since the last pass or repair looked at it; nil when nobody watches.
  var isAsLeft: (@Sendable () -> Bool)?
}
