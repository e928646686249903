import TarnCore

/// Keeps the intents of a list together in one row. They are written before a group of renames and dropped after it, a moment
/// later. Separate rows took a tenth of the time of a first pass over small files.
///
/// The paths of each group are kept here, so that a row can be dropped unread once all its intents are dropped. This is a value:
/// the new one is adopted once the transaction that changed it is committed.
struct IntentGroups {
  /// The fewest intents of a group. Shorter lists become rows of the table `intents`.
  static let least = 8

  private struct Group {
    let number: Int64
    var paths: Set<RelativePath>
    /// True while the row has intents that were dropped.
    var isTouched = false
  }

  /// The groups in ascending order; there are few at a time. This is an array because a dictionary is copied, with all its sets,
  /// when it is changed while its keys are iterated.
  private var groups: [Group] = []
  private var isLoaded = false

  /// Returns the intents of a list that make one group. `nil` when there are too few, or one is dropped after the first of them.
  static func intents(in changes: [LedgerChange]) -> [Intent]? {
    guard changes.count >= least else { return nil }
    var intents: [Intent] = []
    for change in changes {
      switch change {
      case .intent(let intent): intents.append(intent)
      case .dropIntent where !intents.isEmpty: return nil
      default: break
      }
    }
    return intents.count >= least ? intents : nil
  }

  /// Reads, once, the groups that an earlier run left.
  mutating func load(_ connection: Connection) throws(LedgerFailure) {
    guard !isLoaded else { return }
    groups = try Self.all(connection).map {
      Group(number: $0.number, paths: Set($0.intents.lazy.map(\.path)))
    }
    isLoaded = true
  }

  /// Writes a list as one row. It replaces older intents for the same paths.
  mutating func add(_ intents: [Intent], _ connection: Connection) throws(LedgerFailure) {
    for intent in intents { try connection.requireOnePath(intent) }
    let paths = Set(intents.lazy.map(\.path))
    let hasRows = try connection.first("SELECT 1 FROM intents LIMIT 1") { _ in true } ?? false
    if hasRows || !groups.isEmpty {
      for path in paths where !leave(path) && hasRows {
        try connection.run("DELETE FROM intents WHERE path = ?", [.blob(path.bytes)])
      }
    }
    // When a path occurs twice the second intent counts.
    let newest =
      paths.count == intents.count
      ? intents : Array(Dictionary(intents.map { ($0.path, $0) }) { $1 }.values)
    let number = (groups.last?.number ?? 0) + 1
    try Self.write(number, newest, connection)
    groups.append(Group(number: number, paths: paths))
  }

  /// Removes a path from its group.
  ///
  /// - Returns: false when the path is in no group.
  mutating func leave(_ path: RelativePath) -> Bool {
    for index in groups.indices where groups[index].paths.remove(path) != nil {
      groups[index].isTouched = true
      return true
    }
    return false
  }

  /// Updates the rows of groups that have lost intents.
  mutating func settle(_ connection: Connection) throws(LedgerFailure) {
    for index in groups.indices where groups[index].isTouched {
      let number = groups[index].number
      groups[index].isTouched = false
      guard !groups[index].paths.isEmpty else {
        try connection.run("DELETE FROM intent_groups WHERE number = ?", [.integer(number)])
        continue
      }
      let intents = try connection.first(
        "SELECT body FROM intent_groups WHERE number = ?", [.integer(number)]
      ) { row throws(LedgerFailure) in try row.intents(0) }
      let left = (intents ?? []).filter { groups[index].paths.contains($0.path) }
      try Self.write(number, left, connection)
    }
    groups.removeAll { $0.paths.isEmpty }
  }

  static func all(_ connection: Connection) throws(LedgerFailure) -> [(number: Int64, intents: [Intent])] {
    try connection.all("SELECT number, body FROM intent_groups ORDER BY number") {
      row throws(LedgerFailure) in (try row.integer(0), try row.intents(1))
    }
  }

  private static func write(
    _ number: Int64, _ intents: [Intent], _ connection: Connection
  ) throws(LedgerFailure) {
    var writer = ByteWriter()
    writer.put(byte: IntentCodec.form)
    writer.put(list: intents) { IntentCodec.encode($1, into: &$0) }
    try connection.run(
      "INSERT OR REPLACE INTO intent_groups (number, body) VALUES (?, ?)",
      [.integer(number), .blob(writer.bytes)])
  }
}

/// Encodes intents as bytes. They outlive the run, so a change of the format needs another number.
enum IntentCodec {
  static let form: UInt8 = 1

  static func encode(_ intent: Intent, into writer: inout ByteWriter) {
    writer.put(byte: intent.kind.rawValue)
    writer.put(intent.partialName)
    writer.put(intent.trashName)
    writer.put(intent.displacesOwn)
    intent.row.write(to: &writer)
  }

  static func decode(from reader: inout ByteReader) throws(DamagedBytes) -> Intent {
    guard let kind = Intent.Kind(rawValue: try reader.byte()) else { throw DamagedBytes() }
    let (partialName, trashName, displacesOwn) = (try reader.text(), try reader.text(), try reader.flag())
    let row = try Row.read(from: &reader)
    return Intent(
      kind: kind, path: row.path, partialName: partialName, trashName: trashName, row: row,
      displacesOwn: displacesOwn)
  }
}

extension Statement {
  /// Decodes a list of intents from a BLOB column.
  fileprivate func intents(_ column: Int32) throws(LedgerFailure) -> [Intent] {
    try decoded(column) { reader throws(DamagedBytes) in
      guard try reader.byte() == IntentCodec.form else { throw DamagedBytes() }
      return try reader.list { reader throws(DamagedBytes) in try IntentCodec.decode(from: &reader) }
    }
  }
}
