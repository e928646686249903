import Glibc
import TarnConfig
import TarnCore
import TarnRuntime
import TarnSchedule
import TarnTransfer

/// The agent's own memory: pauses, priorities, failures in a row, the wishes of servers. What passes did is
/// in the mirrors' ledgers.
///
/// It is one file, replaced whole and durably by each save. A file of another kind is set aside. One that
/// cannot be read counts as empty: then nothing is paused, and nothing backs off.
struct AgentRecord: Equatable, Sendable {
  struct Mirror: Equatable, Sendable {
    /// The folder. A name that leads to another folder now is another mirror.
    var folder: String
    /// The feed; `nil` in the record of an older agent.
    var feed: String?
    var isPaused = false
    /// True when the pause ended a pass, which `resume` begins again.
    var owesPass = false
    var priority = ControlCommand.Priority.normal
    /// The history. Its last success is that of a folder that was lost since: otherwise the ledger's counts.
    var history = RunSchedule.History()
    /// The reason why the last pass did not do its work, for mirrors without a ledger yet.
    var failure: PassFault?
    /// The mirror's condition that hooks were told.
    var condition: MirrorCondition?
    /// The id of the held plan that was approved during a pass.
    var approved: String?
    /// The paths of transfers that wait for `resume`, in byte order.
    var pausedPaths: [RelativePath] = []
    /// The first Retry-After wishes of hosts, the feed's among them. Their number is limited, for a feed may
    /// name any number of hosts.
    var wishes: [TransferBudget.Wish] = []

    /// Returns what still applies with these settings: `nil` for another folder. Facts about another feed's
    /// server are dropped.
    func holding(folder: String, feed: String) -> Mirror? {
      guard self.folder.utf8.elementsEqual(folder.utf8) else { return nil }
      var kept = self
      if let known = self.feed, !known.utf8.elementsEqual(feed.utf8) {
        (kept.history.failures, kept.history.heldUntil, kept.failure) = (0, nil, nil)
        kept.history.lastSuccess = nil
      }
      return kept
    }
  }

  var mirrors: [String: Mirror] = [:]

  /// Returns the record of a mirror of the settings, which may have had another name.
  ///
  /// - Parameter names: the names of all mirrors of the settings.
  func mirror(_ settings: MirrorSettings, among names: [String]) -> Mirror? {
    if let kept = mirrors[settings.name]?.holding(folder: settings.folder, feed: settings.feed) {
      return kept
    }
    let former = mirrors.filter { !names.contains($0.key) }.sorted { $0.key < $1.key }
    return former.lazy.compactMap { $0.value.holding(folder: settings.folder, feed: settings.feed) }.first
  }

  static let header = "tarn-agent/1"
  /// The wishes of hosts for one mirror, at most.
  static let mostWishes = 64

  init() {}

  // MARK: - Text

  /// The text of the record. Each mirror has a line: its name, then `key=value`, separated by tabs.
  var text: String {
    let lines = mirrors.sorted { $0.key < $1.key }.map { name, mirror in
      let history = mirror.history
      let single: [(String, String?)] = [
        ("folder", mirror.folder), ("feed", mirror.feed), ("paused", mirror.isPaused ? "yes" : nil),
        ("owes-pass", mirror.owesPass ? "yes" : nil),
        ("priority", mirror.priority == .normal ? nil : mirror.priority.rawValue),
        ("failures", history.failures == 0 ? nil : String(history.failures)),
        ("outcome", history.lastOutcome?.rawValue), ("since", history.since.map { String($0.nanoseconds) }),
        ("attempt", history.lastAttempt.map { String($0.nanoseconds) }),
        ("success", history.lastSuccess.map { String($0.nanoseconds) }),
        ("held-until", history.heldUntil.map { String($0.nanoseconds) }),
        ("held-by", history.isHeldByFeed ? "feed" : nil), ("cut-short", history.wasCutShort ? "yes" : nil),
        ("condition", mirror.condition?.rawValue), ("failure", mirror.failure?.message),
        ("failure-of", mirror.failure?.isOfFolder == true ? "folder" : nil), ("approved", mirror.approved),
      ]
      // Paths may have bytes that are not valid text.
      let pairs =
        single + mirror.pausedPaths.map { ("path", Base64.encode($0.bytes)) }
        + mirror.wishes.map { ("host", "\($0.until.nanoseconds) \($0.host)") }
      let fields = pairs.compactMap { key, value in value.map { "\(key)=\(EscapedLine.escape($0))" } }
      return ([EscapedLine.escape(name)] + fields).joined(separator: "\t")
    }
    return ([Self.header] + lines).joined(separator: "\n") + "\n"
  }

