import TarnCore

// The columns of each type: their names, and how they are written and read, in the same order. A new column goes into all three
// places, and into a step of the schema.

extension Row: TableRecord {
  static let table = "rows"
  static let columns = "path, \(ownColumns)"
  /// All columns but the path.
  static let ownColumns = """
    device, inode, size, modified, changed, algorithm, digest, verified, fingerprint, etag, last_modified, placed, adopted
    """
  static let put = replacement

  func write<Sink: ColumnSink>(to sink: inout Sink) throws(Sink.Failure) {
    try sink.put(path)
    try writeOwn(to: &sink)
  }

  static func read<Source: ColumnSource>(from source: inout Source) throws(Source.Failure) -> Row {
    try readOwn(of: try source.path(), from: &source)
  }

  fileprivate func writeOwn<Sink: ColumnSink>(to sink: inout Sink) throws(Sink.Failure) {
    try sink.put(identity)
    try sink.put(digest)
    try sink.put(isVerified)
    try sink.put(fingerprint)
    try sink.put(optional: etag)
    try sink.put(optional: lastModified)
    try sink.put(placed)
    try sink.put(isAdopted)
  }

  fileprivate static func readOwn<Source: ColumnSource>(
    of path: RelativePath, from source: inout Source
  ) throws(Source.Failure) -> Row {
    Row(
      path: path, identity: try source.identity(), digest: try source.digest(), isVerified: try source.flag(),
      fingerprint: try source.string(), etag: try source.optionalText(),
      lastModified: try source.optionalText(), placed: try source.time(), isAdopted: try source.flag())
  }
}

/// The path of an intent is also that of its row.
extension Intent: TableRecord {
  static let table = "intents"
  static let columns = "path, kind, partial_name, trash_name, displaces_own, \(Row.ownColumns)"
  static let put = replacement

  func write<Sink: ColumnSink>(to sink: inout Sink) throws(Sink.Failure) {
    try sink.put(path)
    try sink.put(Int64(kind.rawValue))
    try sink.put(partialName)
    try sink.put(trashName)
    try sink.put(displacesOwn)
    try row.writeOwn(to: &sink)
  }

  static func read<Source: ColumnSource>(from source: inout Source) throws(Source.Failure) -> Intent {
    let path = try source.path()
    guard let kind = UInt8(exactly: try source.signed()).flatMap(Intent.Kind.init(rawValue:)) else {
      throw source.impossible()
    }
    let (partialName, trashName) = (try source.text(), try source.text())
    let displacesOwn = try source.flag()
    return Intent(
      kind: kind, path: path, partialName: partialName, trashName: trashName,
      row: try Row.readOwn(of: path, from: &source), displacesOwn: displacesOwn)
  }
}

extension PartialRow: TableRecord {
  static let table = "partials"
  static let columns =
    "path, name, url, etag, last_modified, total, algorithm, digest, fingerprint, durable, boot_id"
  static let put = replacement

  func write<Sink: ColumnSink>(to sink: inout Sink) throws(Sink.Failure) {
    try sink.put(path)
    try sink.put(name)
    // The column has both URLs, one to a line: no URL has a line feed.
    try sink.put(answered.map { "\(url)\n\($0)" } ?? url)
    try sink.put(optional: etag)
    // A date that is not strong is marked like a weak ETag.
    try sink.put(optional: lastModified ?? weakDate.map { Self.weak + $0 })
    try sink.put(optional: total)
    try sink.put(optional: (digest?.algorithm.rawValue).map { UInt64($0) })
    try sink.put(optional: digest?.bytes)
    try sink.put(fingerprint)
    try sink.put(durable)
    try sink.put(bootID)
  }

  static func read<Source: ColumnSource>(from source: inout Source) throws(Source.Failure) -> PartialRow {
    let (path, name) = (try source.path(), try source.text())
    let urls = try source.text().split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
    let (etag, date) = (try source.optionalText(), try source.optionalText())
    let isWeak = date?.hasPrefix(weak) == true
    return PartialRow(
      path: path, name: name, url: String(urls[0]), etag: etag, lastModified: isWeak ? nil : date,
      total: try source.optionalUnsigned(), digest: try optionalDigest(from: &source),
      fingerprint: try source.string(), durable: try source.unsigned(), bootID: try source.text(),
      answered: urls.count > 1 ? String(urls[1]) : nil,
      weakDate: isWeak ? date.map { String($0.dropFirst(weak.count)) } : nil)
  }

  /// What stands before a Last-Modified that is not strong.
  private static let weak = "W/"

  private static func optionalDigest<Source: ColumnSource>(
    from source: inout Source
  ) throws(Source.Failure) -> Digest? {
    let (number, bytes) = (try source.optionalUnsigned(), try source.optionalString())
    guard number != nil || bytes != nil else { return nil }
    guard let algorithm = number.flatMap({ UInt8(exactly: $0) }).flatMap(DigestAlgorithm.init(rawValue:)),
      let digest = bytes.flatMap({ Digest(algorithm, bytes: $0) })
    else { throw source.impossible() }
    return digest
  }
}

