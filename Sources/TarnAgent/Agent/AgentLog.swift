import Glibc
package import Logging
import TarnConfig
import TarnCore
import TarnFolder
package import TarnRuntime

/// The destination of the agent's messages: lines on standard error, or entries of the journal with fields.
/// Callable on any thread; each line is written whole.
package final class LogOutput: Sendable {
  /// The form of a message.
  package enum Form: Sendable {
    /// A line with its time.
    case text
    /// A line `<6>text`, whose number systemd takes as the priority (sd-daemon(3)).
    case prefixed
    /// A line with a JSON document.
    case json
    /// An entry in the journal's native protocol, with separate fields.
    case journal
  }

  static let journalSocket = "/run/systemd/journal/socket"

  private let form: Locked<Form>
  private let clock: any Clock
  private let write: @Sendable ([UInt8]) -> Void
  private let journal: String

  /// - Parameter write: writes a line; standard error by default.
  package init(
    _ form: Form, clock: any Clock = SystemClock(), journal: String? = nil,
    write: (@Sendable ([UInt8]) -> Void)? = nil
  ) {
    self.form = Locked(form)
    self.clock = clock
    self.journal = journal ?? Self.journalSocket
    self.write = write ?? { TextFile.writeAll($0, to: STDERR_FILENO) }
  }

  /// The form for the destination of standard error: the journal when systemd says that it is connected to
  /// it.
  ///
  /// - Parameter environment: the environment, of which `JOURNAL_STREAM` is used (systemd.exec(5)).
  package static func form(environment: [String: String]) -> Form {
    guard let stream = environment["JOURNAL_STREAM"] else { return .text }
    let parts = stream.split(separator: ":")
    var status = stat()
    guard parts.count == 2, fstat(STDERR_FILENO, &status) == 0, UInt64(parts[0]) == UInt64(status.st_dev),
      UInt64(parts[1]) == UInt64(status.st_ino)
    else { return .text }
    return access(journalSocket, W_OK) == 0 ? .journal : .prefixed
  }

  /// Sets the form of the settings; `auto` follows the destination of standard error.
  func set(_ format: AgentSettings.LogFormat, environment: [String: String]) {
    switch format {
    case .auto: set(Self.form(environment: environment))
    case .text: set(.text)
    case .json: set(.json)
    case .journal: set(.journal)
    }
  }

  package func set(_ form: Form) { self.form.withLock { $0 = form } }

  /// - Parameter message: the message, which is escaped here. Only an entry of the journal has more than one
  ///   line.
  fileprivate func write(_ level: Logger.Level, _ message: String, _ fields: Logger.Metadata) {
    let front = fields.mirror.map { "\(Printable.escape($0)): " } ?? ""
    let text = front + Message.safe(message)
    switch form.withLock({ $0 }) {
    case .text: line("\(now) \(level == .info ? "" : "\(level.rawValue): ")\(text)")
    case .prefixed: line("<\(level.priority)>\(text)")
    case .json: line(json(level, Message.safe(message), fields))
    case .journal:
      let lines = message.split(separator: "\n", omittingEmptySubsequences: false).map {
        Message.safe(String($0))
      }
      let entry = Self.entry(level, front + lines.joined(separator: "\n"), fields)
      // Without a journal, standard error still works.
      if !send(entry) { line("<\(level.priority)>\(text)") }
    }
  }

  /// Sends one datagram; an entry that is too long for one goes as a memory file.
  private func send(_ entry: [UInt8]) -> Bool {
    Datagram.send(entry, to: journal) || SealedMemory(entry)?.send(to: journal) == true
  }

  private var now: String { clock.time.rfc3339 }

  private func line(_ text: String) { write(Array("\(text)\n".utf8)) }

  /// Returns the fields in the journal's native protocol.
  private static func entry(_ level: Logger.Level, _ message: String, _ fields: Logger.Metadata) -> [UInt8] {
    let named: [(String, String?)] = [
      ("MESSAGE", message), ("PRIORITY", String(level.priority)), ("SYSLOG_IDENTIFIER", "tarn"),
      ("MIRROR", fields.mirror.map(Printable.escape)), ("CODE", fields.code.map(Printable.escape)),
      ("PATH", fields.path.map(Printable.escape)),
    ]
    return named.flatMap { name, value in value.map { field(name, $0) } ?? [] }
  }

  /// Returns `NAME=value`. A value of several lines has its length in front (eight bytes, little-endian), so
  /// that no line of it is taken for a field.
  private static func field(_ name: String, _ value: String) -> [UInt8] {
    let bytes = Array(value.utf8)
    guard bytes.contains(0x0A) else { return Array("\(name)=".utf8) + bytes + [0x0A] }
    let length = (0..<8).map { UInt8(truncatingIfNeeded: UInt64(bytes.count) >> (8 * UInt64($0))) }
    return Array("\(name)\n".utf8) + length + bytes + [0x0A]
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

/// The fields of a message that the journal can be searched by: mirror, path, code.
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
  /// The severity, with the numbers of syslog(3).
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

/// Passes the messages of swift-log to an output.
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
  /// Logs messages of at least the given level.
  package init(_ output: LogOutput, level: Logger.Level = .info) {
    self.init(label: "tarn") { _ in OutputHandler(output: output, logLevel: level) }
  }

  /// - Parameter message: one line, escaped where it is written.
  func tell(_ level: Logger.Level, _ message: String, _ fields: Logger.Metadata = [:]) {
    log(level: level, "\(message)", metadata: fields)
  }
}
