extension Schema {
  /// Digests are indexed once they are first asked for (`SQLiteLedger.indexDigests`): they come in no order, so that nearly each row
  /// of a first pass, which asks for none, would write a page of the index.
  static let version4 = """
    DROP INDEX IF EXISTS rows_by_digest;
    """

  /// Part of no version: it may be there or not.
  static let digestIndex = "CREATE INDEX IF NOT EXISTS rows_by_digest ON rows (digest)"

  /// How `sqlite_schema` shows it: type, name, table, text.
  static let digestIndexObject: [String?] = [
    "index", "rows_by_digest", "rows", "CREATE INDEX rows_by_digest ON rows (digest)",
  ]
}
