import Glibc
import TarnCore

/// A mirror's folder is what its feed says: no task puts its file there.
extension TaskPlace {
  static let inMirror = "destination-in-mirror"
  static let noMirror = "choose a folder that is no mirror"

  static func isInMirror(_ to: String, _ mirror: String) -> String {
    "\(Printable.escape(to)) lies in the mirror \(Printable.escape(mirror))"
  }

  /// The folder of the mirror that it lies in; nil for none. What does not exist yet counts by where it would be.
  var mirror: String? {
    if let mirror = Self.mirror(above: directory) { return mirror }
    // Where links lead to, as far as there is something.
    var existing = directory
    while access(existing, F_OK) != 0, let slash = existing.lastIndex(of: "/"), slash != existing.startIndex {
      existing = String(existing[..<slash])
    }
    guard let real = realpath(existing, nil) else { return nil }
    defer { free(real) }
    return Self.mirror(above: String(cString: real))
  }

  private static func mirror(above place: String) -> String? {
    var directory = place
    while true {
      var status = stat()
      if stat("\(directory == "/" ? "" : directory)/.tarn", &status) == 0 { return directory }
      guard directory != "/", let slash = directory.lastIndex(of: "/") else { return nil }
      directory = slash == directory.startIndex ? "/" : String(directory[..<slash])
    }
  }
}
