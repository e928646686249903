import CSQLite
import TarnCore

/// The memory for the values that are bound to one statement. Allocations stay in place until `empty()`, which keeps a small block.
private struct Arena {
  private var blocks: [UnsafeMutableRawBufferPointer] = []
  private var used = 0

  private static let block = 512

  /// - Returns: memory for this many bytes, with undefined contents.
  mutating func allocate(_ count: Int) -> UnsafeMutableRawPointer {
    if let last = blocks.last, last.count - used >= count, let base = last.baseAddress {
      defer { used += count }
      return base + used
    }
    let fresh = UnsafeMutableRawPointer.allocate(byteCount: max(count, Self.block), alignment: 1)
    blocks.append(UnsafeMutableRawBufferPointer(start: fresh, count: max(count, Self.block)))
    used = count
    return fresh
  }

  /// Frees all allocations, which must not be used any more.
  mutating func empty() {
    used = 0
    guard blocks.count > 1 || blocks.first.map({ $0.count > Self.block }) == true else { return }
    free()
    blocks = []
  }

  func free() {
    for block in blocks { block.deallocate() }
  }
}

/// A prepared statement. Only one thread may use it at a time, the one that has its connection.
///
/// Each column must have the type that the schema promises. Any other type means damage, and throws.
final class Statement: ColumnSink {
  private let handle: OpaquePointer
  private let database: OpaquePointer
  private let file: String
  private var arena = Arena()
  /// The index of the parameter that `put` bound last.
  private var bound: Int32 = 0

  /// Takes ownership of `handle`.
  init(handle: OpaquePointer, database: OpaquePointer, file: String) {
    self.handle = handle
    self.database = database
    self.file = file
  }

  deinit {
    sqlite3_finalize(handle)
    arena.free()
  }

  /// Binds all parameters, from the first on. The statement must have been reset.
  func bind(_ values: [Value]) throws(LedgerFailure) {
    var index: Int32 = 0
    for value in values {
      index += 1
      let code = bind(value, at: index)
      guard code == SQLITE_OK else { throw failure(code) }
    }
  }

  /// - Returns: false when there is no further row.
  func step() throws(LedgerFailure) -> Bool {
    let code = sqlite3_step(handle)
    switch code {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default: throw failure(code)
    }
  }

  /// Ends the statement's read and clears its bindings. An error of the last step was already thrown by it.
  func reset() {
    sqlite3_reset(handle)
    sqlite3_clear_bindings(handle)
    arena.empty()
    bound = 0
  }

  // The parameters are bound one after another, without a list of values.

  func put(_ number: Int64) throws(LedgerFailure) {
    try check(sqlite3_bind_int64(handle, next(), number))
  }

  /// Binds the bit pattern, like `Value.bits`.
  func put(_ number: UInt64) throws(LedgerFailure) { try put(Int64(bitPattern: number)) }

  func put(optional number: UInt64?) throws(LedgerFailure) {
    if let number { try put(number) } else { try putNull() }
  }

  func put(_ flag: Bool) throws(LedgerFailure) { try put(Int64(flag ? 1 : 0)) }

  func put(optional bytes: [UInt8]?) throws(LedgerFailure) {
    if let bytes { try put(bytes) } else { try putNull() }
  }

  func put(_ bytes: [UInt8]) throws(LedgerFailure) {
    let index = next()
    let code = bytes.withUnsafeBytes { bytes in
      sqlite3_bind_blob64(handle, index, keep(bytes), UInt64(bytes.count), Self.asIs)
    }
    try check(code)
  }

  func put(optional text: String?) throws(LedgerFailure) {
    if let text { try put(text) } else { try putNull() }
  }

  func put(_ text: String) throws(LedgerFailure) {
    var text = text
    let index = next()
    let code = text.withUTF8 { bytes in
      let kept = keep(UnsafeRawBufferPointer(bytes)).assumingMemoryBound(to: CChar.self)
      return sqlite3_bind_text64(handle, index, kept, UInt64(bytes.count), Self.asIs, UInt8(SQLITE_UTF8))
    }
    try check(code)
  }

  func put(_ digest: Digest) throws(LedgerFailure) {
    try put(Int64(digest.algorithm.rawValue))
    try put(digest.bytes)
  }

  private func putNull() throws(LedgerFailure) { try check(sqlite3_bind_null(handle, next())) }

  private func next() -> Int32 {
    bound += 1
    return bound
  }

  private func check(_ code: Int32) throws(LedgerFailure) {
    guard code == SQLITE_OK else { throw failure(code) }
  }

