import TarnCore

/// An entry without its path as bytes, for the stage and the catalog, which names the version of this form.
enum EntryCodec {
  /// Which optional parts follow, in the order of their bits.
  private struct Parts: OptionSet {
    let rawValue: UInt8
    static let size = Parts(rawValue: 1)
    static let modified = Parts(rawValue: 2)
    static let pieces = Parts(rawValue: 4)
    /// Not a part: the value of `modifiedIsExact`.
    static let exact = Parts(rawValue: 8)
    /// Not a part either: the value of `mayBeDirectory`.
    static let mayBeDirectory = Parts(rawValue: 16)
    static let all: Parts = [.size, .modified, .pieces, .exact, .mayBeDirectory]
  }

  static func encode(_ entry: Entry, into writer: inout ByteWriter) {
    var parts: Parts = []
    if entry.size != nil { parts.insert(.size) }
    if entry.modified != nil { parts.insert(.modified) }
    if entry.pieces != nil { parts.insert(.pieces) }
    if entry.modifiedIsExact { parts.insert(.exact) }
    if entry.mayBeDirectory { parts.insert(.mayBeDirectory) }
    writer.put(byte: parts.rawValue)
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
  }

  static func decode(path: RelativePath, from reader: inout ByteReader) throws(DamagedBytes) -> Entry {
    let parts = Parts(rawValue: try reader.byte())
    guard parts.isSubset(of: .all) else { throw DamagedBytes() }
    var entry = Entry(
      path: path, modifiedIsExact: parts.contains(.exact), mayBeDirectory: parts.contains(.mayBeDirectory))
    if parts.contains(.size) { entry.size = try reader.unsigned() }
    if parts.contains(.modified) { entry.modified = Timestamp(nanoseconds: try reader.signed()) }
    if parts.contains(.pieces) {
      let length = try reader.unsigned()
      entry.pieces = Pieces(length: length, digests: try reader.digests())
    }
    entry.digests = try reader.digests()
    entry.sources = try reader.list { reader throws(DamagedBytes) in
      let url = try reader.text()
      return Source(url: url, priority: Int(try reader.signed()))
    }
    entry.listing = try reader.string()
    return entry
  }
}

extension ByteWriter {
  /// The algorithm tells the length.
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
  /// A BLOB column through `body`, which has to read all of it.
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
