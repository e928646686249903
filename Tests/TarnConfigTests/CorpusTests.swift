import Foundation
import TestSupport
import Testing

@testable import TarnConfig

/// The seeds of the fuzzer, and every input that it once broke the loader with: Tests/Fixtures/corpus/settings.
@Suite struct CorpusTests {
  private static let seeds: [(name: String, bytes: [UInt8])] = {
    let directory = SchemaTests.root.appendingPathComponent("Tests/Fixtures/corpus/settings")
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []
    return names.sorted().compactMap { name in
      (try? Data(contentsOf: directory.appendingPathComponent(name))).map { (name, Array($0)) }
    }
  }()

  @Test func everySeedHasItsPlaces() {
    #expect(Self.seeds.count >= 10)
    for seed in Self.seeds { #expect(SettingsOutcome(seed.bytes).faults == [], "\(seed.name)") }
    #expect(Self.seeds.contains { SettingsOutcome($0.bytes).loaded.settings?.mirrors.count == 2 })
  }

  /// Cut anywhere, with bytes changed: nothing ends the process, and every problem has its place.
  @Test func spoiledSeedsAreOnlyProblems() {
    var random = Seeded(7)
    for seed in Self.seeds where !seed.bytes.isEmpty && seed.bytes.count < 8000 {
      for _ in 0..<40 {
        var bytes = Array(seed.bytes.prefix(random.below(seed.bytes.count + 1)))
        for _ in 0..<random.below(4) where !bytes.isEmpty {
          let interesting: [UInt8] = Array("\"'[]{}=.,#\n\r\t\\u0-".utf8) + [0, 0x7F, 0x80, 0xE2, 0xFF]
          bytes[random.below(bytes.count)] = interesting[random.below(interesting.count)]
        }
        let faults = SettingsOutcome(bytes).faults
        guard faults.isEmpty else {
          Issue.record("\(seed.name): \(faults)\n\(String(decoding: bytes, as: UTF8.self))")
          return
        }
      }
    }
  }
}
