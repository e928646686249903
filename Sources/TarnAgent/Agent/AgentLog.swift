import Glibc
package import Logging
import TarnConfig
import TarnCore
package import TarnRuntime

/// Where the agent's messages go: one line each on standard error, or an entry of the journal with its fields. Any thread; lines
/// are written whole.
package final class LogOutput: Sendable {
  /// How a message is written.
  package enum Form: Sendable {
    /// With its time.
    case text
    /// `<6>text`: what systemd makes a priority of (sd-daemon(3)).
    case prefixed
    /// A JSON document per line.
    case json
    /// The journal's own protocol, each field by itself.
    case journal
  }

  static let journalSocket = "/run/systemd/journal/socket"

  private let form: Locked<Form>
  private let clock: any Clock
  private let write: @Sendable ([UInt8]) -> Void
  private let journal: String

  /// - Parameter write: for lines; standard error by itself.
  package init(
    _ form: Form, clock: any Clock = SystemClock(), journal: String? = nil,
    write: (@Sendable ([UInt8]) -> Void)? = nil
  ) {
    self.form = Locked(form)
    self.clock = clock
    self.journal = journal ?? Self.journalSocket
    self.write = write ?? { TextFile.writeAll($0, to: STDERR_FILENO) }
  }

  /// The form that fits where standard error leads: the journal when systemd says that it is connected to it.
  ///
  /// - Parameter environment: `JOURNAL_STREAM` is looked at (systemd.exec(5)).
  package static func form(environment: [String: String]) -> Form {
    guard let stream = environment["JOURNAL_STREAM"] else { return .text }
    let parts = stream.split(separator: ":")
    var status = stat()
    guard parts.count == 2, fstat(STDERR_FILENO, &status) == 0, UInt64(parts[0]) == UInt64(status.st_dev),
      UInt64(parts[1]) == UInt64(status.st_ino)
    else { return .text }
    return access(journalSocket, W_OK) == 0 ? .journal : .prefixed
  }

  /// As the settings want it; `auto` is where standard error leads.
  func set(_ format: AgentSettings.LogFormat, environment: [String: String]) {
    switch format {
    case .auto: set(Self.form(environment: environment))
    case .text: set(.text)
    case .json: set(.json)
    case .journal: set(.journal)
    }
  }

  package func set(_ form: Form) { self.form.withLock { $0 = form } }

  /// - Parameter message: escaped here; one line.
  fileprivate func write(_ level: Logger.Level, _ message: String, _ fields: Logger.Metadata) {
    let text = (fields.mirror.map { "\(Printable.escape($0)): " } ?? "") + Message.safe(message)
    switch form.withLock({ $0 }) {
    case .text: line("\(now) \(level == .info ? "" : "\(level.rawValue): ")\(text)")
    case .prefixed: line("<\(level.priority)>\(text)")
    case .json: line(json(level, Message.safe(message), fields))
    case .journal:
      let entry = Self.entry(level, text, fields)
      // A journal that is away, or an entry that is too long for a datagram: the plain way still works.
      if !Datagram.send(entry, to: journal) { line("<\(level.priority)>\(text)") }
    }
  }

  private var now: String { clock.time.rfc3339 }

  private func line(_ text: String) { write(Array("\(text)\n".utf8)) }

  /// Fields of the journal's native protocol: `NAME=value` lines, for no value has a line end.
  private static func entry(_ level: Logger.Level, _ message: String, _ fields: Logger.Metadata) -> [UInt8] {
    var lines = ["MESSAGE=\(message)", "PRIORITY=\(level.priority)", "SYSLOG_IDENTIFIER=tarn"]
    if let mirror = fields.mirror { lines.append("TARN_MIRROR=\(Printable.escape(mirror))") }
    if let code = fields.code { lines.append("TARN_CODE=\(Printable.escape(code))") }
    if let path = fields.path { lines.append("TARN_PATH=\(Printable.escape(path))") }
    return Array((lines.joined(separator: "\n") + "\n").utf8)
  }

  private func json(_ level: Logger.Level, _ message: String, _ fields: Logger.Metadata) -> String {
    JSONText.line(
      Document(
        time: now, level: level.rawValue, mirror: fields.mirror.map(Printable.escape),
        code: fields.code.map(Printable.escape), path: fields.path.map(Printable.escape), message: message))
  }

  private struct Document: Encodable {
    let schema = "tarn-log/1"
    let time: String
    let level: String
    let mirror: String?
    let code: String?
    let path: String?
    let message: String
  }
}

/// Which mirror, which path, which code: what a journal can be searched by.
extension Logger.Metadata {
  fileprivate var mirror: String? { self["mirror"]?.description }
  fileprivate var code: String? { self["code"]?.description }
  fileprivate var path: String? { self["path"]?.description }

  static func of(mirror: String? = nil, code: String? = nil, path: String? = nil) -> Logger.Metadata {
    let fields = [("mirror", mirror), ("code", code), ("path", path)]
    return Dictionary(
      uniqueKeysWithValues: fields.compactMap { name, value in value.map { (name, .string($0)) } })
  }
}

extension Logger.Level {
  /// As syslog(3) counts them.
  fileprivate var priority: Int {
    switch self {
    case .critical: 2
    case .error: 3
    case .warning: 4
    case .notice: 5
    case .info: 6
    case .debug, .trace: 7
    }
  }
}

/// swift-log's way to an output.
private struct OutputHandler: LogHandler {
  let output: LogOutput
  var logLevel: Logger.Level
  var metadata: Logger.Metadata = [:]

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let fields = metadata.merging(event.metadata ?? [:]) { $1 }
    output.write(event.level, event.message.description, fields)
  }
}

extension Logger {
  /// Says what is at least as important as a level.
  package init(_ output: LogOutput, level: Logger.Level = .info) {
    self.init(label: "tarn") { _ in OutputHandler(output: output, logLevel: level) }
  }

  /// - Parameter message: one line; escaped where it is written.
  func tell(_ level: Logger.Level, _ message: String, _ fields: Logger.Metadata = [:]) {
    log(level: level, "\(message)", metadata: fields)
  }
}
