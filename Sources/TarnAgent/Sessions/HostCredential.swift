import Glibc
import TarnCore
import TarnEngine
import TarnRuntime
import TarnTransfer

/// The credential for a host. It is read from a file for each task, so that a new secret takes effect at
/// once.
enum HostCredential {
  static func fits(_ trust: HostTrust, _ url: String) -> Bool {
    guard let host = URLOrigin.host(of: url) else { return false }
    return HostName(trust.host) == host
  }

  /// Returns all header lines of a request. Its own take the place of the host's credential, and both that of
  /// the session's, where they have the same name.
  ///
  /// - Throws: `credential-not-readable`.
  static func headers(of request: TaskRequest, _ settings: SessionSettings) throws(PassFailure) -> [String] {
    var own = request.headers ?? []
    if request.ignoreCache == true { own += ["Cache-Control: no-cache", "Pragma: no-cache"] }
    var common = settings.headers ?? []
    if let trust = settings.hosts?.first(where: { fits($0, request.url) }), let line = try line(of: trust) {
      common = HeaderLines.merged([line], over: common)
    }
    return HeaderLines.merged(own, over: common)
  }

  /// - Returns: a header line; `nil` when the host has no credential.
  /// - Throws: `credential-not-readable`.
  static func line(of trust: HostTrust) throws(PassFailure) -> String? {
    guard let reference = trust.credential else { return nil }
    let path = path(of: reference)
    guard let path, let text = TextFile.read(path, limit: 64 << 10) else {
      throw PassFailure(
        .configuration, code: "credential-not-readable",
        "the credential of \(Printable.escape(trust.host)), \(Printable.escape(path ?? reference)), cannot be read"
      )
    }
    let secret = String(text.prefix { !$0.isNewline })
    guard !secret.isEmpty, secret.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
      throw PassFailure(
        .configuration, code: "credential-not-readable",
        "the credential of \(Printable.escape(trust.host)) is not a line of text")
    }
    guard secret.contains(":") else { return "Authorization: Bearer \(secret)" }
    return "Authorization: Basic \(Base64.encode(Array(secret.utf8)))"
  }

  /// Returns the path of a credential: a file, or a credential of the service by its name (systemd.exec(5)).
  private static func path(of reference: String) -> String? {
    guard !reference.hasPrefix("/") else { return reference }
    guard !reference.utf8.contains(UInt8(ascii: "/")), reference != ".." else { return nil }
    return getenv("CREDENTIALS_DIRECTORY").map { "\(String(cString: $0))/\(reference)" }
  }
}
