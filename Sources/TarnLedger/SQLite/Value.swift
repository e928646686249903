/// A value to bind to a parameter of a statement.
enum Value: Equatable {
  case null
  case integer(Int64)
  case text(String)
  case blob([UInt8])

  /// Every 64 bits as they are: SQLite's integers are signed, so the upper half reads as negative in the
  /// database and comes back the same. Nothing is refused and nothing traps.
  static func bits(_ value: UInt64) -> Value { .integer(Int64(bitPattern: value)) }
  /// A limit: SQLite takes a negative one for none.
  static func limit(_ value: Int) -> Value { .integer(Int64(max(0, value))) }
}
