import TarnCore

/// A record of tarn-watch, as its header file describes it.
enum WatchRecord: Equatable {
  /// The most bytes of a record without its NUL: a path of 4,095 bytes or a short text, and what precedes it.
  static let maximumLength = 8192

  case ready(wire: UInt64, directories: Int)
  case dirty(wire: UInt64, path: [UInt8])
  case tree(wire: UInt64, path: [UInt8])
  case blind(wire: UInt64, WatchBlindness)
  /// A sign of life, about no folder.
  case alive

  /// - Parameter bytes: one record without its NUL.
  /// - Returns: `nil` for bytes that are no record.
  init?(_ bytes: some Collection<UInt8>) {
    let parts = bytes.split(separator: UInt8(ascii: " "), maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, let wire = Self.number(parts[1], as: UInt64.self) else { return nil }
    let rest = Array(parts[2])
    switch String(decoding: parts[0], as: UTF8.self) {
    case "ready":
      guard let count = Self.number(rest, as: Int.self) else { return nil }
      self = .ready(wire: wire, directories: count)
    case "dirty":
      guard !rest.isEmpty else { return nil }
      self = .dirty(wire: wire, path: rest)
    case "tree": self = .tree(wire: wire, path: rest)
    case "blind": self = .blind(wire: wire, Self.blindness(rest))
    case "alive": self = .alive
    default: return nil
    }
  }

  var wire: UInt64 {
    switch self {
    case .ready(let wire, _), .dirty(let wire, _), .tree(let wire, _), .blind(let wire, _): wire
    // No folder has this number.
    case .alive: 0
    }
  }

  /// True for a record about whether the folder is watched, false for one about changes in it.
  var isState: Bool {
    switch self {
    case .ready, .blind: true
    case .dirty, .tree, .alive: false
    }
  }

  private static func blindness(_ bytes: [UInt8]) -> WatchBlindness {
    let code = bytes.prefix { $0 != UInt8(ascii: " ") }
    let text = Printable.escape(bytes.dropFirst(code.count + 1))
    // A code of a newer program counts as an error; its text explains it.
    let known = WatchBlindness.Code(rawValue: String(decoding: code, as: UTF8.self)) ?? .error
    return WatchBlindness(known, text)
  }

  private static func number<Number: FixedWidthInteger>(
    _ bytes: some Collection<UInt8>, as type: Number.Type
  ) -> Number? {
    guard let first = bytes.first, first >= UInt8(ascii: "0"), first <= UInt8(ascii: "9") else { return nil }
    return Number(String(decoding: bytes, as: UTF8.self))
  }
}

/// A command to tarn-watch.
enum WatchCommand: Equatable {
  case watch(wire: UInt64, path: [UInt8])
  case forget(wire: UInt64)

  /// The bytes of the command with its NUL.
  var bytes: [UInt8] {
    switch self {
    case .watch(let wire, let path): Array("watch \(wire) ".utf8) + path + [0]
    case .forget(let wire): Array("forget \(wire)".utf8) + [0]
    }
  }
}

/// Splits the bytes from a pipe into records.
struct WatchRecordReader {
  private var rest: [UInt8] = []

  /// - Returns: the complete records so far; `nil` when something came that is no record.
  mutating func read(_ bytes: UnsafeRawBufferPointer) -> [WatchRecord]? {
    var records: [WatchRecord] = []
    var start = bytes.startIndex
    while let end = bytes[start...].firstIndex(of: 0) {
      rest += bytes[start..<end]
      guard let record = WatchRecord(rest) else { return nil }
      records.append(record)
      rest.removeAll(keepingCapacity: true)
      start = end + 1
    }
    rest += bytes[start...]
    return rest.count > WatchRecord.maximumLength ? nil : records
  }
}
