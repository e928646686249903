import TarnCore

/// Reads time zone files (RFC 8536): versions 1 to 4, with the rules in the footer. Damaged bytes are an error.
package enum TZif {
  /// Why bytes are not accepted as the rules of a zone.
  package enum Fault: Error, Hashable, Sendable {
    case notTZif
    case unknownVersion(UInt8)
    /// The bytes end too early, or a count is impossible.
    case truncated
    /// Transitions are not ascending, or name a missing type.
    case disordered
    /// Clocks are further off UTC than RFC 8536 allows.
    case offset
    /// The file counts leap seconds (`right/`), which the system's clock does not.
    case leapSeconds
    case footer
  }

  /// - Parameter bytes: the bytes of a whole file.
  package static func parse(_ bytes: [UInt8]) throws(Fault) -> TimeZoneRules {
    let first = try Header(bytes, at: 0)
    guard first.version >= UInt8(ascii: "2") else {
      return try rules(bytes, first, timeSize: 4, footer: nil)
    }
    // The first block is for readers that know only version 1.
    let second = try Header(bytes, at: first.end(timeSize: 4))
    let end = second.end(timeSize: 8)
    guard end <= bytes.count else { throw .truncated }
    return try rules(bytes, second, timeSize: 8, footer: footer(bytes[end...]))
  }

  private struct Header {
    let version: UInt8
    let start: Int
    // The counts have 32 bits, so that sums of their products fit into 64.
    let utCount: Int
    let standardCount: Int
    let leapCount: Int
    let timeCount: Int
    let typeCount: Int
    let characterCount: Int

    init(_ bytes: [UInt8], at start: Int) throws(Fault) {
      guard bytes.count >= start + 44 else { throw start == 0 ? .notTZif : .truncated }
      guard bytes[start..<start + 4].elementsEqual("TZif".utf8) else { throw .notTZif }
      version = bytes[start + 4]
      guard version == 0 || (UInt8(ascii: "2")...UInt8(ascii: "4")).contains(version) else {
        throw .unknownVersion(version)
      }
      func count(_ index: Int) -> Int {
        Int(TZif.number(bytes, at: start + 20 + index * 4, size: 4) & 0xFFFF_FFFF)
      }
      self.start = start
      utCount = count(0)
      standardCount = count(1)
      leapCount = count(2)
      timeCount = count(3)
      typeCount = count(4)
      characterCount = count(5)
    }

    func end(timeSize: Int) -> Int {
      start + 44 + timeCount * (timeSize + 1) + typeCount * 6 + characterCount + leapCount * (timeSize + 4)
        + standardCount + utCount
    }
  }

  private static func rules(
    _ bytes: [UInt8], _ header: Header, timeSize: Int, footer: PosixZone?
  ) throws(Fault) -> TimeZoneRules {
    guard header.typeCount > 0, header.end(timeSize: timeSize) <= bytes.count else { throw .truncated }
    guard header.leapCount == 0 else { throw .leapSeconds }
    let times = header.start + 44
    let indexes = times + header.timeCount * timeSize
    let types = indexes + header.timeCount
    func offset(_ type: Int) throws(Fault) -> Int32 {
      guard type < header.typeCount else { throw .disordered }
      let offset = number(bytes, at: types + type * 6, size: 4)
      guard abs(offset) < Int64(TimeZoneRules.mostOffset) else { throw .offset }
      return Int32(offset)
    }
    var transitions: [Int64] = []
    var offsets = [try offset(0)]
    for index in 0..<header.timeCount {
      let time = number(bytes, at: times + index * timeSize, size: timeSize)
      if let last = transitions.last, last >= time { throw .disordered }
      transitions.append(time)
      offsets.append(try offset(Int(bytes[indexes + index])))
    }
    return TimeZoneRules(transitions: transitions, offsets: offsets, footer: footer)
  }

  /// Reads the line between two line ends. An empty line says nothing about later years.
  private static func footer(_ bytes: ArraySlice<UInt8>) throws(Fault) -> PosixZone? {
    let newline = UInt8(ascii: "\n")
    guard bytes.first == newline, let end = bytes.dropFirst().firstIndex(of: newline) else { throw .footer }
    let text = bytes[(bytes.startIndex + 1)..<end]
    if text.isEmpty { return nil }
    guard let zone = PosixZone(text) else { throw .footer }
    return zone
  }

  /// Reads a signed big-endian number.
  private static func number(_ bytes: [UInt8], at start: Int, size: Int) -> Int64 {
    let value = bytes[start..<start + size].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    return size == 4 ? Int64(Int32(truncatingIfNeeded: value)) : Int64(bitPattern: value)
  }
}

extension TZif.Fault {
  /// The message for people, such as `the file ends too early`.
  package var message: String {
    switch self {
    case .notTZif: "it is not a time zone file"
    case .unknownVersion(let version): "version \(version) of time zone files is not known"
    case .truncated: "the time zone file is cut off"
    case .disordered: "the transitions of the time zone file are not in order"
    case .offset: "an offset in the time zone file is more than 26 hours"
    case .leapSeconds: "time zones that count leap seconds are not supported"
    case .footer: "the rules at the end of the time zone file are not understood"
    }
  }
}
