/// A value to bind to a parameter of a statement.
enum Value: Equatable {
  case null
  case integer(Int64)
  case text(String)
  case blob([UInt8])

  /// Keeps all 64 bits. SQLite's integers are signed, so the upper half is negative in the database and is restored on reading. No
  /// value is refused or traps.
  static func bits(_ value: UInt64) -> Value { .integer(Int64(bitPattern: value)) }
  /// A limit of rows, at least 0, because SQLite takes a negative one for none.
  static func limit(_ value: Int) -> Value { .integer(Int64(max(0, value))) }
}
