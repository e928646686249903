import Glibc
import TarnCore
import TarnCrypto
import TarnEngine
import TarnFolder
import TarnRuntime

/// Everything besides a feed's text that shapes its result. While it is the same, an unchanged feed has the
/// same result.
enum FeedSettings {
  /// - Returns: a digest in hexadecimal. For files of secrets it covers the attributes of stat(2), never the
  ///   contents: the ledger must not help to guess them.
  static func digest(
    _ feed: FeedLocation, _ options: PassOptions, _ request: SyncRequest, home: String?
  ) -> String {
    let netrc = options.last(.netrcFile) ?? (options.isOn(.netrc) ? home.map { $0 + "/.netrc" } : nil)
    let files = [
      netrc, options.last(.headerFile), options.last(.cookies), options.last(.cacert), request.proxyFile,
    ]
    // Another version of Tarn may read another manifest from the same text.
    var lines = [Tarn.version, EscapedLine.escape(feed.text), options.encoded]
    lines += (files.compactMap { $0 } + request.secretFiles).map(identity)
    return OpenSSLHashing().digest(.sha256, of: Array(lines.joined(separator: "\n").utf8)).hex
  }

  private static func identity(_ path: String) -> String {
    guard let status = TextFile.status(path) else { return "\(EscapedLine.escape(path)) -" }
    let times = [status.st_mtim, status.st_ctim].map { "\($0.tv_sec).\($0.tv_nsec)" }.joined(separator: " ")
    return "\(EscapedLine.escape(path)) \(status.st_ino) \(status.st_size) \(times)"
  }
}
