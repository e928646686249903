import TarnCore
import TarnRuntime
import TestSupport

/// What lies on the fake network, by address; hears every request.
final class Server: Sendable {
  private struct State {
    var fixed: [String: FakeAnswer] = [:]
    var scripts: [String: [FakeAnswer]] = [:]
    var retryAfter: [String: Int64] = [:]
    var rests: [String: Int64] = [:]
    var requests: [DownloadRequest] = []
    var hook: (@Sendable (DownloadRequest) -> Void)?
  }
  private let state = Locked(State())

  /// The body that is served from now on.
  func put(_ url: String, _ body: [UInt8], etag: String? = nil) {
    state.withLock { $0.fixed[url] = FakeAnswer(etag: etag, body: body) }
  }

  func answer(_ url: String, _ answer: FakeAnswer) {
    state.withLock { $0.fixed[url] = answer }
  }

  /// Answers that come first, one a request.
  func script(_ url: String, _ answers: [FakeAnswer]) {
    state.withLock { $0.scripts[url] = answers }
  }

  func text(_ url: String) -> String? {
    state.withLock { state in state.fixed[url].map { String(decoding: $0.body, as: UTF8.self) } }
  }

  func remove(_ url: String) {
    state.withLock { $0.fixed[url] = nil }
  }

  /// Sent with every answer of that address that is an error.
  func setRetryAfter(_ url: String, _ seconds: Int64?) {
    state.withLock { $0.retryAfter[url] = seconds }
  }

  /// Once it has been asked so often the host of that address is left alone.
  func leaveAlone(_ url: String, seconds: Int64) {
    state.withLock { $0.rests[url] = seconds }
  }

  /// Called for each request, on the network's thread.
  func onRequest(_ hook: (@Sendable (DownloadRequest) -> Void)?) {
    state.withLock { $0.hook = hook }
  }

  func clearRequests() { state.withLock { $0.requests = [] } }

  var requests: [DownloadRequest] { state.withLock { $0.requests } }

  var urls: [String] { requests.map(\.url) }

  func downloader() throws -> any Downloading {
    let fake = try FakeDownloader { [self] request in
      let (answer, hook) = state.withLock { state in
        state.requests.append(request)
        return (Self.answer(request, &state), state.hook)
      }
      hook?(request)
      return answer
    }
    for (url, seconds) in state.withLock({ $0.rests }) { fake.leaveAlone(url, seconds: seconds) }
    return HeadDownloader(fake) { [self] request, head in
      guard head.status >= 400 else { return }
      head.retryAfter = state.withLock { $0.retryAfter[request.url] }
    }
  }

  /// Its answers, with other heads.
  func editingHeads(
    _ edit: @escaping @Sendable (DownloadRequest, inout ResponseHead) -> Void
  ) throws -> any Downloading {
    HeadDownloader(try downloader(), edit: edit)
  }

  private static func answer(_ request: DownloadRequest, _ state: inout State) -> FakeAnswer {
    if let first = state.scripts[request.url]?.first {
      state.scripts[request.url]?.removeFirst()
      return first
    }
    return state.fixed[request.url] ?? FakeAnswer(status: 404)
  }

  static let lost = DownloadFailure(.reset, "the connection was lost", isTransient: true)

  /// The body breaks off after so many bytes.
  static func broken(_ text: String, after: Int, etag: String? = nil) -> FakeAnswer {
    FakeAnswer(etag: etag, body: text.bytes, failure: (after, lost))
  }
}

/// Changes the heads that another downloader gives.
final class HeadDownloader: Downloading {
  private let inner: any Downloading
  private let edit: @Sendable (DownloadRequest, inout ResponseHead) -> Void

  init(_ inner: any Downloading, edit: @escaping @Sendable (DownloadRequest, inout ResponseHead) -> Void) {
    self.inner = inner
    self.edit = edit
  }

  func start(_ request: DownloadRequest, to receiver: any DownloadReceiver) -> DownloadID {
    inner.start(request, to: HeadReceiver(request, receiver, edit))
  }

  func resume(_ id: DownloadID) { inner.resume(id) }
  func cancel(_ id: DownloadID) { inner.cancel(id) }
  func prioritize(_ id: DownloadID) { inner.prioritize(id) }
  func rest(of url: String) -> Int64? { inner.rest(of: url) }
  func shutDown() { inner.shutDown() }
}

private final class HeadReceiver: DownloadReceiver {
  private let request: DownloadRequest
  private let inner: any DownloadReceiver
  private let edit: @Sendable (DownloadRequest, inout ResponseHead) -> Void

  init(
    _ request: DownloadRequest, _ inner: any DownloadReceiver,
    _ edit: @escaping @Sendable (DownloadRequest, inout ResponseHead) -> Void
  ) {
    self.request = request
    self.inner = inner
    self.edit = edit
  }

  func begin(_ head: ResponseHead) -> HeadVerdict {
    inner.begin(edited(head))
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> ByteVerdict { inner.receive(bytes) }

  func placed() { inner.placed() }

  func turnEnded() { inner.turnEnded() }

  func end(_ outcome: DownloadOutcome) {
    guard case .complete(let head) = outcome else { return inner.end(outcome) }
    inner.end(.complete(edited(head)))
  }

  private func edited(_ head: ResponseHead) -> ResponseHead {
    var head = head
    edit(request, &head)
    return head
  }
}
