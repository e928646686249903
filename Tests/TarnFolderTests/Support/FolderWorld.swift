import TarnCore
import TarnFolder
import TestSupport
import Testing

/// A folder behind the port, and what other programs do to it.
protocol FolderWorld: AnyObject {
  var port: any FolderPort { get }
  var hashing: any Hashing { get }
  func write(_ path: RelativePath, _ bytes: [UInt8])
  func edit(_ path: RelativePath, _ bytes: [UInt8])
  func makeDirectory(_ path: RelativePath)
  func makeLink(_ path: RelativePath)
  func makeSpecial(_ path: RelativePath)
  /// Of a regular file.
  func changeMode(_ path: RelativePath)
  func delete(_ path: RelativePath)
  func contents(_ path: RelativePath) -> [UInt8]?
  func trashContents(_ name: String) -> [UInt8]?
}

private final class MemoryWorld: FolderWorld {
  let memory = MemoryFolder()
  var port: any FolderPort { memory }
  var hashing: any Hashing { memory.hashing }
  func write(_ path: RelativePath, _ bytes: [UInt8]) { memory.write(path, bytes) }
  func edit(_ path: RelativePath, _ bytes: [UInt8]) { memory.edit(path, bytes) }
  func makeDirectory(_ path: RelativePath) { memory.makeDirectory(path) }
  func makeLink(_ path: RelativePath) { memory.makeLink(path) }
  func makeSpecial(_ path: RelativePath) { memory.makeSpecial(path) }
  func changeMode(_ path: RelativePath) { memory.open(path).map(memory.changeMode) }
  func delete(_ path: RelativePath) { memory.delete(path) }
  func contents(_ path: RelativePath) -> [UInt8]? { memory.contents(path) }
  func trashContents(_ name: String) -> [UInt8]? { memory.trashContents(name) }
}

/// The adapters that the conformance suite runs over.
enum Adapter: String, CaseIterable {
  case memory
  case disk
  case diskWithState

  /// Bytes of a file that is read in more than one part.
  var large: Int { self == .memory ? 40_000 : 1_200_000 }

  func make() throws -> any FolderWorld {
    switch self {
    case .memory: MemoryWorld()
    case .disk: try DiskWorld()
    case .diskWithState: try DiskWorld(state: true)
    }
  }
}

/// A path as it stands, whatever the rule of names says.
func at(_ text: String) -> RelativePath { RelativePath(trusted: Array(text.utf8)) }

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

/// Reproducible bytes that do not repeat.
func noise(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
  var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
  var words: [UInt64] = []
  for _ in 0..<(count / 8 + 1) {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    words.append(state)
  }
  return words.withUnsafeBytes { Array($0.prefix(count)) }
}

extension PartialFile {
  func append(_ bytes: [UInt8]) throws(FolderFailure) {
    try bytes.withUnsafeBufferPointer { bytes throws(FolderFailure) in
      try append(UnsafeRawBufferPointer(bytes))
    }
  }
}

extension FolderWorld {
  /// A file in `partial/`, whole and sealed.
  func sealed(_ bytes: [UInt8], modified: Timestamp? = nil) throws -> any PartialFile {
    let partial = try port.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck(size: UInt64(bytes.count)))
    try partial.append(bytes)
    _ = try partial.seal(modified: modified)
    return partial
  }

  func install(
    _ bytes: [UInt8], _ path: RelativePath, _ expectation: Installation.Expectation = .absent,
    trashName: String = "0123"
  ) throws -> PublishOutcome {
    let partial = try sealed(bytes)
    #expect(port.makeDurable([partial]) == [nil])
    let outcomes = port.install([
      Installation(path: path, partial: partial, expectation: expectation, trashName: trashName)
    ])
    // As the engine does: what is not installed is thrown away.
    if case .installed = outcomes.first { partial.close() } else { partial.discard() }
    return try #require(outcomes.first)
  }

  func identity(_ path: RelativePath) throws -> FileIdentity {
    try #require(try port.look(path)).identity
  }

  func names(_ list: [(name: String, size: UInt64)]) -> [String] { list.map(\.name).sorted() }

  /// Everything that a scan says, failures apart.
  func scanned() -> (objects: [Present], failures: [FolderFailure]) {
    let cursor = port.scan()
    var objects: [Present] = []
    var failures: [FolderFailure] = []
    while true {
      do throws(FolderFailure) {
        guard let present = try cursor.next() else { return (objects, failures) }
        objects.append(present)
      } catch {
        failures.append(error)
      }
      if failures.count > 100 { return (objects, failures) }
    }
  }
}

extension PublishOutcome {
  var identity: FileIdentity? {
    switch self {
    case .installed(let identity, _), .removed(let identity, _): identity
    case .stale, .failed: nil
    }
  }

  var displaced: FileIdentity? {
    if case .installed(_, let displaced) = self { displaced } else { nil }
  }

  var leftover: FolderFailure? {
    if case .removed(_, let leftover) = self { leftover } else { nil }
  }

  var isStale: Bool {
    if case .stale = self { true } else { false }
  }

  var failure: FolderFailure.Code? {
    if case .failed(let failure) = self { failure.code } else { nil }
  }
}

/// The code that a body fails with; nil when it does not.
func code(_ body: () throws -> Void) -> FolderFailure.Code? {
  do {
    try body()
    return nil
  } catch {
    return (error as? FolderFailure)?.code
  }
}
