extension Schema {
  /// Drops the index of digests, which `SQLiteLedger.indexDigests` makes when it is first needed. Digests come in no order, so
  /// nearly each row of a first pass, which does not need the index, would write a page of it.
  static let version4 = """
    DROP INDEX IF EXISTS rows_by_digest;
    """

  /// The index of digests. It is part of no version, and may exist or not.
  static let digestIndex = "CREATE INDEX IF NOT EXISTS rows_by_digest ON rows (digest)"

  /// The row of the index in `sqlite_schema`: type, name, table, SQL.
  static let digestIndexObject: [String?] = [
    "index", "rows_by_digest", "rows", "CREATE INDEX rows_by_digest ON rows (digest)",
  ]
}
