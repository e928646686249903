import TarnCore

/// Encodes an action without its phase as bytes, for the stage. The format is private to one run.
enum ActionCodec {
  private struct Parts: OptionSet {
    let rawValue: UInt8
    static let entry = Parts(rawValue: 1)
    static let present = Parts(rawValue: 2)
    static let row = Parts(rawValue: 4)
    static let blocker = Parts(rawValue: 8)
    /// Set when the entry's path differs from the action's. This is not a part.
    static let otherPath = Parts(rawValue: 16)
    /// The value of `restoresMode`. This is not a part.
    static let restoresMode = Parts(rawValue: 32)
    static let all: Parts = [.entry, .present, .row, .blocker, .otherPath, .restoresMode]
  }

  private static let kinds = Action.Kind.allCases

  static func encode(_ action: Action, into writer: inout ByteWriter) {
    var parts: Parts = []
    let hasOtherPath = action.entry.map { $0.path != action.path } ?? false
    if action.entry != nil { parts.insert(.entry) }
    if action.present != nil { parts.insert(.present) }
    if action.row != nil { parts.insert(.row) }
    if action.blocker != nil { parts.insert(.blocker) }
    if hasOtherPath { parts.insert(.otherPath) }
    if action.restoresMode { parts.insert(.restoresMode) }
    writer.put(action.path.bytes)
    writer.put(byte: parts.rawValue)
    writer.put(byte: kinds.firstIndex(of: action.kind).map(UInt8.init) ?? .max)
    if let entry = action.entry {
      if hasOtherPath { writer.put(entry.path.bytes) }
      EntryCodec.encode(entry, into: &writer)
    }
    if let present = action.present { writer.put(present) }
    if let row = action.row { row.write(to: &writer) }
    if let blocker = action.blocker { writer.put(blocker.bytes) }
  }

  static func decode(phase: Action.Phase, from reader: inout ByteReader) throws(DamagedBytes) -> Action {
    let path = RelativePath(trusted: try reader.string())
    let parts = Parts(rawValue: try reader.byte())
    let number = Int(try reader.byte())
    guard parts.isSubset(of: .all), kinds.indices.contains(number) else { throw DamagedBytes() }
    var action = Action(kinds[number], phase: phase, path: path)
    action.restoresMode = parts.contains(.restoresMode)
    if parts.contains(.entry) {
      let path = parts.contains(.otherPath) ? RelativePath(trusted: try reader.string()) : path
      action.entry = try EntryCodec.decode(path: path, from: &reader)
    }
    if parts.contains(.present) { action.present = try reader.identity() }
    if parts.contains(.row) { action.row = try Row.read(from: &reader) }
    if parts.contains(.blocker) { action.blocker = RelativePath(trusted: try reader.string()) }
    return action
  }
}
