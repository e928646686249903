import Glibc
import TarnCore
import TarnTransfer

/// Keeps tasks out of mirrors: the feed alone decides what is in a mirror's folder.
extension TaskPlace {
  static let inMirror = "destination-in-mirror"
  static let noMirror = "choose a folder that is not a mirror"

  static func isInMirror(_ to: String, _ mirror: String) -> String {
    "\(Printable.escape(to)) lies in the mirror \(Printable.escape(mirror))"
  }

  /// The folder of the mirror that contains the place; `nil` for none. The existing part of the path counts.
  var mirror: String? {
    if let mirror = Self.mirror(above: directory) { return mirror }
    // Links are followed as far as the path exists.
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

extension TaskRequest {
  /// Checks a request whole, and whether libcurl can read its URL.
  ///
  /// - Throws: what is wrong with the request, for its author.
  func refuseUnusable() throws(Refusal) {
    try validate()
    if let fault = URLOrigin.fault(of: url) {
      throw Refusal(code: "url-refused", message: "\(Printable.escape(url)): \(fault)")
    }
  }
}
