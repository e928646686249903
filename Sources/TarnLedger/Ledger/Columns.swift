import TarnCore

// Each type's values in the order of its list of columns in `SQL`, and back.

extension Row {
  /// Of `SQL.rowColumns`: all but the path.
  var values: [Value] {
    [
      .bits(identity.device), .bits(identity.inode), .bits(identity.size),
      .integer(identity.modified.nanoseconds), .integer(identity.changed.nanoseconds),
      .integer(Int64(digest.algorithm.rawValue)), .blob(digest.bytes), .flag(isVerified), .blob(fingerprint),
      .optional(etag), .optional(lastModified), .integer(placed.nanoseconds), .flag(isAdopted),
    ]
  }
}

extension Statement {
  /// The path, and what `Row.values` has.
  func put(_ row: Row) throws(LedgerFailure) {
    try put(row.path.bytes)
    try put(bits: row.identity.device)
    try put(bits: row.identity.inode)
    try put(bits: row.identity.size)
    try put(row.identity.modified.nanoseconds)
    try put(row.identity.changed.nanoseconds)
    try put(Int64(row.digest.algorithm.rawValue))
    try put(row.digest.bytes)
    try put(row.isVerified ? 1 : 0)
    try put(row.fingerprint)
    try put(row.etag)
    try put(row.lastModified)
    try put(row.placed.nanoseconds)
    try put(row.isAdopted ? 1 : 0)
  }

  /// All but the number, which the database gives.
  func put(_ event: Event) throws(LedgerFailure) {
    try put(event.when.nanoseconds)
    try put(event.code)
    try put(event.path?.bytes)
    try put(bits: event.bytes)
    try put(event.detail)
  }
}

extension Intent {
  var values: [Value] {
    [
      .blob(path.bytes), .integer(Int64(kind.rawValue)), .text(partialName), .text(trashName),
      .flag(displacesOwn),
    ] + row.values
  }
}

extension PartialRow {
  var values: [Value] {
    [
      .blob(path.bytes), .text(name), .text(url), .optional(etag), .optional(lastModified), .bits(total),
      digest.map { .integer(Int64($0.algorithm.rawValue)) } ?? .null, .optional(digest?.bytes),
      .blob(fingerprint), .bits(durable), .text(bootID),
    ]
  }
}

extension TrashRow {
  var values: [Value] {
    [
      .text(name), .blob(path.bytes), .text(reason.rawValue), .flag(isOwn), .bits(size),
      .integer(when.nanoseconds), .bits(identity?.device), .bits(identity?.inode),
      identity.map { .integer($0.modified.nanoseconds) } ?? .null,
      identity.map { .integer($0.changed.nanoseconds) } ?? .null,
    ]
  }
}

extension Problem {
  var values: [Value] {
    [
      .blob(name), .text(kind.rawValue), .text(code), .text(message), .integer(since.nanoseconds),
      .integer(seen.nanoseconds), .integer(Int64(attempts)),
    ]
  }
}

extension NameRow {
  var values: [Value] {
    [
      .blob(path.bytes), .optional(guid), .integer(Int64(ordinal)), .blob(place), .blob(url), .blob(title),
      date.map { .integer($0.nanoseconds) } ?? .null, .integer(first.nanoseconds), .text(rule.rawValue),
    ]
  }
}

extension Activity {
  var values: [Value] {
    [.blob(path.bytes), .bits(received), .bits(total), .bits(rate), .text(source)]
  }
}

extension Statement {
  /// A row whose path is in column 0.
  func row() throws(LedgerFailure) -> Row {
    try row(path: try path(0), from: 1)
  }

  func intent() throws(LedgerFailure) -> Intent {
    guard let kind = UInt8(exactly: try integer(1)).flatMap(Intent.Kind.init(rawValue:)) else {
      throw damaged(1)
    }
    let path = try path(0)
    return Intent(
      kind: kind, path: path, partialName: try text(2), trashName: try text(3),
      row: try row(path: path, from: 5), displacesOwn: try flag(4))
  }

  func partial() throws(LedgerFailure) -> PartialRow {
    PartialRow(
      path: try path(0), name: try text(1), url: try text(2), etag: try optionalText(3),
      lastModified: try optionalText(4), total: try optionalBits(5),
      digest: isNull(6) && isNull(7) ? nil : try digest(6), fingerprint: try blob(8), durable: try bits(9),
      bootID: try text(10))
  }

  func trash() throws(LedgerFailure) -> TrashRow {
    guard let reason = TrashRow.Reason(rawValue: try text(2)) else { throw damaged(2) }
    let size = try bits(4)
    let identity =
      isNull(7)
      ? nil
      : FileIdentity(
        device: try bits(6), inode: try bits(7), size: size, modified: try timestamp(8),
        changed: try timestamp(9))
    return TrashRow(
      name: try text(0), path: try path(1), reason: reason, isOwn: try flag(3), size: size,
      when: try timestamp(5), identity: identity)
  }

  func problem() throws(LedgerFailure) -> Problem {
    guard let attempts = Int(exactly: try integer(6)) else { throw damaged(6) }
    var problem = Problem(
      name: try blob(0), kind: try problemKind(1), code: try text(2), message: try text(3),
      seen: try timestamp(5))
    problem.since = try timestamp(4)
    problem.attempts = attempts
    return problem
  }

  func problemKind(_ column: Int32) throws(LedgerFailure) -> Problem.Kind {
    guard let kind = Problem.Kind(rawValue: try text(column)) else { throw damaged(column) }
    return kind
  }

  func event() throws(LedgerFailure) -> Event {
    Event(
      number: try integer(0), when: try timestamp(1), code: try text(2), path: isNull(3) ? nil : try path(3),
      bytes: try optionalBits(4), detail: try text(5))
  }

  func name() throws(LedgerFailure) -> NameRow {
    guard let ordinal = Int(exactly: try integer(2)) else { throw damaged(2) }
    guard let rule = NameRow.Rule(rawValue: try text(8)) else { throw damaged(8) }
    return NameRow(
      path: try path(0), guid: isNull(1) ? nil : try blob(1), ordinal: ordinal, place: try blob(3),
      url: try blob(4), title: try blob(5), date: isNull(6) ? nil : try timestamp(6),
      first: try timestamp(7), rule: rule)
  }

  func activity() throws(LedgerFailure) -> Activity {
    Activity(
      path: try path(0), received: try bits(1), total: try optionalBits(2), rate: try bits(3),
      source: try text(4))
  }

  private func row(path: RelativePath, from first: Int32) throws(LedgerFailure) -> Row {
    return Row(
      path: path, identity: try identity(from: first), digest: try digest(first + 5),
      isVerified: try flag(first + 7),
      fingerprint: try blob(first + 8), etag: try optionalText(first + 9),
      lastModified: try optionalText(first + 10), placed: try timestamp(first + 11),
      isAdopted: try flag(first + 12))
  }

  /// Five columns, from `first` on.
  func identity(from first: Int32) throws(LedgerFailure) -> FileIdentity {
    FileIdentity(
      device: try bits(first), inode: try bits(first + 1), size: try bits(first + 2),
      modified: try timestamp(first + 3), changed: try timestamp(first + 4))
  }

  /// The algorithm is in `column`, the bytes follow it.
  private func digest(_ column: Int32) throws(LedgerFailure) -> Digest {
    guard let algorithm = UInt8(exactly: try integer(column)).flatMap(DigestAlgorithm.init(rawValue:)),
      let digest = Digest(algorithm, bytes: try blob(column + 1))
    else { throw damaged(column) }
    return digest
  }
}
