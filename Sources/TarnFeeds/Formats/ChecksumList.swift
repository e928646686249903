import TarnCore

/// Checksum lists such as `SHA256SUMS`: the lines of coreutils, BSD, openssl and gpg, also clearsigned, lists with the names in
/// front, and a single digest beside a file.
struct ChecksumList: FeedFormat {
  var name: String { "checksum list" }
  var kind: FeedKind { .list }
  var isKept: Bool { true }

  func recognises(_ head: [UInt8]) -> Bool { recognises(head, named: []) }

  func recognises(_ head: [UInt8], named name: [UInt8]) -> Bool {
    ChecksumLayout(head, name: name) != nil
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    let head = try input.peek()
    let layout = ChecksumLayout(head, name: context.url.name)
    if case .digestAlone(let listed) = layout {
      try sink(ListedFile.item(listed.name, digests: [listed.digest], in: context))
      return end(context.doubt)
    }
    var reading = ChecksumReading(context: context)
    var lines = ChecksumLines(name: context.url.name, isNameFirst: layout == .nameFirst)
    var text = SignedText(head: head)
    while let (raw, isEnded) = try input.readLine() {
      guard let line = text.next(raw) else {
        if text.wasOutside { reading.noteUnsigned(raw, at: input.line) }
        continue
      }
      try lines.add(ListLine(line, number: input.line, isEnded: isEnded)) {
        try reading.read($0, of: $1, sink: sink)
      }
      if !isEnded { reading.note("line \(input.line), the last one, has no end: it may be cut") }
    }
    try lines.finish { try reading.read($0, of: $1, sink: sink) }
    try reading.finish(sink: sink)
    guard reading.understood > 0 else {
      throw FeedFailure(code: "feed-not-recognised", message: "no line of this list is a checksum line")
    }
    if text.isCut { reading.note("truncated: the end of the PGP signature is missing") }
    if let doubt = context.doubt { reading.note(doubt) }
    var end = end(reading.reason)
    end.isCut = text.isCut
    return end
  }

  private func end(_ doubt: String?) -> FeedEnd {
    FeedEnd(format: name, isComplete: doubt == nil, incompleteReason: doubt ?? "")
  }
}

/// The state while a list is read. Consecutive lines about one file become one entry.
private struct ChecksumReading {
  let context: FeedContext
  var understood = 0
  /// Why the list is not complete.
  private(set) var reason: String?
  private var pending: Entry?
  /// A name whose lines so far have only digests that Tarn cannot check.
  private var unchecked: [UInt8]?
  private var names = ListedNames()
  /// True when the previous line names a file.
  private var isBehindFile = false
  /// Lines of text since then. When a line that names a file follows directly, they should have been such lines.
  private var suspects: [ListLine] = []
  private static let mostSuspects = 1000

  init(context: FeedContext) {
    self.context = context
  }

  /// Keeps the first reason.
  mutating func note(_ text: String) {
    if reason == nil { reason = text }
  }

  /// Notes a line outside the signed text. Nobody vouches for its file, which may yet be a part of the list.
  mutating func noteUnsigned(_ line: [UInt8], at number: Int) {
    guard case .file = ChecksumLine(ListedFile.withoutReturns(line)) else { return }
    note("line \(number) names a file outside of the signed text, and is left out")
  }

  mutating func read(_ parsed: ChecksumLine, of line: ListLine, sink: FeedSink) throws {
    switch parsed {
    case .nothing, .title: leaveFiles()
    case .size(let name, let size, let isComment):
      leaveFiles()
      note(size: size, of: name, isComment: isComment)
    case .file(let listed):
      try enterFile(sink: sink)
      try read(listed, of: line, sink: sink)
    case .unsupported(let name):
      try enterFile(sink: sink)
      try takeUnchecked(ListedFile.withoutDot(name), sink: sink)
    case .text, .malformed:
      guard line.isEnded || understood == 0 else {
        throw FeedFailure(
          code: "feed-truncated", message: "the list ends in the middle of a line", line: line.number)
      }
      note("line \(line.number) is not understood")
      if parsed == .malformed {
        try refuse(line, sink: sink)
      } else if isBehindFile, suspects.count < Self.mostSuspects {
        suspects.append(line)
      }
    }
  }

