import Glibc
import TarnAgent
import TarnCore
import TarnEngine

/// A path in a mirror, as the words of a command mean it. Names in a mirror are bytes, and may be no UTF-8.
struct MirrorPath {
  /// As a word that names the mirror.
  var mirror: String
  /// Below the mirror's folder; or as it was given where it is no path there.
  var path: [UInt8]
  /// As it was given: it may be a name that a pass refused.
  var given: [UInt8]

  /// `MIRROR PATH`, `MIRROR:PATH`, or the path of a file that lies in a mirror, also where the file is missing.
  ///
  /// - Throws: `usage` for a path in no mirror.
  init(_ words: [String], _ session: Session) throws(PassFailure) {
    let bytes = words.map(RawArguments.bytes)
    given = bytes[bytes.count - 1]
    guard words.count > 1 else {
      self = try Self(alone: words[0], bytes[0], session)
      return
    }
    try RawArguments.refuseOtherBytes("the mirror", bytes[0])
    (mirror, path) = (words[0], Self.relative(bytes[1], mirror: words[0], session.tarn))
    // A directory of a mirror, and a path as seen from there.
    guard session.tarn.place(of: words[0]) == nil, session.tarn.isNoMirror(words[0]),
      let outer = session.tarn.mirrorFolder(around: words[0])
    else { return }
    let isAbsolute = bytes[1].first == UInt8(ascii: "/")
    let full =
      isAbsolute ? bytes[1] : Array(session.tarn.absolute(words[0]).utf8) + [UInt8(ascii: "/")] + bytes[1]
    (mirror, path) = (outer, Self.relative(full, mirror: outer, session.tarn))
  }

  private init(alone word: String, _ bytes: [UInt8], _ session: Session) throws(PassFailure) {
    given = bytes
    if let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
      let name = String(validating: bytes[..<colon], as: UTF8.self),
      session.tarn.place(of: name) != nil
    {
      (mirror, path) = (name, Array(bytes[(colon + 1)...]))
      given = path
      return
    }
    // Only directories are looked at, and what is no UTF-8 is in the last name as a rule.
    guard let folder = session.tarn.mirrorFolder(around: word) ?? session.tarn.knownFolder(around: word)
    else {
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

  /// A path as the mirror names it: an absolute one and one that begins with `./` or `../` are those of the
  /// file system, all others are the mirror's own.
  static func relative(_ path: [UInt8], mirror: String, _ tarn: Tarn) -> [UInt8] {
    if ["/", "./", "../"].contains(where: { path.starts(with: $0.utf8) }) {
      let full = absolute(path, tarn.workingDirectory)
      let folders = [tarn.absolute(mirror), tarn.resolved(tarn.absolute(mirror))]
      // Links in front of the mirror's folder lead to the same files, and so do those that lead into it.
      for full in [full, inRealDirectory(full, tarn)] {
        for front in folders.map({ Array($0.utf8) + [UInt8(ascii: "/")] }) where full.starts(with: front) {
          return Array(full.dropFirst(front.count))
        }
      }
    }
    return path.count > 1 && path.last == UInt8(ascii: "/") ? Array(path.dropLast()) : path
  }

  /// The same with the links of its directory followed; not of the file itself, which may be a link that is asked about.
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
