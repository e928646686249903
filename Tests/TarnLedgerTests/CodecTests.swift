import TarnCore
import TestSupport
import Testing

@testable import TarnLedger

@Suite struct CodecTests {
  private func entry(_ random: inout Seeded) -> Entry {
    func digests(_ limit: Int) -> [Digest] {
      (0..<Int.random(in: 0...limit, using: &random)).compactMap { _ in
        let algorithm = DigestAlgorithm.allCases.randomElement(using: &random) ?? .md5
        return Digest(
          algorithm, bytes: (0..<algorithm.length).map { _ in .random(in: 0...255, using: &random) })
      }
    }
    var entry = Entry(
      path: path("p"), modifiedIsExact: .random(using: &random), isList: .random(using: &random),
      voucher: Bool.random(using: &random) ? path("SHA256SUMS") : nil)
    if Bool.random(using: &random) { entry.size = random.next() >> UInt64.random(in: 0...63, using: &random) }
    if Bool.random(using: &random) {
      entry.modified = Timestamp(
        nanoseconds: Int64(bitPattern: random.next()) >> Int64.random(in: 0...63, using: &random))
    }
    if Bool.random(using: &random) { entry.pieces = Pieces(length: random.next(), digests: digests(5)) }
    entry.digests = digests(4)
    entry.sources = (0..<Int.random(in: 0...4, using: &random)).map { _ in
      let priority = Int(Int64(bitPattern: random.next()) >> Int64.random(in: 0...63, using: &random))
      return Source(url: "https://example.org/\(random.next())", priority: priority)
    }
    entry.listing = random.bytes(upTo: 300)
    entry.mayBeDirectory = .random(using: &random)
    entry.mayBeCut = .random(using: &random)
    return entry
  }

  private func encoded(_ entry: Entry) -> [UInt8] {
    var writer = ByteWriter()
    EntryCodec.encode(entry, into: &writer)
    return writer.bytes
  }

  private func decoded(_ bytes: [UInt8]) throws(DamagedBytes) -> Entry {
    var reader = ByteReader(bytes)
    let entry = try EntryCodec.decode(path: path("p"), from: &reader)
    try reader.end()
    return entry
  }

  @Test func entriesComeBackAsTheyWere() throws {
    var random = Seeded(11)
    for _ in 0..<500 {
      let entry = entry(&random)
      #expect(try decoded(encoded(entry)) == entry)
    }
  }

  @Test func numbersComeBackAtTheirLimits() throws {
    let unsigned: [UInt64] = [0, 127, 128, 1 << 63 - 1, 1 << 63, .max]
    let signed: [Int64] = [0, -1, 1, 63, 64, -64, -65, .min, .max]
    var writer = ByteWriter()
    for number in unsigned { writer.put(number) }
    for number in signed { writer.put(number) }
    var reader = ByteReader(writer.bytes)
    for number in unsigned { #expect(try reader.unsigned() == number) }
    for number in signed { #expect(try reader.signed() == number) }
    try reader.end()
  }

  @Test func everyCutIsRefused() throws {
    var random = Seeded(12)
    for _ in 0..<50 {
      let bytes = encoded(entry(&random))
      for count in bytes.indices {
        #expect(throws: DamagedBytes.self) { try decoded(Array(bytes[..<count])) }
      }
      #expect(throws: DamagedBytes.self) { try decoded(bytes + [0]) }
    }
  }

  @Test func damageNeverTraps() {
    var random = Seeded(13)
    for _ in 0..<3_000 {
      var bytes = encoded(entry(&random))
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
      }
      _ = try? decoded(bytes)
    }
  }

  @Test(
    arguments: [
      [0x10],  // a part that does not exist
      [0x01, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02],  // a number of 65 bits
      [0x01, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00],  // a number without an end
      [0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],  // 2^64 - 1 digests
      [0x00, 0x01, 0x07, 0x00],  // an unknown algorithm
      [0x00, 0x01, 0x01, 0x01, 0x00],  // a digest of the wrong length
      [0x00, 0x00, 0x01, 0x01, 0xFF, 0x00, 0x00],  // a URL that is not UTF-8
    ] as [[UInt8]]) func refuses(_ bytes: [UInt8])
  {
    #expect(throws: DamagedBytes.self) { try decoded(bytes) }
  }

  @Test func damagedActionsNeverTrap() {
    var random = Seeded(14)
    for _ in 0..<3_000 {
      let whole = Action(
        .replace, path: path("p"), entry: entry(&random), present: row(path("p")).identity,
        row: row(path("p")))
      var writer = ByteWriter()
      ActionCodec.encode(whole, into: &writer)
      var bytes = writer.bytes
      bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
      var reader = ByteReader(bytes)
      _ = try? ActionCodec.decode(phase: .payload, from: &reader)
    }
  }
}