  /// Reads a record. Unknown fields are ignored; a text of another kind gives an empty record.
  init(_ text: String) {
    let lines = text.unicodeScalars.split(separator: "\n").map { Substring($0) }
    guard lines.first == Self.header[...] else { return }
    for line in lines.dropFirst() {
      let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
      var values: [String: [String]] = [:]
      for field in fields.dropFirst() {
        guard let equals = field.firstIndex(of: "=") else { continue }
        let value = EscapedLine.unescape(field[field.index(after: equals)...].unicodeScalars)
        values[String(field[..<equals]), default: []].append(value)
      }
      guard let name = fields.first, let mirror = Mirror(values) else { continue }
      mirrors[EscapedLine.unescape(name.unicodeScalars)] = mirror
    }
  }

  // MARK: - File

  /// - Parameter directory: the agent's state directory.
  static func path(in directory: String) -> String { "\(directory)/agent" }

  /// Renames a file of another kind, so that no save replaces it.
  ///
  /// - Returns: the new name; `nil` when there is nothing to set aside.
  static func setAside(_ directory: String) -> String? {
    let path = path(in: directory)
    guard let text = TextFile.read(path, limit: 16 << 20),
      AgentRecord.header != text.prefix(while: { $0 != "\n" })
    else { return nil }
    return rename(path, path + ".damaged") == 0 ? path + ".damaged" : nil
  }

  static func read(_ directory: String) -> AgentRecord {
    AgentRecord(TextFile.read(path(in: directory), limit: 16 << 20) ?? "")
  }

  /// - Returns: the reason why it could not be written, and then the old one is intact; `nil` when it is
  ///   saved.
  func save(_ directory: String) -> String? {
    TextFile.replace(Self.path(in: directory), with: text).map(ErrorText.of)
  }
}

extension AgentRecord.Mirror {
  /// - Returns: `nil` without a folder. Invalid values are ignored.
  fileprivate init?(_ values: [String: [String]]) {
    func text(_ key: String) -> String? { values[key]?.last }
    func time(_ key: String) -> Timestamp? {
      text(key).flatMap { Int64($0) }.map { Timestamp(nanoseconds: $0) }
    }
    guard let folder = text("folder") else { return nil }
    self.init(folder: folder)
    feed = text("feed")
    isPaused = text("paused") == "yes"
    owesPass = text("owes-pass") == "yes"
    priority = text("priority").flatMap { ControlCommand.Priority(rawValue: $0) } ?? .normal
    history.failures = max(0, text("failures").flatMap { Int($0) } ?? 0)
    history.lastOutcome = text("outcome").flatMap { RunSchedule.Outcome(rawValue: $0) }
    history.since = time("since")
    history.lastAttempt = time("attempt")
    history.lastSuccess = time("success")
    history.heldUntil = time("held-until")
    history.isHeldByFeed = text("held-by") == "feed"
    history.wasCutShort = text("cut-short") == "yes"
    failure = text("failure").map { PassFault(message: $0, isOfFolder: text("failure-of") == "folder") }
    condition = text("condition").flatMap { MirrorCondition(rawValue: $0) }
    approved = text("approved")
    pausedPaths = values["path", default: []].compactMap { text in
      Base64.decode(Array(text.utf8)).flatMap { try? RelativePath($0) }
    }
    wishes = values["host", default: []].compactMap { text in
      let words = text.split(separator: " ", maxSplits: 1)
      guard words.count == 2, let until = Int64(words[0]) else { return nil }
      return TransferBudget.Wish(host: String(words[1]), until: Timestamp(nanoseconds: until))
    }
  }
}
