import Glibc
import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine

/// A path in a mirror, as the words of a command give it. Names in a mirror are bytes, and may not be UTF-8.
struct MirrorPath {
  /// The mirror, as a word that names it.
  var mirror: String
  /// The path below the mirror's folder, or as given when it is no such path.
  var path: [UInt8]
  /// The path as given: it may be a name that a pass refused.
  var given: [UInt8]
  /// The path below the mirror's folder if the one given is relative to the working directory and leads through that folder.
  ///
  /// Shells complete it like this. The mirror may have the path as given, too, which then comes first.
  private(set) var throughFolder: [UInt8]?

  /// Reads `MIRROR PATH`, `MIRROR:PATH`, or the path of a file in a mirror, even when the file is missing.
  ///
  /// - Throws: `usage` for a path in no mirror.
  init(_ words: [String], _ session: Session) throws(PassFailure) {
    let bytes = words.map(RawArguments.bytes)
    given = bytes[bytes.count - 1]
    guard words.count > 1 else {
      self = try Self(alone: words[0], bytes[0], session)
      return
    }
    if session.tarn.isFile(words[0]), session.tarn.mirrorFolder(around: words[0]) != nil {
      throw PassFailure(
        .usage, code: "usage", "\(ShellWord.quote(words[0])) is a file of a mirror, and one path is expected",
        hint: "tarn explain \(ShellWord.quote(words[0]))")
    }
    try RawArguments.refuseOtherBytes("the mirror", bytes[0])
    (mirror, path) = (words[0], Self.relative(bytes[1], mirror: words[0], session.tarn))
    let completed = Self.relative(Array("./".utf8) + bytes[1], mirror: words[0], session.tarn)
    if bytes[1].first != UInt8(ascii: "/"), !completed.starts(with: "./".utf8), completed != path {
      throughFolder = completed
    }
    // The words may be a directory in a mirror, and a path relative to it.
    guard session.tarn.place(of: words[0]) == nil, session.tarn.isNoMirror(words[0]),
      let outer = session.tarn.mirrorFolder(around: words[0])
    else { return }
    let isAbsolute = bytes[1].first == UInt8(ascii: "/")
    let full =
      isAbsolute ? bytes[1] : Array(session.tarn.absolute(words[0]).utf8) + [UInt8(ascii: "/")] + bytes[1]
    (mirror, path) = (outer, Self.relative(full, mirror: outer, session.tarn))
  }

  private init(alone word: String, _ bytes: [UInt8], _ session: Session) throws(PassFailure) {
    try session.tarn.refuseEmptyNames(word, nil)
    given = bytes
    if let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
      let name = String(validating: bytes[..<colon], as: UTF8.self),
      session.tarn.place(of: name) != nil
    {
      (mirror, path) = (name, Array(bytes[(colon + 1)...]))
      given = path
      return
    }
    guard !word.contains("://") || session.tarn.isThere(word) else {
      throw PassFailure(
        .usage, code: "usage",
        "\(ShellWord.quote(Redaction.value(word))) is a URL, and a path in a mirror is expected",
        hint: "tarn explain MIRROR PATH")
    }
    // Only directories are examined; bytes that are not UTF-8 are usually in the last name.
    guard let folder = session.tarn.mirrorFolder(around: word) ?? session.tarn.knownFolder(around: word)
    else {
      try session.tarn.refuseOthersMirror(around: word)
      guard session.tarn.place(of: word) == nil, session.tarn.isNoMirror(word) else {
        throw PassFailure(
          .usage, code: "usage", "\(ShellWord.quote(word)) is a mirror, and one of its paths is missing",
          hint: "tarn explain \(ShellWord.quote(word)) PATH")
      }
      throw PassFailure(
        .usage, code: "no-mirror", "\(ShellWord.quote(bytes: bytes)) lies in no mirror",
        hint: "name the mirror: tarn explain MIRROR \(ShellWord.quote(bytes: bytes))")
    }
    let full = bytes.first == UInt8(ascii: "/") ? bytes : Array("./".utf8) + bytes
    (mirror, path) = (folder, Self.relative(full, mirror: folder, session.tarn))
  }

  /// Returns a path within the mirror. An absolute path and one that begins with `./` or `../` belong to the
  /// file system, all others to the mirror.
  static func relative(_ path: [UInt8], mirror: String, _ tarn: Tarn) -> [UInt8] {
    if ["/", "./", "../"].contains(where: { path.starts(with: $0.utf8) }) {
      let full = absolute(path, tarn.workingDirectory)
      let folder = tarn.absolute(tarn.place(of: mirror)?.folder ?? mirror)
      let folders = [folder, tarn.resolved(folder)]
      // Links above the mirror's folder, and those that lead into it, lead to the same files.
      for full in [full, inRealDirectory(full, tarn)] {
        for front in folders.map({ Array($0.utf8) + [UInt8(ascii: "/")] }) where full.starts(with: front) {
          return Array(full.dropFirst(front.count))
        }
      }
    }
    return path.count > 1 && path.last == UInt8(ascii: "/") ? Array(path.dropLast()) : path
  }

  /// Resolves the links of the path's directory. The file itself, which may be the link in question, is not
  /// followed.
  private static func inRealDirectory(_ path: [UInt8], _ tarn: Tarn) -> [UInt8] {
    guard let slash = path.lastIndex(of: UInt8(ascii: "/")), slash > 0,
      let directory = String(validating: path[..<slash], as: UTF8.self)
    else { return path }
    return Array(tarn.resolved(directory).utf8) + path[slash...]
  }

  private static func absolute(_ path: [UInt8], _ workingDirectory: String) -> [UInt8] {
    let slash = UInt8(ascii: "/")
    let full = path.first == slash ? path : Array(workingDirectory.utf8) + [slash] + path
    var segments: [ArraySlice<UInt8>] = []
    for segment in full.split(separator: slash) {
      switch segment {
      case let same where same.elementsEqual(".".utf8): continue
      case let up where up.elementsEqual("..".utf8): _ = segments.popLast()
      default: segments.append(segment)
      }
    }
    return segments.flatMap { [slash] + $0 }
  }
}
