import Foundation
import TarnCore
import TestSupport
import Testing

@testable import TarnLedger

/// One suite over both catalogs.
@Suite struct CatalogTests {
  enum Adapter: CaseIterable { case memory, disk }

  /// A catalog, and the directory of the one on disk.
  private func make(_ adapter: Adapter) throws -> (any CatalogPort, String) {
    let directory = NSTemporaryDirectory() + "tarn-catalog-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    switch adapter {
    case .memory: return (MemoryCatalog(), directory)
    case .disk: return (SQLiteCatalog(directory: directory), directory)
    }
  }

  private func path(_ text: String) -> RelativePath { RelativePath(trusted: Array(text.utf8)) }

  private func entry(_ name: String, size: UInt64 = 1) -> Entry {
    Entry(
      path: path(name), size: size, modified: Timestamp(seconds: 7),
      sources: [Source(url: "http://h/\(name)"), Source(url: "http://i/\(name)", priority: 2)],
      listing: Array("as listed".utf8))
  }

  static let names = ["a", "a-b", "a/b", "a/b/c", "a/d", "a0", "b", "z/y/x"]

  private func commit(_ catalog: any CatalogPort, isWindow: Bool = false) throws -> String {
    let making = try catalog.make()
    for name in Self.names.reversed() { try making.add(entry(name)) }
    try making.add(entry("b", size: 2))
    return try making.commit(isWindow: isWindow)
  }

  private func names(_ cursor: any EntryCursor) throws -> [String] {
    var names: [String] = []
    while let entry = try cursor.next() { names.append(entry.path.printable) }
    return names
  }

  @Test(arguments: Adapter.allCases) func itGivesWhatWasPut(_ adapter: Adapter) throws {
    let (catalog, directory) = try make(adapter)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    #expect(try catalog.open(id: "") == nil)
    let id = try commit(catalog, isWindow: true)
    let reading = try #require(try catalog.open(id: id))
    #expect(reading.isWindow)
    #expect(try reading.entry(path("a/b")) == entry("a/b"))
    #expect(try reading.entry(path("b"))?.size == 2)
    #expect(try reading.entry(path("a/")) == nil)
    #expect(try names(reading.entries(in: .everything)) == Self.names)
  }

  @Test(arguments: Adapter.allCases) func itGivesTheEntriesOfARegion(_ adapter: Adapter) throws {
    let (catalog, directory) = try make(adapter)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let reading = try #require(try catalog.open(id: commit(catalog)))
    for top in [nil, path("a"), path("a/b"), path("z"), path("none")] {
      for extent in [Region.Extent.itself, .children, .tree] {
        let region = Region(top, extent)
        guard top != nil || extent != .itself else { continue }
        let expected = Self.names.filter { region.contains(path($0)) }
        #expect(try names(reading.entries(in: region)) == expected, "\(region)")
      }
    }
  }

  @Test(arguments: Adapter.allCases) func onlyTheNewestHolds(_ adapter: Adapter) throws {
    let (catalog, directory) = try make(adapter)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let first = try commit(catalog)
    do {
      let making = try catalog.make()
      try making.add(entry("dropped"))
    }
    #expect(try catalog.open(id: first)?.entry(path("a")) != nil)
    let second = try commit(catalog)
    #expect(first != second)
    #expect(try catalog.open(id: first) == nil)
    #expect(try catalog.open(id: second) != nil)
    let files = try FileManager.default.contentsOfDirectory(atPath: directory)
    #expect(files == (adapter == .disk ? ["catalog.sqlite"] : []))
  }

  @Test func aDamagedOneIsNone() throws {
    let (catalog, directory) = try make(.disk)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let id = try commit(catalog)
    let file = directory + "/catalog.sqlite"
    try Data("no database at all".utf8).write(to: URL(fileURLWithPath: file))
    #expect(try catalog.open(id: id) == nil)
    try Data().write(to: URL(fileURLWithPath: file))
    #expect(try catalog.open(id: id) == nil)
    let again = try commit(catalog)
    #expect(try catalog.open(id: again) != nil)
  }
}
