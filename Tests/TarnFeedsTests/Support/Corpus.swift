import Glibc

/// The captured feeds of the wild, which are not part of the repository: found by TARN_FEEDS or beside it.
enum Corpus {
  /// The top of the repository.
  static let root = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")

  static let directory: String? = {
    if let given = getenv("TARN_FEEDS").map({ String(cString: $0) }), !given.isEmpty { return given }
    let beside = root + "/../shared/feeds"
    return access(beside, R_OK) == 0 ? beside : nil
  }()

  static func names(in folder: String) -> [String] {
    directory.map { names(inDirectory: "\($0)/\(folder)") } ?? []
  }

  static func names(inDirectory path: String) -> [String] {
    guard let handle = opendir(path) else { return [] }
    defer { closedir(handle) }
    var names: [String] = []
    while let entry = readdir(handle) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if !name.hasPrefix("."), !name.hasSuffix(".headers") { names.append(name) }
    }
    return names.sorted()
  }

  static func bytes(_ path: String) -> [UInt8] {
    directory.map { bytes(ofFile: "\($0)/\(path)") } ?? []
  }

  static func bytes(ofFile path: String) -> [UInt8] {
    guard let file = fopen(path, "rb") else { return [] }
    defer { fclose(file) }
    return bytes(of: file)
  }

  /// What a Python script of Tests/Tools prints; nil when it fails or there is no Python.
  static func output(of script: String, _ arguments: [String]) -> [UInt8]? {
    let words = ["python3", "\(root)/Tests/Tools/\(script)"] + arguments
    let command = words.map { "'" + $0 + "'" }.joined(separator: " ")
    guard let pipe = popen(command, "r") else { return nil }
    let bytes = bytes(of: pipe)
    return pclose(pipe) == 0 ? bytes : nil
  }

  private static func bytes(of file: UnsafeMutablePointer<FILE>) -> [UInt8] {
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = fread(&block, 1, block.count, file)
      if count == 0 { return bytes }
      bytes += block[..<count]
    }
  }
}
