import TarnCore

/// The native manifest as lines of JSON: the header, one file on each line, and the end line.
struct ManifestLines: FeedFormat {
  /// The longest line, longer than in the line formats: one line holds the digests of all pieces of a file.
  private static let maximumLine = 16 << 20

  var name: String { "manifest lines" }
  var kind: FeedKind { .list }

  func recognises(_ head: [UInt8]) -> Bool {
    guard head.first(where: { !isBlank($0) }) == UInt8(ascii: "{") else { return false }
    return Self.begins(JSONReader(head), with: JSONKeys("header"))
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    var check = EndLine(hasher: context.hashing.hasher(.sha256))
    var header: ManifestHeader?
    var bases: [ManifestBase] = []
    while let (line, isEnded) = try input.readLine(limit: Self.maximumLine) {
      var reader = JSONReader(line, line: input.line)
      guard let known = header else {
        if !line.allSatisfy(isBlank) {
          let read = try Self.readHeader(&reader)
          bases = read.bases(in: context)
          header = read
          try reader.end()
        }
        check.add(line, isEnded)
        continue
      }
      if Self.mayBeEnd(line), Self.begins(reader, with: Self.end) {
        try check.compare(&reader)
        try Self.requireNothing(behind: input)
        return known.end(format: name, incomplete: nil)
      }
      check.add(line, isEnded)
      if line.allSatisfy(isBlank) { continue }
      guard isEnded else {
        throw FeedFailure.truncated("the last line is cut, and the end line is missing", line: input.line)
      }
      var file = known.defaults
      try file.read(&reader)
      try reader.end()
      check.count(file)
      if let item = file.item(in: context, known, bases) { try sink(item) }
    }
    throw FeedFailure.truncated("the end line is missing", line: input.line)
  }

  private static func readHeader(_ reader: inout JSONReader) throws(FeedFailure) -> ManifestHeader {
    var header: ManifestHeader?
    try reader.beginObject()
    while let key = try reader.nextKey() {
      if key.elementsEqual("header".utf8) { header = try ManifestHeader(&reader) } else { try reader.skip() }
    }
    guard let header else { throw reader.malformed("the first line holds no 'header'") }
    return header
  }

  private static let end = JSONKeys("end")

  /// Returns false for a line that is certainly not the end line, as nearly every line is, by the beginning of its first string.
  private static func mayBeEnd(_ line: [UInt8]) -> Bool {
    guard let quote = line.firstIndex(of: UInt8(ascii: "\"")), quote + 1 < line.count else { return true }
    return line[quote + 1] == UInt8(ascii: "e") || line[quote + 1] == UInt8(ascii: "\\")
  }

  /// Returns whether it is an object whose first key is the given one.
  private static func begins(_ reader: JSONReader, with key: JSONKeys) -> Bool {
    var reader = reader
    do throws(FeedFailure) {
      try reader.beginObject()
      return try reader.nextKey(of: key) == 0
    } catch {
      return false
    }
  }

  private static func requireNothing(behind input: FeedInput) throws(FeedFailure) {
    while let (line, _) = try input.readLine(limit: maximumLine) {
      guard line.allSatisfy(isBlank) else {
        throw FeedFailure.malformed("something follows the end line", line: input.line)
      }
    }
  }
}

/// The data for the check of the end line.
private struct EndLine {
  private let hasher: any Hasher
  /// Lines that are not hashed yet: hashing each by itself costs more than its bytes.
  private var lines: [UInt8] = []
  private var files: UInt64 = 0
  private var bytes: UInt64 = 0

  init(hasher: any Hasher) {
    self.hasher = hasher
  }

  private static let most = 16 << 10

  mutating func add(_ line: [UInt8], _ isEnded: Bool) {
    if line.count < Self.most {
      lines += line
    } else {
      hash()
      line.withUnsafeBytes { hasher.update($0) }
    }
    if isEnded { lines.append(0x0A) }
    if lines.count >= Self.most { hash() }
  }

  private mutating func hash() {
    lines.withUnsafeBytes { hasher.update($0) }
    lines.removeAll(keepingCapacity: true)
  }

  mutating func count(_ file: ManifestFile) {
    files += 1
    bytes &+= file.size ?? 0
  }

  /// - Throws: `feed-truncated` for a cut line, `feed-damaged` when something does not match.
  mutating func compare(_ reader: inout JSONReader) throws(FeedFailure) {
    hash()
    var wanted: (files: UInt64?, bytes: UInt64?, digest: Digest?) = (nil, nil, nil)
    try reader.beginObject()
    while let key = try reader.nextKey() {
      guard key.elementsEqual("end".utf8) else {
        try reader.skip()
        continue
      }
      try reader.beginObject()
      while let key = try reader.nextKey() {
        switch String(decoding: key, as: UTF8.self) {
        case "files": wanted.files = try Self.whole(&reader)
        case "bytes": wanted.bytes = try Self.whole(&reader)
        case "sha-256":
          wanted.digest = Digest(.sha256, hex: try reader.string())
          guard wanted.digest != nil else { throw reader.malformed("the end line's digest is malformed") }
        default: try reader.skip()
        }
      }
    }
    try reader.end()
    guard let expected = wanted.files else { throw reader.malformed("the end line gives no 'files'") }
    guard expected == files else {
      throw reader.malformed(
        "the end line announces \(Units.count(expected, "file")), \(Units.grouped(files)) came",
        code: "feed-damaged")
    }
    if let expected = wanted.bytes, expected != bytes {
      throw reader.malformed(
        "the end line announces \(Units.count(expected, "byte")), \(Units.grouped(bytes)) came",
        code: "feed-damaged")
    }
    if let expected = wanted.digest, expected != hasher.finish() {
      throw reader.malformed(
        "the digest of the end line is not that of the lines before it", code: "feed-damaged")
    }
  }

  private static func whole(_ reader: inout JSONReader) throws(FeedFailure) -> UInt64 {
    guard let value = try reader.wholeNumber() else {
      throw reader.malformed("the end line's numbers are whole numbers from 0")
    }
    return value
  }
}
