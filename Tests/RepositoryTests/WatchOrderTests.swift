import Foundation
import Testing

/// The parts of tarn-watch stand in an order: watch.h names them, and each calls only what is above it.
@Suite struct WatchOrderTests {
  private static let directory = Repository.root.appendingPathComponent("Sources/tarn-watch")

  /// By part: what it declares.
  private func parts(_ header: String) -> [(file: String, names: [String])] {
    var parts: [(file: String, names: [String])] = []
    for line in header.split(separator: "\n") {
      if let part = line.firstMatch(of: /^\/\/ (\w+\.c):/) {
        parts.append((String(part.1), []))
      } else if !parts.isEmpty, let name = line.firstMatch(of: /^[a-z].*?\*?(\w+)\(/) {
        parts[parts.count - 1].names.append(String(name.1))
      }
    }
    return parts
  }

  private func callsBelow(_ parts: [(file: String, names: [String])], _ text: (String) throws -> String)
    rethrows
    -> [String]
  {
    var found: [String] = []
    for (index, part) in parts.enumerated() {
      let code = try text(part.file)
      for below in parts[(index + 1)...] {
        found += below.names.filter { code.contains("\($0)(") }.map {
          "\(part.file) calls \($0) of \(below.file)"
        }
      }
    }
    return found
  }

  @Test func eachPartCallsOnlyWhatIsAboveIt() throws {
    let header = try String(contentsOf: Self.directory.appendingPathComponent("watch.h"), encoding: .utf8)
    let parts = parts(header)
    #expect(parts.count >= 10 && parts.allSatisfy { !$0.names.isEmpty }, "\(parts)")
    let found = try callsBelow(parts) { file in
      try String(contentsOf: Self.directory.appendingPathComponent(file), encoding: .utf8)
    }
    #expect(found.isEmpty, "\(found)")
  }

  @Test func aCallOfWhatIsBelowIsSeen() {
    let found = callsBelow([("a.c", ["a"]), ("b.c", ["b"])]) { $0 == "a.c" ? "void a(void) { b(); }" : "" }
    #expect(found == ["a.c calls b of b.c"])
  }
}
