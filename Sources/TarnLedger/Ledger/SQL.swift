import TarnCore

/// The longer SQL statements. `Records.swift` lists the columns.
enum SQL {
  static let countHeldPathDown = """
    UPDATE held SET count = count - 1
    WHERE EXISTS (SELECT 1 FROM held_paths WHERE held_paths.plan = held.plan AND path = ?)
    """

  static let recorded = "SELECT path, device, inode, size, modified, changed FROM rows ORDER BY path"

  /// Returns the values for `> ?` and `< ?` that select all paths below a path.
  static func below(_ path: RelativePath) -> [Value] {
    let slash = UInt8(ascii: "/")
    return [.blob(path.bytes + [slash]), .blob(path.bytes + [slash + 1])]
  }

  /// Returns the statement that reads a region's rows by path. It needs no sorting, because each part is read in the order of its
  /// index.
  static func select(_ columns: String, from table: String, in region: Region) -> (sql: String, [Value]) {
    let select = "SELECT \(columns) FROM \(table)"
    let isDirect = region.extent == .children ? "instr(substr(path, ?), x'2f') = 0" : nil
    guard let path = region.path else {
      guard let isDirect else { return ("\(select) ORDER BY path", []) }
      return ("\(select) WHERE \(isDirect) ORDER BY path", [.integer(1)])
    }
    let itself = "\(select) WHERE path = ?"
    guard region.extent > .itself else { return (itself, [.blob(path.bytes)]) }
    let lower = isDirect.map { " AND \($0)" } ?? ""
    let values: [Value] = isDirect == nil ? [] : [.integer(Int64(path.bytes.count) + 2)]
    return (
      "\(itself) UNION ALL \(select) WHERE path > ? AND path < ?\(lower) ORDER BY path",
      [.blob(path.bytes)] + below(path) + values
    )
  }

  /// The condition for open problems: failures only if they were seen since a moment, all others in any case.
  static let isOpen = "(kind <> 'failed' OR seen >= ?)"
  static let putProblem = """
    INSERT INTO problems (\(Problem.columns)) VALUES (\(Problem.places))
    ON CONFLICT (name) DO UPDATE SET
      since = CASE WHEN code = excluded.code THEN since ELSE excluded.since END,
      attempts = CASE
        WHEN code = excluded.code THEN attempts + (seen < excluded.seen) * excluded.attempts
        ELSE excluded.attempts END,
      kind = excluded.kind, code = excluded.code, message = excluded.message, seen = max(seen, excluded.seen)
    """

  static let dropProblems = "DELETE FROM problems WHERE seen < ? RETURNING name, kind"

  static let addEvent =
    "INSERT INTO events (\(Event.ownColumns)) VALUES (\(Event.places(of: Event.ownColumns)))"

  static let oldestPrunable = """
    SELECT number, moment FROM events WHERE NOT (code = 'deleted' AND moment >= ?) ORDER BY number LIMIT 1
    """
  /// The condition for events up to a number and before a moment, except deletions since another moment.
  private static let prunable = "number <= ? AND moment < ? AND NOT (code = 'deleted' AND moment >= ?)"
  static let lastPrunable = "SELECT number FROM events WHERE \(prunable) ORDER BY number DESC LIMIT 1"
  static let prune = "DELETE FROM events WHERE \(prunable)"

  static let addActivity =
    "INSERT INTO activity (position, \(Activity.columns)) VALUES (?, \(Activity.places))"

  static let fact = "SELECT value FROM facts WHERE name = ?"
}
