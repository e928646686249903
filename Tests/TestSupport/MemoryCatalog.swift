package import TarnCore
import TarnRuntime

/// The catalog in memory.
package final class MemoryCatalog: CatalogPort {
  fileprivate struct Contents {
    var id = ""
    var isWindow = false
    var entries: [RelativePath: Entry] = [:]
  }

  fileprivate struct State {
    var last = 0
    /// Begun so far, and how many of these have lost their file, which has one name: who gives up takes it along.
    var (begun, lost) = (0, 0)
    var contents = Contents()
  }

  private let state = Locked(State())

  package init() {}

  /// How many were committed.
  package var commits: Int { state.withLock { $0.last } }

  package func make() throws(LedgerFailure) -> any CatalogMaking { Making(self) }

  package func open(id: String) throws(LedgerFailure) -> (any CatalogReading)? {
    let contents = state.withLock { $0.contents }
    return contents.id == id && !id.isEmpty ? Reading(contents) : nil
  }

  fileprivate func begin() -> Int {
    state.withLock { state in
      state.begun += 1
      return state.begun
    }
  }

  fileprivate func giveUp() { state.withLock { $0.lost = $0.begun } }

  fileprivate func take(_ contents: Contents, _ number: Int) throws(LedgerFailure) -> String {
    guard number > state.withLock({ $0.lost }) else { throw LedgerFailure(.inputOutput, "its file is gone") }
    return state.withLock { state in
      state.last += 1
      state.contents = contents
      state.contents.id = "catalog-\(state.last)"
      return state.contents.id
    }
  }
}

extension MemoryCatalog {
  private final class Making: CatalogMaking {
    private let catalog: MemoryCatalog
    private let number: Int
    private var contents: Contents? = Contents()

    init(_ catalog: MemoryCatalog) {
      self.catalog = catalog
      number = catalog.begin()
    }

    deinit { if contents != nil { catalog.giveUp() } }

    func add(_ entry: Entry) throws(LedgerFailure) { contents?.entries[entry.path] = entry }

    func commit(isWindow: Bool) throws(LedgerFailure) -> String {
      guard var contents = contents.take() else { throw LedgerFailure(.other, "committed already") }
      contents.isWindow = isWindow
      return try catalog.take(contents, number)
    }
  }

  private final class Reading: CatalogReading {
    private let contents: Contents

    init(_ contents: Contents) { self.contents = contents }

    var isWindow: Bool { contents.isWindow }

    func entry(_ path: RelativePath) throws(LedgerFailure) -> Entry? { contents.entries[path] }

    func entries(in region: Region) throws(LedgerFailure) -> any EntryCursor {
      Cursor(contents.entries.values.filter { region.contains($0.path) }.sorted { $0.path < $1.path })
    }
  }

  private final class Cursor: EntryCursor {
    private var rest: ArraySlice<Entry>

    init(_ entries: [Entry]) { rest = entries[...] }

    func next() throws(LedgerFailure) -> Entry? { rest.popFirst() }
  }
}
