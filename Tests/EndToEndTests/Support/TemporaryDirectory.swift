import Foundation

/// A directory that is gone with the value that stands for it.
final class TemporaryDirectory {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
      // Lower case: messages are searched for words in capitals.
      .appendingPathComponent("tarn-e2e-\(UUID().uuidString.lowercased())")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit {
    try? FileManager.default.removeItem(at: url)
  }

  var path: String { url.path }

  /// Writes a file and the directories above it.
  @discardableResult
  func write(_ contents: String, to path: String) throws -> URL {
    try write(Data(contents.utf8), to: path)
  }

  @discardableResult
  func write(_ contents: Data, to path: String) throws -> URL {
    let file = url.appendingPathComponent(path)
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try contents.write(to: file)
    return file
  }

  func text(_ path: String) -> String? {
    (try? Data(contentsOf: url.appendingPathComponent(path))).map { String(decoding: $0, as: UTF8.self) }
  }

  func exists(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: url.appendingPathComponent(path).path)
  }

  func remove(_ path: String) throws {
    try FileManager.default.removeItem(at: url.appendingPathComponent(path))
  }

  /// The paths of all regular files below, sorted; `.tarn` left out.
  func files() -> [String] {
    guard let walk = FileManager.default.enumerator(atPath: path) else { return [] }
    var found: [String] = []
    for case let file as String in walk where file != ".tarn" && !file.hasPrefix(".tarn/") {
      if walk.fileAttributes?[.type] as? FileAttributeType == .typeRegular { found.append(file) }
    }
    return found.sorted()
  }

  /// The contents of every file below a place of it, hidden ones too.
  func contents(below place: String) -> [String] {
    let base = url.appendingPathComponent(place)
    guard let walk = FileManager.default.enumerator(atPath: base.path) else { return [] }
    return walk.compactMap { $0 as? String }.compactMap { text(place + "/" + $0) }
  }
}
