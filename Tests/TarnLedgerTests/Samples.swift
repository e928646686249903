import Foundation
import TarnCore
import TarnLedger
import TestSupport
import Testing

/// A directory that goes with the value.
final class Scratch: Sendable {
  let path: String

  init() {
    let parent = URL(fileURLWithPath: NSTemporaryDirectory()).resolvingSymlinksInPath().path
    var template = Array("\(parent)/tarn-ledger-XXXXXX".utf8CString)
    path =
      mkdtemp(&template) == nil ? "" : String(decoding: template.dropLast().map(UInt8.init), as: UTF8.self)
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
  }

  var ledger: String { path + "/ledger.sqlite" }

  func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path).sorted()
  }
}

func bytes(of path: String) throws -> [UInt8] {
  Array(try Data(contentsOf: URL(fileURLWithPath: path)))
}

/// Unlike `Data.write` without a sync, which thousands of damaged files would wait for.
func write(_ bytes: [UInt8], to path: String) throws {
  let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
  defer { close(descriptor) }
  guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
    throw CocoaError(.fileWriteUnknown)
  }
}

func path(_ text: String) -> RelativePath { RelativePath(trusted: Array(text.utf8)) }

func moment(_ seconds: Int64) -> Timestamp { Timestamp(nanoseconds: seconds * 1_000_000_000) }

func digest(_ seed: UInt8, _ algorithm: DigestAlgorithm = .sha256) -> Digest {
  Digest(algorithm, bytes: [UInt8](repeating: seed, count: algorithm.length))!
}

func row(_ path: RelativePath, size: UInt64 = 10, digest seed: UInt8 = 1) -> Row {
  Row(
    path: path,
    identity: FileIdentity(
      device: 1, inode: 2, size: size, modified: moment(-5),
      changed: Timestamp(nanoseconds: 1_700_000_000_123)),
    digest: digest(seed), isVerified: true, fingerprint: [0, 255], etag: "\"a\u{301}\u{0}b\"",
    lastModified: nil,
    placed: moment(9))
}

func partial(_ path: RelativePath, digest: Digest? = nil) -> PartialRow {
  PartialRow(
    path: path, name: "p1", url: "https://example.org/ä", etag: nil, lastModified: "yesterday", total: .max,
    digest: digest, fingerprint: [], durable: 7, bootID: "")
}

func intent(_ path: RelativePath, _ kind: Intent.Kind = .install) -> Intent {
  Intent(kind: kind, path: path, partialName: "p", trashName: "t", row: row(path), displacesOwn: true)
}

extension RowCursor {
  func drain() throws -> [Row] {
    var rows: [Row] = []
    while let row = try next() { rows.append(row) }
    return rows
  }
}

extension EntryCursor {
  func drain() throws -> [Entry] {
    var entries: [Entry] = []
    while let entry = try next() { entries.append(entry) }
    return entries
  }
}

extension ActionCursor {
  func drain() throws -> [Action] {
    var actions: [Action] = []
    while let action = try next() { actions.append(action) }
    return actions
  }
}

/// The failure that `body` throws; nil, and an issue, when it throws none.
func failure(_ body: () throws -> Void, at location: SourceLocation = #_sourceLocation) -> LedgerFailure? {
  do {
    try body()
  } catch let error as LedgerFailure {
    return error
  } catch {
    Issue.record(error, sourceLocation: location)
    return nil
  }
  Issue.record("nothing was thrown", sourceLocation: location)
  return nil
}
