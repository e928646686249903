import Foundation
import TarnCore
import TarnFolder
import Testing

/// A pass that finds a feed unsorted compares twice, so it scans twice.
@Suite struct ScanTwiceTests {
  @Test func everyScanSeesTheWholeFolder() throws {
    let place = FileManager.default.temporaryDirectory.appendingPathComponent(
      "tarn-scan-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: place) }
    let home = try FolderHome.create(folder: place.path, state: nil)
    try Data("a".utf8).write(to: place.appendingPathComponent("a"))
    try Data("b".utf8).write(to: place.appendingPathComponent("b"))
    let folder = try home.open()
    for _ in 0..<3 {
      let cursor = folder.scan()
      var names: [String] = []
      while let present = try cursor.next() { names.append(present.path.printable) }
      #expect(names == ["a", "b"])
    }
    #expect(try folder.partials().isEmpty)
    _ = try folder.makePartial()
    #expect(try folder.partials().count == 1)
    #expect(try folder.partials().count == 1)
  }
}
