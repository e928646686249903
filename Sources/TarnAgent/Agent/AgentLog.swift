import Glibc
package import Logging
import TarnConfig
import TarnCore
import TarnFolder
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

  /// - Parameter message: escaped here. Only an entry of the journal has more than one line.
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
      // Where the journal is away the plain way still works.
      if !send(entry) { line("<\(level.priority)>\(text)") }
    }
  }

  /// One datagram; what is too long for one goes as a file of memory's.
  private func send(_ entry: [UInt8]) -> Bool {
    Datagram.send(entry, to: journal) || SealedMemory(entry)?.send(to: journal) == true
  }

  private var now: String { clock.time.rfc3339 }

  private func line(_ text: String) { write(Array("\(text)\n".utf8)) }

  /// Fields of the journal's native protocol.
  private static func entry(_ level: Logger.Level, _ message: String, _ fields: Logger.Metadata) -> [UInt8] {
    let named: [(String, String?)] = [
      ("MESSAGE", message), ("PRIORITY", String(level.priority)), ("SYSLOG_IDENTIFIER", "tarn"),
      ("MIRROR", fields.mirror.map(Printable.escape)), ("CODE", fields.code.map(Printable.escape)),
      ("PATH", fields.path.map(Printable.escape)),
    ]
    return named.flatMap { name, value in value.map { field(name, $0) } ?? [] }
  }

  /// `NAME=value`; a value of several lines has its length in front (eight bytes, the lowest first), so that none of them is taken
  /// for a field.
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
