import TarnCore

/// A destination for a record's values, which are put into consecutive columns.
protocol ColumnSink {
  associatedtype Failure: Error
  mutating func put(_ number: Int64) throws(Failure)
  /// Puts all 64 bits unchanged.
  mutating func put(_ number: UInt64) throws(Failure)
  mutating func put(optional number: UInt64?) throws(Failure)
  mutating func put(_ flag: Bool) throws(Failure)
  mutating func put(_ bytes: [UInt8]) throws(Failure)
  mutating func put(optional bytes: [UInt8]?) throws(Failure)
  mutating func put(_ text: String) throws(Failure)
  mutating func put(optional text: String?) throws(Failure)
  /// Puts two columns of a table.
  mutating func put(_ digest: Digest) throws(Failure)
}

extension ColumnSink {
  mutating func put(_ path: RelativePath) throws(Failure) { try put(path.bytes) }

  mutating func put(_ time: Timestamp) throws(Failure) { try put(time.nanoseconds) }

  mutating func put(optional time: Timestamp?) throws(Failure) {
    try put(optional: (time?.nanoseconds).map { UInt64(bitPattern: $0) })
  }

  /// Puts five columns.
  mutating func put(_ identity: FileIdentity) throws(Failure) {
    try put(identity.device)
    try put(identity.inode)
    try put(identity.size)
    try put(identity.modified)
    try put(identity.changed)
  }
}

/// A source of values, in the order in which they were put.
protocol ColumnSource {
  associatedtype Failure: Error
  mutating func signed() throws(Failure) -> Int64
  mutating func unsigned() throws(Failure) -> UInt64
  mutating func optionalUnsigned() throws(Failure) -> UInt64?
  mutating func flag() throws(Failure) -> Bool
  mutating func string() throws(Failure) -> [UInt8]
  mutating func optionalString() throws(Failure) -> [UInt8]?
  mutating func text() throws(Failure) -> String
  mutating func optionalText() throws(Failure) -> String?
  mutating func digest() throws(Failure) -> Digest
  /// Returns the failure for a last value that no record can have.
  func impossible() -> Failure
}

extension ColumnSource {
  mutating func path() throws(Failure) -> RelativePath { RelativePath(trusted: try string()) }

  mutating func time() throws(Failure) -> Timestamp { Timestamp(nanoseconds: try signed()) }

  mutating func identity() throws(Failure) -> FileIdentity {
    FileIdentity(
      device: try unsigned(), inode: try unsigned(), size: try unsigned(), modified: try time(),
      changed: try time())
  }

  mutating func optionalTime() throws(Failure) -> Timestamp? {
    try optionalUnsigned().map { Timestamp(nanoseconds: Int64(bitPattern: $0)) }
  }

  /// Reads a value of an enum by its raw value.
  mutating func choice<Choice: RawRepresentable<String>>() throws(Failure) -> Choice {
    guard let choice = Choice(rawValue: try text()) else { throw impossible() }
    return choice
  }

  mutating func count() throws(Failure) -> Int {
    guard let count = Int(exactly: try signed()) else { throw impossible() }
    return count
  }
}

/// A record that a table keeps as a row. `Records.swift`, and for tasks `TaskRows.swift`, has each record's columns in one place: their
/// names, and in the same order how they are written and read.
protocol TableRecord {
  static var table: String { get }
  /// The column names, separated by commas.
  static var columns: String { get }
  /// The statement that writes a record in place of the one with the same key: `replacement`, made once.
  static var put: String { get }
  func write<Sink: ColumnSink>(to sink: inout Sink) throws(Sink.Failure)
  static func read<Source: ColumnSource>(from source: inout Source) throws(Source.Failure) -> Self
}

extension TableRecord {
  static var select: String { "SELECT \(columns) FROM \(table)" }

  static var replacement: String {
    "INSERT OR REPLACE INTO \(table) (\(columns)) VALUES (\(places))"
  }

  /// A question mark for each column, separated by commas.
  static var places: String { places(of: columns) }

  static func places(of columns: String) -> String {
    columns.split(separator: ",").map { _ in "?" }.joined(separator: ", ")
  }
}

/// Reads the columns of a statement's row.
struct ColumnReader: ColumnSource {
  private let row: Statement
  private var column: Int32

  init(_ row: Statement, from first: Int32 = 0) {
    self.row = row
    column = first - 1
  }

  private mutating func next() -> Int32 {
    column += 1
    return column
  }

  mutating func signed() throws(LedgerFailure) -> Int64 { try row.integer(next()) }
  mutating func unsigned() throws(LedgerFailure) -> UInt64 { try row.bits(next()) }
  mutating func optionalUnsigned() throws(LedgerFailure) -> UInt64? { try row.optionalBits(next()) }
  mutating func flag() throws(LedgerFailure) -> Bool { try row.flag(next()) }
  mutating func string() throws(LedgerFailure) -> [UInt8] { try row.blob(next()) }
  mutating func optionalString() throws(LedgerFailure) -> [UInt8]? {
    let column = next()
    return row.isNull(column) ? nil : try row.blob(column)
  }
  mutating func text() throws(LedgerFailure) -> String { try row.text(next()) }
  mutating func optionalText() throws(LedgerFailure) -> String? { try row.optionalText(next()) }

  mutating func digest() throws(LedgerFailure) -> Digest {
    guard let algorithm = UInt8(exactly: try signed()).flatMap(DigestAlgorithm.init(rawValue:)),
      let digest = Digest(algorithm, bytes: try string())
    else { throw impossible() }
    return digest
  }

  func impossible() -> LedgerFailure { row.damaged(column) }
}

extension Statement {
  func record<Record: TableRecord>(from first: Int32 = 0) throws(LedgerFailure) -> Record {
    var reader = ColumnReader(self, from: first)
    return try Record.read(from: &reader)
  }

  /// Binds the record's values to the next parameters.
  func put(_ record: some TableRecord) throws(LedgerFailure) {
    var sink = self
    try record.write(to: &sink)
  }
}

extension Connection {
  /// Inserts a record, or replaces the one with the same key.
  func put<Record: TableRecord>(_ record: Record, by sql: String = Record.put) throws(LedgerFailure) {
    try run(sql) { (statement) throws(LedgerFailure) in try statement.put(record) }
  }
}