  private func bind(_ value: Value, at index: Int32) -> Int32 {
    switch value {
    case .null: return sqlite3_bind_null(handle, index)
    case .integer(let number): return sqlite3_bind_int64(handle, index, number)
    case .blob(let bytes):
      return bytes.withUnsafeBytes {
        sqlite3_bind_blob64(handle, index, keep($0), UInt64($0.count), Self.asIs)
      }
    case .text(var text):
      return text.withUTF8 { bytes in
        let kept = keep(UnsafeRawBufferPointer(bytes)).assumingMemoryBound(to: CChar.self)
        return sqlite3_bind_text64(handle, index, kept, UInt64(bytes.count), Self.asIs, UInt8(SQLITE_UTF8))
      }
    }
  }

  /// SQLITE_STATIC: SQLite reads the bytes in place until the bindings are cleared.
  private static let asIs: sqlite3_destructor_type? = nil

  /// Copies bytes to memory that stays until the statement is reset. Returns a valid address even for no bytes, because a null
  /// pointer would bind NULL.
  private func keep(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutableRawPointer {
    let place = arena.allocate(bytes.count)
    if let start = bytes.baseAddress { place.copyMemory(from: start, byteCount: bytes.count) }
    return place
  }

  private func failure(_ code: Int32) -> LedgerFailure {
    ErrorTable.failure(code: code, database: database, file: file)
  }
}

// Reads the columns of the current row, counted from 0.
extension Statement {
  func integer(_ column: Int32) throws(LedgerFailure) -> Int64 {
    sqlite3_value_int64(try value(column, SQLITE_INTEGER))
  }

  func bits(_ column: Int32) throws(LedgerFailure) -> UInt64 {
    UInt64(bitPattern: try integer(column))
  }

  func optionalBits(_ column: Int32) throws(LedgerFailure) -> UInt64? {
    try optional(column, SQLITE_INTEGER).map { UInt64(bitPattern: sqlite3_value_int64($0)) }
  }

  func flag(_ column: Int32) throws(LedgerFailure) -> Bool {
    switch try integer(column) {
    case 0: false
    case 1: true
    default: throw damaged(column)
    }
  }

  func timestamp(_ column: Int32) throws(LedgerFailure) -> Timestamp {
    Timestamp(nanoseconds: try integer(column))
  }

  func blob(_ column: Int32) throws(LedgerFailure) -> [UInt8] {
    Array(Self.bytes(try value(column, SQLITE_BLOB)))
  }

  func path(_ column: Int32) throws(LedgerFailure) -> RelativePath {
    RelativePath(trusted: try blob(column))
  }

  func text(_ column: Int32) throws(LedgerFailure) -> String {
    try text(of: value(column, SQLITE_TEXT), column)
  }

  func optionalText(_ column: Int32) throws(LedgerFailure) -> String? {
    guard let value = try optional(column, SQLITE_TEXT) else { return nil }
    return try text(of: value, column)
  }

  func isNull(_ column: Int32) -> Bool {
    sqlite3_column_type(handle, column) == SQLITE_NULL
  }

  /// The failure for a value that the schema does not allow.
  func damaged(_ column: Int32) -> LedgerFailure {
    let name = sqlite3_column_name(handle, column).map { String(cString: $0) } ?? "\(column)"
    return ErrorTable.failure(.corrupt, "column \(name) holds an impossible value", file: file)
  }

  // SQLite calls these values unprotected: no other thread may use the statement at the same time, and none does. Reading a
  // column's type and value by its index would take twice as long.

  private func value(_ column: Int32, _ type: Int32) throws(LedgerFailure) -> OpaquePointer {
    guard let value = sqlite3_column_value(handle, column), sqlite3_value_type(value) == type else {
      throw damaged(column)
    }
    return value
  }

  /// - Returns: the value; `nil` for NULL.
  private func optional(_ column: Int32, _ type: Int32) throws(LedgerFailure) -> OpaquePointer? {
    guard let value = sqlite3_column_value(handle, column) else { throw damaged(column) }
    let found = sqlite3_value_type(value)
    guard found == type || found == SQLITE_NULL else { throw damaged(column) }
    return found == type ? value : nil
  }

  private func text(of value: OpaquePointer, _ column: Int32) throws(LedgerFailure) -> String {
    guard let text = String(checked: Self.bytes(value).bindMemory(to: UInt8.self)) else {
      throw damaged(column)
    }
    return text
  }

  /// Returns the bytes of a value, which are valid until the next step.
  private static func bytes(_ value: OpaquePointer) -> UnsafeRawBufferPointer {
    let start = sqlite3_value_blob(value)
    return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_value_bytes(value)))
  }
}
