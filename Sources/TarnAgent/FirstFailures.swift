import Glibc
import TarnConfig
import TarnCore
import TarnEngine

/// Why first passes by hand failed of mirrors of the settings: no folder is left of these, and no ledger to say so. A list of
/// hints: when it is lost, nothing is lost but that.
struct FirstFailures {
  struct Failure: Equatable {
    var folder: String
    /// As the settings have it.
    var feed: String
    var when: Timestamp
    var message: String
    var hint: String?

    /// By bytes, as the file system does.
    func isOf(folder: String, feed: String? = nil) -> Bool {
      self.folder.utf8.elementsEqual(folder.utf8)
        && (feed.map { self.feed.utf8.elementsEqual($0.utf8) } ?? true)
    }
  }

  /// The file; one line each: time, folder, feed, message, hint, escaped and parted by tabs.
  let path: String

  private static let most = 256

  /// Beside the list of mirrors.
  init(beside registry: Registry) {
    path = registry.path + ".failed"
  }

  func failures() -> [Failure] {
    guard let text = TextFile.read(path, limit: 4 << 20) else { return [] }
    return text.unicodeScalars.split(separator: "\n").compactMap { line in
      let parts = Substring(line).split(separator: "\t", omittingEmptySubsequences: false)
        .map { EscapedLine.unescape($0.unicodeScalars) }
      guard parts.count == 5, let time = Int64(parts[0]) else { return nil }
      return Failure(
        folder: parts[1], feed: parts[2], when: Timestamp(nanoseconds: time), message: parts[3],
        hint: parts[4].isEmpty ? nil : parts[4])
    }
  }

  /// Any thread, any process. That it cannot be written is of no account.
  func add(_ failure: Failure) {
    edit { known in known.filter { !$0.isOf(folder: failure.folder) } + [failure] }
  }

  /// Any thread, any process.
  func remove(folder: String) {
    guard failures().contains(where: { $0.isOf(folder: folder) }) else { return }
    edit { known in known.filter { !$0.isOf(folder: folder) } }
  }

  private func edit(_ change: ([Failure]) -> [Failure]) {
    let lock = TextFile.lock(beside: path)
    defer { if let lock { close(lock) } }
    let lines = change(failures()).suffix(Self.most).map { failure in
      let fields = [failure.folder, failure.feed, failure.message, failure.hint ?? ""]
      return "\(failure.when.nanoseconds)\t\(fields.map(EscapedLine.escape).joined(separator: "\t"))\n"
    }
    _ = TextFile.replace(path, with: lines.joined(), mark: String(getpid()), isDurable: false)
  }
}

extension Tarn {
  private var firstFailures: FirstFailures? { registry.map(FirstFailures.init(beside:)) }

  /// What is left of a pass by hand that failed before there was a ledger to note it in.
  func noteFirst(_ failure: PassFailure, of request: SyncRequest) {
    guard let feed = request.feed, request.name != nil, request.agent == nil,
      ![.stopped, .locked, .usage].contains(failure.kind), look(absolute(request.folder))?.home == nil
    else { return }
    firstFailures?.add(
      FirstFailures.Failure(
        folder: absolute(request.folder), feed: feed, when: now,
        message: Redaction.message(failure.message), hint: failure.hint.map(Redaction.message)))
  }

  func forgetFirstFailure(_ folder: String) { firstFailures?.remove(folder: absolute(folder)) }

  /// Why the first pass of a mirror of the settings failed; nil where none has begun, or it has another feed by now.
  func firstFailure(of settings: MirrorSettings) -> FirstFailures.Failure? {
    firstFailures?.failures().last { $0.isOf(folder: absolute(settings.folder), feed: settings.feed) }
  }
}
