import CurlShim
import TarnCore
import TarnRuntime

/// libcurl's multi handle.
///
/// All methods except `wake` belong to the network thread.
final class MultiHandle: @unchecked Sendable {
  // Safe because curl_multi_wakeup is the one call that libcurl allows from other threads, Inbox calls it under the lock under
  // which it was found open, and the handle is closed by its thread after the inbox.
  private let multi: UnsafeMutableRawPointer
  /// The guard that knows all sockets and closes them.
  let guards: FloodGuard
  private var isClosed = false

  /// - Throws: `.outOfMemory`, or `.tooManyOpenFiles` when libcurl has no descriptor for wake-ups. Without one, `wake` would do
  ///   nothing and `poll` would sleep on.
  init(_ limits: PlaceLimits) throws(DownloadFailure) {
    guard let multi = curl_multi_init() else {
      throw DownloadFailure(.outOfMemory, "libcurl gave no multi handle", isTransient: true)
    }
    guard curl_multi_wakeup(multi) == CURLM_OK else {
      curl_multi_cleanup(multi)
      throw DownloadFailure(
        .tooManyOpenFiles, "no thread for the network: too many open files; raise the limit (ulimit -n)",
        isTransient: true)
    }
    do throws(ThreadFailure) {
      guards = try FloodGuard()
    } catch {
      curl_multi_cleanup(multi)
      throw DownloadFailure(.outOfMemory, "no thread for the network", isTransient: true)
    }
    self.multi = multi
    set(limits)
  }

  deinit {
    close()
  }

  /// Sets new limits. Connections beyond them are closed when they are idle.
  func set(_ limits: PlaceLimits) {
    for (option, value, _) in CurlOption.multi(limits) { tarn_curl_multi_set_long(multi, option, value) }
  }

  /// Makes the running `poll`, or the next one, return. Any thread.
  func wake() {
    curl_multi_wakeup(multi)
  }

  func add(_ handle: EasyHandle) -> Bool {
    curl_multi_add_handle(multi, handle.easy) == CURLM_OK
  }

  func remove(_ handle: EasyHandle) {
    curl_multi_remove_handle(multi, handle.easy)
  }

  func perform() -> CURLMcode {
    var running: Int32 = 0
    return curl_multi_perform(multi, &running)
  }

  func poll(milliseconds: Int32) {
    curl_multi_poll(multi, nil, 0, milliseconds, nil)
  }

  func nextDone() -> (easy: UnsafeMutableRawPointer, code: CURLcode)? {
    var code = CURLE_OK
    guard let easy = tarn_curl_multi_next_done(multi, &code) else { return nil }
    return (easy, code)
  }

  /// Closes all connections. The easy handles must have been removed.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    curl_multi_cleanup(multi)
    guards.close()
  }
}
