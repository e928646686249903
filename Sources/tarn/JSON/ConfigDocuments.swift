import TarnConfig

/// The origin of a value or a problem: a file with line and column, from 1, or another source.
private struct OriginDocument: Encodable {
  /// `/etc/tarn/tarn.toml:3:8`, `$TARN_SOCKET`, `--socket`, `remembered` or `standard`.
  var text: String
  var file: String?
  var line: Int?
  var column: Int?

  init(_ origin: SettingOrigin) {
    text = origin.text
    if case .file(let path, let position) = origin {
      file = path
      line = position.line
      column = position.column
    }
  }
}

struct ConfigProblemDocument: Encodable {
  private var severity: String
  private var code: String
  private var origin: OriginDocument
  private var message: String
  private var hint: String?

  init(_ problem: SettingsProblem) {
    severity = problem.severity.rawValue
    code = problem.code.rawValue
    origin = OriginDocument(problem.origin)
    message = problem.message
    hint = problem.hint
  }
}

struct ConfigFileDocument: Encodable {
  var path: String
  /// `read`, `missing` or `failed`.
  var state: String

  init(_ file: SettingsFileState) {
    path = file.path
    state =
      switch file.state {
      case .read: "read"
      case .missing: "missing"
      case .failed: "failed"
      }
  }
}

/// The document of `config check --json`.
struct ConfigCheckDocument: Encodable {
  var schema = "tarn-config/1"
  var exitStatus: Int32
  /// The names of the mirrors; none when there is an error.
  var mirrors: [String]
  var files: [ConfigFileDocument]
  var problems: [ConfigProblemDocument]

  init(_ report: SettingsReport) {
    exitStatus = report.status.rawValue
    mirrors = report.loaded.settings?.mirrors.map(\.name) ?? []
    files = report.loaded.files.map(ConfigFileDocument.init)
    problems = report.loaded.problems.map(ConfigProblemDocument.init)
  }
}

/// The document of `config show --json`.
struct ConfigShowDocument: Encodable {
  private struct Record: Encodable {
    struct Shadowed: Encodable {
      var name: String
      var toml: String
      var origin: OriginDocument
    }
    /// `agent`, `limits`, `hook` or `mirror`.
    var table: String
    var mirror: String?
    var hook: String?
    var name: String
    /// The value as TOML; for a secret, only the place where it lies.
    var toml: String
    var origin: OriginDocument
    /// The values that this one overrides, the latest first.
    var insteadOf: [Shadowed]

    init(_ record: SettingRecord) {
      table = record.table.scope.rawValue
      switch record.table {
      case .mirror(let name): mirror = name
      case .hook(let name): hook = name
      default: break
      }
      name = record.name
      toml = record.toml
      origin = OriginDocument(record.origin)
      insteadOf = record.shadowed.map {
        Shadowed(name: $0.name, toml: $0.value.toml, origin: OriginDocument($0.origin))
      }
    }
  }
  private var schema = "tarn-config/1"
  private var exitStatus: Int32
  private var settings: [Record]
  private var problems: [ConfigProblemDocument]

  init(_ report: SettingsReport) {
    exitStatus = report.status.rawValue
    settings = report.loaded.records.map(Record.init)
    problems = report.loaded.problems.map(ConfigProblemDocument.init)
  }

  /// Makes the document of one mirror.
  init(_ records: [SettingRecord]) {
    exitStatus = ExitStatus.inSync.rawValue
    settings = records.map(Record.init)
    problems = []
  }
}

/// The document of `config paths --json`.
struct ConfigPathsDocument: Encodable {
  var schema = "tarn-config/1"
  /// `system` or `user`.
  var instance: String
  var files: [ConfigFileDocument]
  /// The directories with `tarn.toml` and `conf.d/*.toml`; empty with `--config`.
  var directories: [String]
  /// The control socket; left out when the settings have an error, or there is no runtime directory.
  var socket: String?
  var state: String?
  var credentials: String?

  init(_ report: SettingsReport) {
    let paths = report.paths
    instance = paths.instance.rawValue
    files = report.loaded.files.map(ConfigFileDocument.init)
    directories = paths.file == nil ? paths.directories : []
    socket = report.loaded.settings?.agent.socket
    state = paths.state
    credentials = paths.credentials
  }
}
