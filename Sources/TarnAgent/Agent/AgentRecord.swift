import Glibc
import TarnConfig
import TarnCore
import TarnRuntime
import TarnSchedule
import TarnTransfer

/// What an agent remembers of its own: pauses, priorities, failures in a row, what servers asked for. What passes did is in the mirrors' ledgers.
///
/// One file, replaced whole and durably by each save. A file that is none of this kind is set aside, and one that cannot be
/// read is as good as none: then nothing is paused, and nothing backs off.
struct AgentRecord: Equatable, Sendable {
  struct Mirror: Equatable, Sendable {
    /// A name that leads to another folder now is another mirror.
    var folder: String
    /// Nil in the record of an older agent.
    var feed: String?
    var isPaused = false
    var priority = ControlCommand.Priority.normal
    /// But for the last success, which the ledger knows.
    var history = RunSchedule.History()
    /// Why the last pass did not do its work; for mirrors without a ledger yet.
    var failure: PassFault?
    /// How the mirror is, as hooks were told.
    var condition: MirrorCondition?
    /// The held plan that was approved while a pass was at work.
    var approved: String?
    /// Transfers that wait for `resume`, in the order of their bytes.
    var pausedPaths: [RelativePath] = []
    /// What hosts asked for, that of the feed among them: the first of them, for a feed may name hosts without end.
    var wishes: [TransferBudget.Wish] = []

    /// What holds for the settings as they are: nil for another mirror's folder; of another feed's server nothing is known.
    func holding(folder: String, feed: String) -> Mirror? {
      guard self.folder.utf8.elementsEqual(folder.utf8) else { return nil }
      var kept = self
      if let known = self.feed, !known.utf8.elementsEqual(feed.utf8) {
        (kept.history.failures, kept.history.heldUntil, kept.failure) = (0, nil, nil)
      }
      return kept
    }
  }

  var mirrors: [String: Mirror] = [:]

  /// What holds for a mirror of the settings, which may have had another name.
  ///
  /// - Parameter names: of all mirrors of the settings.
  func mirror(_ settings: MirrorSettings, among names: [String]) -> Mirror? {
    if let kept = mirrors[settings.name]?.holding(folder: settings.folder, feed: settings.feed) {
      return kept
    }
    let former = mirrors.filter { !names.contains($0.key) }.sorted { $0.key < $1.key }
    return former.lazy.compactMap { $0.value.holding(folder: settings.folder, feed: settings.feed) }.first
  }

  static let header = "tarn-agent/1"
  /// Of one mirror.
  static let mostWishes = 64

  init() {}

  // MARK: - Text

  /// A line per mirror: its name, then `key=value`, parted by tabs.
  var text: String {
    let lines = mirrors.sorted { $0.key < $1.key }.map { name, mirror in
      let history = mirror.history
      let single: [(String, String?)] = [
        ("folder", mirror.folder), ("feed", mirror.feed), ("paused", mirror.isPaused ? "yes" : nil),
        ("priority", mirror.priority == .normal ? nil : mirror.priority.rawValue),
        ("failures", history.failures == 0 ? nil : String(history.failures)),
        ("outcome", history.lastOutcome?.rawValue), ("since", history.since.map { String($0.nanoseconds) }),
        ("attempt", history.lastAttempt.map { String($0.nanoseconds) }),
        ("held-until", history.heldUntil.map { String($0.nanoseconds) }),
        ("held-by", history.isHeldByFeed ? "feed" : nil), ("cut-short", history.wasCutShort ? "yes" : nil),
        ("condition", mirror.condition?.rawValue), ("failure", mirror.failure?.message),
        ("failure-of", mirror.failure?.isOfFolder == true ? "folder" : nil), ("approved", mirror.approved),
      ]
      // The bytes of paths may be none of a text's.
      let pairs =
        single + mirror.pausedPaths.map { ("path", Base64.encode($0.bytes)) }
        + mirror.wishes.map { ("host", "\($0.until.nanoseconds) \($0.host)") }
      let fields = pairs.compactMap { key, value in value.map { "\(key)=\(EscapedLine.escape($0))" } }
      return ([EscapedLine.escape(name)] + fields).joined(separator: "\t")
    }
    return ([Self.header] + lines).joined(separator: "\n") + "\n"
  }

  /// Fields that this Tarn does not know are left out; a text of another kind is none.
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

  /// Gives a file that is no record of this kind another name, so that no save replaces it.
  ///
  /// - Returns: that name; nil when there is nothing to set aside.
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

  /// - Returns: false when it could not be written; the old one is whole then.
  func save(_ directory: String) -> Bool {
    TextFile.replace(Self.path(in: directory), with: text)
  }
}

extension AgentRecord.Mirror {
  /// - Returns: nil without a folder. What is no value of its key counts for nothing.
  fileprivate init?(_ values: [String: [String]]) {
    func text(_ key: String) -> String? { values[key]?.last }
    func time(_ key: String) -> Timestamp? {
      text(key).flatMap { Int64($0) }.map { Timestamp(nanoseconds: $0) }
    }
    guard let folder = text("folder") else { return nil }
    self.init(folder: folder)
    feed = text("feed")
    isPaused = text("paused") == "yes"
    priority = text("priority").flatMap { ControlCommand.Priority(rawValue: $0) } ?? .normal
    history.failures = max(0, text("failures").flatMap { Int($0) } ?? 0)
    history.lastOutcome = text("outcome").flatMap { RunSchedule.Outcome(rawValue: $0) }
    history.since = time("since")
    history.lastAttempt = time("attempt")
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
