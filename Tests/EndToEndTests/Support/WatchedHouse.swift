import Foundation
import Testing

/// An agent that watches the folder `files`, and what its tests ask of it.
class WatchedHouse: AgentHouse {
  /// What the mirror `files` is in the status.
  func mirror() throws -> [String: Any] {
    let document = try #require(JSON.documents(try tarn("status", "--json").output).first)
    let mirrors = document["mirrors"] as? [[String: Any]] ?? []
    return try #require(mirrors.first { $0["name"] as? String == "files" })
  }

  func watch() throws -> (mode: String, reason: String) {
    let watch = try mirror()["watch"] as? [String: Any] ?? [:]
    return (watch["mode"] as? String ?? "", watch["reason"] as? String ?? "")
  }

  func waitForMode(_ mode: String) throws {
    try waitUntil("the mode is \(mode)") { try self.watch().mode == mode }
  }

  /// Started, synced, watched.
  func startInSync() throws {
    try start()
    let sync = try tarn("sync", "files")
    #expect(sync.status == 0, "\(sync)")
    try waitForMode("watching")
  }

  /// News come in order: once a file that is deleted now is back, the agent has taken all that happened before.
  func waitUntilAllNewsAreTaken(by name: String) throws {
    try place.remove("files/\(name)")
    try waitUntil("\(name) is back") { self.place.exists("files/\(name)") }
  }

  /// The bodies that were sent while `body` ran, the feed's among them.
  func bodies(during body: () throws -> Void) throws -> [String] {
    try server.requests(during: body).filter(\.isBody).map(\.uri)
  }

  /// Codes of the journal, oldest first.
  func events() throws -> [String] {
    let outcome = try tarn("events", "--json", "--newest", "1000", "files")
    return try JSON.documents(outcome.output).compactMap { $0["code"] as? String }
  }

  /// Regular, with these bytes and mode.
  func stands(_ name: String, _ text: String, mode: mode_t) -> Bool {
    var status = stat()
    guard lstat(place.path + "/files/" + name, &status) == 0, status.st_mode == S_IFREG | mode else {
      return false
    }
    return place.text("files/" + name) == text
  }

  /// The program that the agent watches with; nil while none runs.
  var watcher: Int32? { agent.flatMap { Self.children(of: $0.pid).first } }

  static func children(of parent: Int32) -> [Int32] {
    let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc"))?.compactMap { Int32($0) }
    return (numbers ?? []).filter { number in
      guard let fields = self.fields(number) else { return false }
      return fields.name == "tarn-watch" && fields.parent == parent && fields.state != "Z"
    }
  }

  static func isRunning(_ number: Int32) -> Bool { fields(number).map { $0.state != "Z" } ?? false }

  /// proc(5), /proc/PID/stat: the name stands in parentheses.
  private static func fields(_ number: Int32) -> (name: String, state: String, parent: Int32)? {
    guard let line = try? String(contentsOfFile: "/proc/\(number)/stat", encoding: .utf8),
      let open = line.firstIndex(of: "("), let close = line.lastIndex(of: ")")
    else { return nil }
    let rest = line[close...].split(separator: " ")
    guard rest.count > 2, let parent = Int32(rest[2]) else { return nil }
    return (String(line[line.index(after: open)..<close]), String(rest[1]), parent)
  }
}
