import Glibc
import TarnCore
import TestSupport
import Testing

@testable import TarnFeeds

/// The captured indexes, read by Tarn and by Tests/Tools/index_expect.py, which shares nothing with it.
@Suite(.enabled(if: Corpus.directory != nil, "no captured feeds: set TARN_FEEDS"), .serialized)
struct IndexCorpusTests {
  /// What is not read: the code, why, and the files (of the samples the part that tells them apart).
  static let refusals: [(code: String, reason: String, files: [String])] = [
    (
      "feed-is-a-web-page", "no listing: another page stands in its place",
      [
        "apache-2.4-indexhtml-instead-of-listing.html", "nginx-1.22-html-redirect-noslash.html",
        "twisted-web-error-latin1.html",
      ]
    ),
    ("feed-empty", "no document at all", ["rclone__empty.html"]),
    ("feed-not-recognised", "`[]` at the root of a mirror may be anything", ["caddy-2.6.2-empty.json"]),
    (
      "feed-not-recognised", "nginx with a callback: nobody meets it who did not ask for it",
      ["nginx-1.22-jsonp.js"]
    ),
    (
      "feed-is-a-web-page", "mini_httpd shows directories as files of 4096 bytes",
      ["mini_httpd.html", "mini_httpd-sub.html"]
    ),
    (
      "feed-is-a-web-page",
      "twisted: fails for a whole directory over one name; its marks are those of any table",
      ["twisted-web-sub.html", "50a", "44a", "85a"]
    ),
    (
      "feed-is-a-web-page", "WebDAV servers are read by PROPFIND, not by the page they show to browsers",
      ["wsgidav-4.4-dirbrowser.html"]
    ),
    (
      "feed-is-a-web-page", "a package index: its links lead to other directories",
      ["pypi-simple-pep503-shape.html"]
    ),
    (
      "feed-is-a-web-page", "other servers' and hosters' own pages, each with marks of its own",
      [
        "rclone__memstore.html", "43a", "46a", "47a", "53a", "88a", "93a", "105b", "110a", "133a",
      ]
    ),
    (
      "feed-is-a-web-page", "web programs that list files (h5ai, Directory Lister, PyOne, dufs and others)",
      ["22a", "22b", "24a", "70a", "92a", "102a", "117a", "125a", "136b"]
    ),
    ("feed-not-recognised", "a fragment without a frame", ["67a"]),
  ]

  static let refused: [String: String] = {
    let pairs = refusals.flatMap { group in
      group.files.map { name in
        (name.contains(".") ? name : "OpenDirectoryDownloader__DirectoryListing\(name).html.dat", group.code)
      }
    }
    return Dictionary(uniqueKeysWithValues: pairs)
  }()

  struct Sample {
    var file: String
    var url: String
  }

  /// Where the script looks for an exact size, by what Tarn takes the page for.
  static let sizes = [
    "nginx index": "nginx", "Caddy index": "attribute", "IIS index": "iis",
    "Python http.server index": "python", "nginx fancyindex": "fancy", "Maven Central index": "maven",
    "webfs index": "webfs",
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
      #expect(code == Self.refused[name], "\(name): \(outcome.failure.map { "\($0)" } ?? "read")")
      // Only h2o leaves open what is a directory.
      #expect(outcome.isComplete == (code == nil && name != "h2o.html"), "\(name)")
      if code == nil { samples.append((sample, outcome)) }
    }
    let expectations = try Self.expectations(
      samples.map { ($0.0, kind: Self.sizes[$0.outcome.end?.format ?? ""] ?? "none") })
    for (sample, outcome) in samples {
      let names = try #require(expectations[sample.file], "\(sample.file)")
      // What Tarn refuses by its name is no file, nor missing.
      let refused = Set(outcome.refused.map { Self.hex($0.name) })
      let theirs = Set(names.filter { !refused.contains(String($0.prefix { $0 != "=" && $0 != "/" })) })
      let differing = theirs.symmetricDifference(Self.lines(outcome)).sorted()
      counts.read += 1
      counts.entries += outcome.items.count
      counts.differences += differing.count
      #expect(differing.isEmpty, "\(sample.file): \(differing.prefix(4))")
    }
    #expect(counts.files == counts.read + Self.refused.keys.count { Corpus.names(in: folder).contains($0) })
    print(
      "\(folder): \(counts.files) files, \(counts.read) read, \(counts.entries) entries, "
        + "\(counts.differences) differences")
  }

  /// Another program's tests assert the same numbers of directories and files, and the same first names.
  @Test func countsWhatAnotherProgramCounts() {
    var counts = (read: 0, differences: 0)
    for (name, wanted) in Self.expected.sorted(by: { $0.key < $1.key }) where Self.refused[name] == nil {
      let outcome = parse(Corpus.bytes("autoindex-samples/" + name), url: wanted.url)
      let directories = outcome.items.compactMap { item in
        if case .directory(_, let path) = item { String(decoding: path.bytes, as: UTF8.self) } else { nil }
      }
      let files = outcome.entries.map { String(decoding: $0.path.bytes, as: UTF8.self) }
      let size = outcome.entries.first { $0.path.bytes == Array(wanted.firstFile.utf8) }?.size
      let isSame =
        directories.count == wanted.directories && files.count == wanted.files
        && (wanted.firstDirectory.isEmpty || directories.contains(wanted.firstDirectory))
        && (wanted.firstFile.isEmpty || files.contains(wanted.firstFile))
        && (size == nil || String(size ?? 0) == wanted.size)
      counts.read += 1
      if !isSame { counts.differences += 1 }
      let found =
        "\(directories.count) directories, \(files.count) files, first size \(String(describing: size))"
      #expect(isSame, "\(name): \(wanted); here \(found)")
    }
    print(
      "expected.tsv: \(Self.expected.count) samples, \(counts.read) read, \(counts.differences) differences")
    #expect(counts.read > 20)
  }

  /// Feeds of other kinds, pages that stand in a feed's place among them.
  @Test func takesNothingElseForAListing() {
    let indexes = FeedParser.formats.filter(\.isListing)
    let folders = Corpus.names(in: ".").filter { !$0.hasPrefix("autoindex") && !$0.contains(".") }
    var files = 0
    for folder in folders {
      for name in Corpus.names(in: folder) {
        let size = FeedInput.headSize / (Sanitizer.takesShare ? 8 : 1)
        let head = Array(Corpus.bytes("\(folder)/\(name)").prefix(size))
        files += 1
        let format = indexes.first {
          ["IndexPage", "IndexJSON", "IndexXML", "CaddyJSON"].contains("\(type(of: $0))")
            && $0.recognisesBelow(head)
        }
        #expect(format == nil, "\(folder)/\(name): \(format?.name ?? "")")
      }
    }
    print("other feeds: \(files) files of \(folders.count) folders, none taken for a listing")
    #expect(files > 1000)
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
    outcome.items.compactMap { item in
      switch item {
      case .entry(let entry): hex(entry.path.bytes) + "=" + (entry.size.map(String.init) ?? "")
      case .directory(_, let path): hex(path.bytes) + "/"
      case .refused, .deleted, .enclosure: nil
      }
    }
  }

  private static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }
}
