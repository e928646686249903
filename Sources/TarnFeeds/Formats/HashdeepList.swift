import TarnCore

/// The list that `hashdeep` prints: size, digests and name in columns that a header line names.
///
/// Names are not quoted, so a name with a line feed continues in the next line.
struct HashdeepList: FeedFormat {
  private static let mark = "%%%% HASHDEEP-1."

  var name: String { "hashdeep list" }
  var kind: FeedKind { .list }
  var isKept: Bool { true }

  func recognises(_ head: [UInt8]) -> Bool { head.drop(while: isBlank).begins(with: Self.mark) }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    var reading = HashdeepReading(context: context)
    while let (raw, isEnded) = try input.readLine() {
      let line = ListedFile.withoutReturns(raw)
      // No name goes on with a blank line, and DOS ends a text with Ctrl-Z.
      if line.allSatisfy({ isBlank($0) || $0 == 0x1A }) { continue }
      try reading.read(line, number: input.line, isEnded: isEnded, sink: sink)
      if !isEnded { reading.noteCut(at: input.line) }
    }
    try reading.flush(to: sink)
    if let doubt = context.doubt { reading.note(doubt) }
    return FeedEnd(format: name, isComplete: reading.reason == nil, incompleteReason: reading.reason ?? "")
  }
}

/// The state while a list is read.
private struct HashdeepReading {
  private enum Column: Equatable {
    case size
    /// A digest; `nil` for an algorithm that Tarn cannot check.
    case digest(DigestAlgorithm?)
  }

  private struct Row {
    var size: UInt64?
    var digests: [Digest] = []
    /// The code of the first column that cannot be read.
    var fault: String?
    var name: [UInt8]
    /// True when nothing ends the name.
    var mayBeCut = false
  }

  let context: FeedContext
  /// Why the list is not complete.
  private(set) var reason: String?
  /// All columns but the last, which is the name; empty before the header.
  private var columns: [Column] = []
  /// The directory that absolute names begin with.
  private var root: [UInt8] = []
  /// True when the list was made on Windows, whose separators are backslashes.
  private var isFromWindows = false
  /// The row read last, whose name may continue.
  private var pending: Row?

  init(context: FeedContext) { self.context = context }

  /// Keeps the first reason.
  mutating func note(_ text: String) {
    if reason == nil { reason = text }
  }

  /// Notes that nothing ends the last line.
  mutating func noteCut(at number: Int) {
    note("line \(number), the last one, has no end: it may be cut")
    pending?.mayBeCut = true
  }

  mutating func read(_ line: ArraySlice<UInt8>, number: Int, isEnded: Bool, sink: FeedSink) throws {
    if line.begins(with: "%%%% ") {
      try flush(to: sink)
      try header(trimmed(line.dropFirst(5)), number: number)
    } else if line.begins(with: "##") {
      try flush(to: sink)
      comment(trimmed(line.dropFirst(2)))
    } else if let row = row(line) {
      try flush(to: sink)
      pending = row
    } else if !isEnded {
      // It is the beginning of a row rather than the rest of a name.
      throw FeedFailure(
        code: "feed-truncated", message: "the list ends in the middle of a line", line: number)
    } else if let count = pending?.name.count, count + line.count < FeedInput.maximumLine {
      pending?.name.append(0x0A)
      pending?.name += line
      note("line \(number) is not understood")
    } else {
      try flush(to: sink)
      try sink(
        Refusal.of(text: line, code: "line-malformed", reason: "line \(number) is not a row of the list"))
      note("line \(number) is not understood")
    }
  }

  mutating func flush(to sink: FeedSink) throws {
    guard let row = pending else { return }
    pending = nil
    if let item = item(row) { try sink(item) }
  }

  private mutating func header(_ text: [UInt8], number: Int) throws(FeedFailure) {
    if text.begins(with: "HASHDEEP-1.") { return }
    let names = text.split(separator: 0x2C).map { String(decoding: trimmed($0), as: UTF8.self) }
    guard names.count > 1, names.count <= 16, names.last == "filename" else {
      throw FeedFailure.malformed("the header of the hashdeep list names no columns", line: number)
    }
    columns = names.dropLast().map { $0 == "size" ? .size : .digest(DigestAlgorithm(name: $0)) }
  }

  private mutating func comment(_ text: [UInt8]) {
    let mark = Array("Invoked from: ".utf8)
    guard text.starts(with: mark), text.count > mark.count else { return }
    let directory = text.dropFirst(mark.count)
    isFromWindows = directory.dropFirst().begins(with: ":\\")
    root = inSegments(directory)
    if root.last != 0x2F { root.append(0x2F) }
  }

  private func inSegments(_ path: some Sequence<UInt8>) -> [UInt8] {
    isFromWindows ? path.map { $0 == UInt8(ascii: "\\") ? 0x2F : $0 } : Array(path)
  }

  /// - Returns: `nil` when the line is not a row, so that it may be the rest of a name.
  private func row(_ line: ArraySlice<UInt8>) -> Row? {
    let fields = line.split(separator: 0x2C, maxSplits: columns.count, omittingEmptySubsequences: false)
    guard !columns.isEmpty, fields.count == columns.count + 1, let name = fields.last, !name.isEmpty,
      zip(columns, fields).allSatisfy({ column, field in
        !field.isEmpty
          && field.allSatisfy { column == .size ? $0.isASCIIDigit : $0.hexDigitValue != nil }
      })
    else { return nil }
    var row = Row(name: Array(name))
    for (column, field) in zip(columns, fields) {
      switch column {
      case .size:
        row.size = UInt64(String(decoding: field, as: UTF8.self))
        if row.size.map({ $0 > Int64.max }) ?? true { row.fault = row.fault ?? "size-malformed" }
      case .digest(let algorithm?):
        guard let digest = Digest(algorithm, hex: field) else {
          row.fault = row.fault ?? "digest-malformed"
          continue
        }
        row.digests.append(digest)
      case .digest(nil): break
      }
    }
    if row.digests.isEmpty { row.fault = row.fault ?? "digest-unsupported" }
    return row
  }

  /// - Returns: `nil` for the list itself, whose size and digests are of an earlier state.
  private func item(_ row: Row) -> FeedItem? {
    let path = inSegments(row.name)
    let isBelow = !root.isEmpty && path.starts(with: root)
    let name = isBelow ? Array(path[root.count...]) : ListedFile.withoutDot(path)
    if context.isDocument(name) { return nil }
    if let fault = row.fault {
      let reason =
        switch fault {
        case "size-malformed": "the size is not a whole number from 0 to 2^63-1"
        case "digest-unsupported": Refusal.noCheck
        default: "a digest is of the wrong length"
        }
      return .refused(Refusal(name: name, code: fault, reason: reason))
    }
    return ListedFile.item(
      name, size: row.size, digests: row.digests, mayBeCut: row.mayBeCut, in: context)
  }
}