  /// Ends a run of lines that name files.
  private mutating func leaveFiles() { (isBehindFile, suspects) = (false, []) }

  /// Begins or continues such a run. Text directly between two lines that name files was one of them, and is damaged.
  private mutating func enterFile(sink: FeedSink) throws {
    understood += 1
    for line in suspects { try refuse(line, sink: sink) }
    (isBehindFile, suspects) = (true, [])
  }

  private mutating func refuse(_ line: ListLine, sink: FeedSink) throws {
    try flush(to: sink)
    let reason = "line \(line.number) is not a checksum line"
    try sink(Refusal.of(text: line.bytes, code: "line-malformed", reason: reason))
  }

  mutating func finish(sink: FeedSink) throws {
    try flush(to: sink)
    try settleUnchecked(sink: sink)
    for name in names.namesUnchecked { try refuse(name, sink: sink) }
    if let name = names.nameWithoutFile { note("\(Printable.escape(name)) has a size and no digest") }
  }

  private mutating func flush(to sink: FeedSink) throws {
    if let entry = pending { try sink(.entry(entry)) }
    pending = nil
  }

  private mutating func note(size: UInt64, of name: [UInt8], isComment: Bool) {
    let name = ListedFile.withoutDot(name)
    if let known = pending, known.path.bytes == name, known.size == nil {
      pending?.size = size
    } else {
      names.note(size: size, of: name, isComment: isComment)
    }
  }

  /// Notes a digest that cannot be checked. One that can be checked may stand anywhere in the list.
  private mutating func takeUnchecked(_ name: [UInt8], sink: FeedSink) throws {
    guard !context.isDocument(name), pending?.path.bytes != name, unchecked != name else { return }
    try settleUnchecked(sink: sink)
    unchecked = name
  }

  private mutating func settleUnchecked(sink: FeedSink) throws {
    guard let name = unchecked else { return }
    unchecked = nil
    guard !names.noteUnchecked(name) else { return }
    try flush(to: sink)
    try refuse(name, sink: sink)
  }

  private func refuse(_ name: [UInt8], sink: FeedSink) throws {
    try sink(.refused(Refusal(name: name, code: "digest-unsupported", reason: Refusal.noCheck)))
  }

  private mutating func read(_ listed: ChecksumLine.ListedDigest, of line: ListLine, sink: FeedSink) throws {
    let bytes = ListedFile.withoutDot(listed.name)
    // No list can hold its own digest: what it says of itself is about an earlier state.
    guard !context.isDocument(bytes) else { return }
    if unchecked == bytes { unchecked = nil } else { try settleUnchecked(sink: sink) }
    if let known = pending, known.path.bytes == bytes,
      !known.digests.contains(where: { $0.algorithm == listed.digest.algorithm })
    {
      pending = Entry(
        path: known.path, size: known.size ?? listed.size, digests: known.digests + [listed.digest],
        sources: known.sources)
      pending?.mayBeCut = !line.isEnded
      return
    }
    try flush(to: sink)
    guard !bytes.elementsEqual("-".utf8) else {
      return try sink(
        Refusal.of(
          text: line.bytes, code: "line-malformed",
          reason: "line \(line.number) is the digest of standard input ('-'), not of a file"))
    }
    let path: RelativePath
    do throws(PathRefusal) {
      path = try RelativePath(bytes, rule: context.document.rule)
    } catch {
      return try sink(.refused(Refusal(name: bytes, error)))
    }
    names.noteChecked(bytes)
    let sources =
      listed.url.isEmpty ? context.sources(beside: path) : context.source(listed.url).map { [$0] } ?? []
    guard !sources.isEmpty else { return try sink(context.withoutSource(path)) }
    pending = Entry(
      path: path, size: listed.size ?? names.size(of: bytes), digests: [listed.digest], sources: sources)
    pending?.mayBeCut = !line.isEnded
  }
}
