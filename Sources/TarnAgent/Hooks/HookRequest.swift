import TarnConfig
import TarnCore
import TarnCrypto
import TarnRuntime

/// Makes the network request of a webhook or a ping.
enum HookRequest {
  /// The reason why there is no request, as text for a person, without the secret.
  struct Failure: Error { let message: String }

  /// The bytes of an answer, at most; nobody reads it.
  private static let limit: UInt64 = 1 << 20
  /// The bytes of a file that holds a URL, a key or headers, at most.
  private static let secretLimit = 1 << 20

  /// Makes the request with the secrets as they are now.
  ///
  /// - Parameter credentials: the directory `$CREDENTIALS_DIRECTORY`.
  static func make(
    _ document: HookDocument, for hook: HookSettings, credentials: String?
  ) throws(Failure) -> DownloadRequest? {
    let body = JSONText.line(document)
    var request: DownloadRequest
    switch hook.way {
    case .command: return nil
    case .webhook(let address):
      request = DownloadRequest(url: try url(address, credentials), limit: limit)
      request.headers = ["X-Tarn-Event: \(document.event.rawValue)", "X-Tarn-Delivery: \(document.id)"]
      if let place = hook.secret {
        // An editor adds the line end.
        let key = firstLine(try read(place, credentials, "key"))
        guard !key.isEmpty, let code = HMACSignature.sha256(of: Array(body.utf8), key: Array(key.utf8)) else {
          throw Failure(message: "the file of its key is empty")
        }
        request.headers.append("X-Hub-Signature-256: sha256=\(code.hex)")
      }
    case .ping(let address):
      let url = try url(address, credentials)
      request = DownloadRequest(
        url: ping(url, suffix: document.pingSuffix, rid: document.rid), limit: limit)
    }
    if let place = hook.headerFile {
      let text = try read(place, credentials, "headers")
      do throws(HeaderLines.Malformed) {
        request.headers += try HeaderLines(text).headers
      } catch {
        throw Failure(message: "line \(error.line) of its header file is not a 'Name: value' header")
      }
    }
    request.headers.append("Content-Type: application/json")
    (request.method, request.body, request.keepsBody) = ("POST", body, true)
    request.encoding = .taken
    request.totalTimeout = Int(clamping: hook.timeout)
    return request
  }

  /// Returns the address of a ping, with the suffix before the query and `rid` in the query.
  static func ping(_ url: String, suffix: String, rid: String) -> String {
    let parts = url.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)[0]
      .split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var path = parts[0]
    while path.hasSuffix("/") { path = path.dropLast() }
    let query = parts.count > 1 && !parts[1].isEmpty ? "\(parts[1])&" : ""
    return "\(path)\(suffix)?\(query)rid=\(rid)"
  }

  private static func url(_ address: HookAddress, _ credentials: String?) throws(Failure) -> String {
    switch address {
    case .url(let url): return url
    case .secret(let place):
      let url = firstLine(try read(place, credentials, "URL"))
      let lower = url.lowercased()
      guard lower.hasPrefix("https://") || lower.hasPrefix("http://") else {
        throw Failure(message: "the first line of the file of its URL is no http or https URL")
      }
      return url
    }
  }

  private static func firstLine(_ text: String) -> String {
    text.split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
  }

  private static func read(
    _ place: SecretPlace, _ credentials: String?, _ what: String
  ) throws(Failure) -> String {
    guard let path = place.path(credentials: credentials) else {
      throw Failure(message: "its \(what) is a credential, and there is no $CREDENTIALS_DIRECTORY")
    }
    do throws(PassFailure) {
      if case .file = place { try Secrets.refuseExposed([path]) }
    } catch {
      throw Failure(message: error.message)
    }
    guard let text = TextFile.read(path, limit: secretLimit) else {
      throw Failure(message: "the file of its \(what) cannot be read: \(Printable.escape(path))")
    }
    return text
  }
}

/// Receives the answer to a webhook or a ping; only its status counts.
final class HookReceiver: DownloadReceiver {
  private let ended: @Sendable (HookQueue.Result) -> Void

  init(ended: @escaping @Sendable (HookQueue.Result) -> Void) { self.ended = ended }

  func begin(_ head: ResponseHead) -> HeadVerdict { .headOnly }
  func receive(_ bytes: UnsafeRawBufferPointer) -> ByteVerdict { .taken }

  func end(_ outcome: DownloadOutcome) { ended(Self.result(outcome)) }

  static func result(_ outcome: DownloadOutcome) -> HookQueue.Result {
    switch outcome {
    case .complete(let head) where (200..<300).contains(head.status): return .delivered
    case .complete(let head) where [301, 302, 303].contains(head.status):
      return .failed(
        "the answer was HTTP \(head.status), a redirect that drops the event: give the final URL",
        isTransient: false)
    case .complete(let head):
      let mayPass = head.status >= 500 || [408, 425, 429].contains(head.status)
      return .failed(
        "the answer was HTTP \(head.status)", isTransient: mayPass, retryAfter: head.retryAfter)
    case .failed(let failure):
      return .failed(failure.message, isTransient: failure.isTransient, retryAfter: failure.retryAfter)
    }
  }
}
