import Glibc
import TarnCore
import Testing

@testable import TarnFeeds

/// The captured indexes, read by Tarn and by Tests/Tools/index_expect.py, which shares nothing with it.
@Suite(.enabled(if: Corpus.directory != nil, "no captured feeds: set TARN_FEEDS"), .serialized)
struct IndexCorpusTests {
  /// What is not read, and why.
  static let refused: [String: (code: String, reason: String)] = [:]

  struct Sample {
    var file: String
    var url: String
  }

  /// Where the script looks for an exact size, by what Tarn takes the page for.
  static let sizes = [
    "nginx index": "nginx", "Caddy index": "attribute", "IIS index": "iis",
  ]

  @Test(arguments: ["autoindex", "autoindex-samples"])
  func readsWhatTheScriptReads(folder: String) throws {
    let urls = Self.expected.mapValues(\.url)
    var samples: [(Sample, outcome: Outcome)] = []
    var counts = (files: 0, read: 0, entries: 0, differences: 0)
    for name in Corpus.names(in: folder) where name != "expected.tsv" {
      let sample = Sample(file: folder + "/" + name, url: urls[name] ?? "https://example.org/")
      let outcome = parse(Corpus.bytes(sample.file), url: sample.url)
      counts.files += 1
      let code = outcome.failure?.code
      print(code ?? "", outcome.end?.format ?? "", outcome.items.count, outcome.isComplete, name)
      #expect(code == Self.refused[name]?.code, "\(name): \(outcome.failure.map { "\($0)" } ?? "read")")
      if code == nil { samples.append((sample, outcome)) }
    }
    let expectations = try Self.expectations(
      samples.map { ($0.0, kind: Self.sizes[$0.outcome.end?.format ?? ""] ?? "none") })
    for (sample, outcome) in samples {
      let theirs = try #require(expectations[sample.file], "\(sample.file)")
      let ours = Self.lines(outcome)
      let differing = Set(ours).symmetricDifference(theirs)
      counts.read += 1
      counts.entries += ours.count
      counts.differences += differing.count
      print(differing.prefix(6), sample.file)
    }
    print(
      "\(folder): \(counts.files) files, \(counts.read) read, \(counts.entries) entries, "
        + "\(counts.differences) differences")
  }

  struct Expected {
    var url: String
    var directories: Int
    var files: Int
    var firstDirectory: String
    var firstFile: String
    var size: String
  }

  /// What another program asserts of its samples.
  static let expected: [String: Expected] = {
    let text = String(decoding: Corpus.bytes("autoindex-samples/expected.tsv"), as: UTF8.self)
    var result: [String: Expected] = [:]
    for line in text.split(separator: "\n").dropFirst() {
      let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      guard fields.count == 7 else { continue }
      result[fields[0]] = Expected(
        url: fields[1], directories: Int(fields[2]) ?? -1, files: Int(fields[3]) ?? -1,
        firstDirectory: fields[4], firstFile: fields[5], size: fields[6])
    }
    return result
  }()

  /// A run of python3 over a list of samples: the names of each, or why it is none.
  static func expectations(_ samples: [(Sample, kind: String)]) throws -> [String: [String]] {
    let root = "/" + #filePath.split(separator: "/").dropLast(2).joined(separator: "/")
    var template = Array("/tmp/tarn-index-XXXXXX".utf8CString)
    let descriptor = mkstemp(&template)
    try #require(descriptor >= 0)
    let list = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { unlink(list) }
    let text = samples.map { "\(Corpus.directory ?? "")/\($0.0.file)\t\($0.0.url)\t\($0.kind)\n" }.joined()
    #expect(write(descriptor, text, text.utf8.count) == text.utf8.count)
    close(descriptor)
    let stream = try #require(popen("python3 -B '\(root)/Tools/index_expect.py' < \(list)", "r"))
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 65_536)
    while case let count = fread(&block, 1, block.count, stream), count > 0 { bytes += block[..<count] }
    #expect(pclose(stream) == 0)
    var result: [String: [String]] = [:]
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
      let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      result[String(fields[0].dropFirst((Corpus.directory ?? "").utf8.count + 1))] = Array(fields.dropFirst())
    }
    return result
  }

  /// The names of an outcome as the script prints them.
  static func lines(_ outcome: Outcome) -> [String] {
    func hex(_ bytes: [UInt8]) -> String {
      bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
    return outcome.items.compactMap { item in
      switch item {
      case .entry(let entry): hex(entry.path.bytes) + "=" + (entry.size.map(String.init) ?? "")
      case .directory(_, let path): hex(path.bytes) + "/"
      case .refused(let refusal): "refused " + hex(refusal.name)
      case .deleted: nil
      }
    }.sorted()
  }
}
