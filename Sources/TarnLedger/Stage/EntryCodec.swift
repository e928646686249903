import TarnCore

/// Encodes an entry without its path as bytes, for the stage and the catalog. The catalog has the version of this format.
enum EntryCodec {
  /// The optional parts that follow, in the order of their bits.
  private struct Parts: OptionSet {
    let rawValue: UInt64
    static let size = Parts(rawValue: 1)
    static let modified = Parts(rawValue: 2)
    static let pieces = Parts(rawValue: 4)
    /// The value of `modifiedIsExact`. This is not a part.
    static let exact = Parts(rawValue: 8)
    /// The value of `mayBeDirectory`. This is not a part.
    static let mayBeDirectory = Parts(rawValue: 16)
    static let hint = Parts(rawValue: 32)
    /// The value of `isList`. This is not a part.
    static let isList = Parts(rawValue: 64)
    static let voucher = Parts(rawValue: 128)
    /// The value of `mayBeCut`. This is not a part.
    static let mayBeCut = Parts(rawValue: 256)
    static let all: Parts = [
      .size, .modified, .pieces, .exact, .mayBeDirectory, .hint, .isList, .voucher, .mayBeCut,
    ]
  }

  static func encode(_ entry: Entry, into writer: inout ByteWriter) {
    var parts: Parts = []
    if entry.size != nil { parts.insert(.size) }
    if entry.modified != nil { parts.insert(.modified) }
    if entry.pieces != nil { parts.insert(.pieces) }
    if entry.modifiedIsExact { parts.insert(.exact) }
    if entry.mayBeDirectory { parts.insert(.mayBeDirectory) }
    if !entry.hint.isEmpty { parts.insert(.hint) }
    if entry.isList { parts.insert(.isList) }
    if entry.voucher != nil { parts.insert(.voucher) }
    if entry.mayBeCut { parts.insert(.mayBeCut) }
    writer.put(parts.rawValue)
    if let size = entry.size { writer.put(size) }
    if let modified = entry.modified { writer.put(modified.nanoseconds) }
    if let pieces = entry.pieces {
      writer.put(pieces.length)
      writer.put(list: pieces.digests) { $0.put($1) }
    }
    writer.put(list: entry.digests) { $0.put($1) }
    writer.put(list: entry.sources) { writer, source in
      writer.put(source.url)
      writer.put(Int64(source.priority))
    }
    writer.put(entry.listing)
    if parts.contains(.hint) { encode(entry.hint, into: &writer) }
    if let voucher = entry.voucher { writer.put(voucher.bytes) }
  }

  /// Encodes a missing value as 0 or empty: no media type is empty, and no length is 0. A range is encoded as its two ends.
  private static func encode(_ hint: ContentHint, into writer: inout ByteWriter) {
    writer.put(hint.mediaType ?? [])
    writer.put(hint.length ?? 0)
    writer.put(hint.sizes?.lowerBound ?? 1)
    writer.put(hint.sizes?.upperBound ?? 0)
  }

  private static func hint(from reader: inout ByteReader) throws(DamagedBytes) -> ContentHint {
    let mediaType = try reader.string()
    let length = try reader.unsigned()
    let (first, last) = (try reader.unsigned(), try reader.unsigned())
    return ContentHint(
      mediaType: mediaType.isEmpty ? nil : mediaType, length: length == 0 ? nil : length,
      sizes: first <= last ? first...last : nil)
  }

  static func decode(path: RelativePath, from reader: inout ByteReader) throws(DamagedBytes) -> Entry {
    let parts = Parts(rawValue: try reader.unsigned())
    guard parts.isSubset(of: .all) else { throw DamagedBytes() }
    let size = parts.contains(.size) ? try reader.unsigned() : nil
    let modified = parts.contains(.modified) ? Timestamp(nanoseconds: try reader.signed()) : nil
    var pieces: Pieces?
    if parts.contains(.pieces) {
      let length = try reader.unsigned()
      pieces = Pieces(length: length, digests: try reader.digests())
    }
    let digests = try reader.digests()
    let sources = try reader.list { reader throws(DamagedBytes) in
      let url = try reader.text()
      return Source(url: url, priority: Int(try reader.signed()))
    }
    let listing = try reader.string()
    let hint = parts.contains(.hint) ? try hint(from: &reader) : ContentHint()
    let voucher = parts.contains(.voucher) ? RelativePath(trusted: try reader.string()) : nil
    var entry = Entry(
      path: path, size: size, modified: modified, modifiedIsExact: parts.contains(.exact), digests: digests,
      sources: sources, pieces: pieces, listing: listing,
      mayBeDirectory: parts.contains(.mayBeDirectory), hint: hint, isList: parts.contains(.isList),
      voucher: voucher)
    entry.mayBeCut = parts.contains(.mayBeCut)
    // The original order of the digests is kept.
    if digests.count > 1 { entry.digests = digests }
    return entry
  }
}

extension ByteWriter {
  /// Puts the algorithm and the bytes.
  mutating func put(_ digest: Digest) {
    put(byte: digest.algorithm.rawValue)
    put(digest.bytes)
  }
}

extension ByteReader {
  mutating func digest() throws(DamagedBytes) -> Digest {
    guard let algorithm = DigestAlgorithm(rawValue: try byte()),
      let digest = Digest(algorithm, bytes: try string())
    else { throw DamagedBytes() }
    return digest
  }

  mutating func digests() throws(DamagedBytes) -> [Digest] {
    try list { reader throws(DamagedBytes) in try reader.digest() }
  }
}

extension Statement {
  /// Decodes a BLOB column with `body`, which must read all of it.
  func decoded<Result>(
    _ column: Int32, _ body: (inout ByteReader) throws(DamagedBytes) -> Result
  ) throws(LedgerFailure) -> Result {
    var reader = ByteReader(try blob(column))
    do throws(DamagedBytes) {
      let result = try body(&reader)
      try reader.end()
      return result
    } catch {
      throw damaged(column)
    }
  }
}