extension TrashRow: TableRecord {
  static let table = "trash"
  static let columns = "name, path, reason, own, size, moved, device, inode, modified, changed"
  static let put = replacement

  func write<Sink: ColumnSink>(to sink: inout Sink) throws(Sink.Failure) {
    try sink.put(name)
    try sink.put(path)
    try sink.put(reason.rawValue)
    try sink.put(isOwn)
    try sink.put(size)
    try sink.put(when)
    try sink.put(optional: identity?.device)
    try sink.put(optional: identity?.inode)
    try sink.put(optional: identity?.modified)
    try sink.put(optional: identity?.changed)
  }

  static func read<Source: ColumnSource>(from source: inout Source) throws(Source.Failure) -> TrashRow {
    let (name, path) = (try source.text(), try source.path())
    let reason: Reason = try source.choice()
    let (isOwn, size, when) = (try source.flag(), try source.unsigned(), try source.time())
    let (device, inode) = (try source.optionalUnsigned(), try source.optionalUnsigned())
    let (modified, changed) = (try source.optionalTime(), try source.optionalTime())
    var identity: FileIdentity?
    if let device, let inode, let modified, let changed {
      identity = FileIdentity(device: device, inode: inode, size: size, modified: modified, changed: changed)
    } else if device != nil || inode != nil || modified != nil || changed != nil {
      throw source.impossible()
    }
    return TrashRow(
      name: name, path: path, reason: reason, isOwn: isOwn, size: size, when: when, identity: identity)
  }
}

extension Problem: TableRecord {
  static let table = "problems"
  static let columns = "name, kind, code, message, since, seen, attempts"
  static let put = replacement

  func write<Sink: ColumnSink>(to sink: inout Sink) throws(Sink.Failure) {
    try sink.put(name)
    try sink.put(kind.rawValue)
    try sink.put(code)
    try sink.put(message)
    try sink.put(since)
    try sink.put(seen)
    try sink.put(Int64(attempts))
  }

  static func read<Source: ColumnSource>(from source: inout Source) throws(Source.Failure) -> Problem {
    let name = try source.string()
    let kind: Kind = try source.choice()
    let (code, message, since) = (try source.text(), try source.text(), try source.time())
    var problem = Problem(name: name, kind: kind, code: code, message: message, seen: try source.time())
    problem.since = since
    problem.attempts = try source.count()
    return problem
  }
}

/// The database gives the event its number when it is written.
extension Event: TableRecord {
  static let table = "events"
  static let columns = "number, \(ownColumns)"
  static let ownColumns = "moment, code, path, bytes, detail"
  static let put = replacement

  func write<Sink: ColumnSink>(to sink: inout Sink) throws(Sink.Failure) {
    try sink.put(when)
    try sink.put(code)
    try sink.put(optional: path?.bytes)
    try sink.put(optional: bytes)
    try sink.put(detail)
  }

  static func read<Source: ColumnSource>(from source: inout Source) throws(Source.Failure) -> Event {
    Event(
      number: try source.signed(), when: try source.time(), code: try source.text(),
      path: try source.optionalString().map { RelativePath(trusted: $0) },
      bytes: try source.optionalUnsigned(), detail: try source.text())
  }
}

extension NameRow: TableRecord {
  static let table = "names"
  static let columns = "path, guid, ordinal, place, url, title, date, first, rule"
  static let put = replacement

  func write<Sink: ColumnSink>(to sink: inout Sink) throws(Sink.Failure) {
    try sink.put(path)
    try sink.put(optional: guid)
    try sink.put(Int64(ordinal))
    try sink.put(place)
    try sink.put(url)
    try sink.put(title)
    try sink.put(optional: date)
    try sink.put(first)
    try sink.put(rule.rawValue)
  }

  static func read<Source: ColumnSource>(from source: inout Source) throws(Source.Failure) -> NameRow {
    NameRow(
      path: try source.path(), guid: try source.optionalString(), ordinal: try source.count(),
      place: try source.string(), url: try source.string(), title: try source.string(),
      date: try source.optionalTime(),
      first: try source.time(), rule: try source.choice())
  }
}

/// The position in the list is written before these columns.
extension Activity: TableRecord {
  static let table = "activity"
  static let columns = "path, received, total, rate, source"
  static let put = replacement

  func write<Sink: ColumnSink>(to sink: inout Sink) throws(Sink.Failure) {
    try sink.put(path)
    try sink.put(received)
    try sink.put(optional: total)
    try sink.put(rate)
    try sink.put(source)
  }

  static func read<Source: ColumnSource>(from source: inout Source) throws(Source.Failure) -> Activity {
    Activity(
      path: try source.path(), received: try source.unsigned(), total: try source.optionalUnsigned(),
      rate: try source.unsigned(), source: try source.text())
  }
}
