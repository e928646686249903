import Glibc
import TarnConfig
import TarnCore
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
    var failures = 0
    var outcome: RunSchedule.Outcome?
    var since: Timestamp?
    var lastAttempt: Timestamp?
    /// As in the history of its schedule.
    var heldUntil: Timestamp?
    var isHeldByFeed = false
    /// A pass was at work, as far as the record knows.
    var wasCutShort = false
    /// Why the last pass did not do its work; for mirrors without a ledger yet.
    var failure: PassFault?
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
        (kept.failures, kept.heldUntil, kept.failure) = (0, nil, nil)
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
      let pairs: [(String, String?)] = [
        ("folder", mirror.folder), ("feed", mirror.feed), ("paused", mirror.isPaused ? "yes" : nil),
        ("priority", mirror.priority == .normal ? nil : mirror.priority.rawValue),
        ("failures", mirror.failures == 0 ? nil : String(mirror.failures)),
        ("outcome", mirror.outcome?.rawValue), ("since", mirror.since.map { String($0.nanoseconds) }),
        ("attempt", mirror.lastAttempt.map { String($0.nanoseconds) }),
        ("held-until", mirror.heldUntil.map { String($0.nanoseconds) }),
        ("held-by", mirror.isHeldByFeed ? "feed" : nil), ("cut-short", mirror.wasCutShort ? "yes" : nil),
        ("failure", mirror.failure?.message),
        ("failure-of", mirror.failure?.isOfFolder == true ? "folder" : nil), ("approved", mirror.approved),
      ]
      let fields = pairs.compactMap { key, value in value.map { "\(key)=\(EscapedLine.escape($0))" } }
      // Their bytes may be none of a text's.
      let paths = mirror.pausedPaths.map { "path=" + Base64.encode($0.bytes) }
      let wishes = mirror.wishes.map { wish in
        "host=" + EscapedLine.escape("\(wish.until.nanoseconds) \(wish.host)")
      }
      return ([EscapedLine.escape(name)] + fields + paths + wishes).joined(separator: "\t")
    }
    return ([Self.header] + lines).joined(separator: "\n") + "\n"
  }

  /// Fields that this Tarn does not know are left out; a text of another kind is none.
  init(_ text: String) {
    let lines = text.unicodeScalars.split(separator: "\n").map { Substring($0) }
    guard lines.first == Self.header[...] else { return }
    for line in lines.dropFirst() {
      let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
      guard let name = fields.first else { continue }
      var values: [String: String] = [:]
      var paths: [RelativePath] = []
      var wishes: [TransferBudget.Wish] = []
      for field in fields.dropFirst() {
        guard let equals = field.firstIndex(of: "=") else { continue }
        if field[..<equals] == "path" {
          let bytes = Base64.decode(Array(field[field.index(after: equals)...].utf8))
          if let bytes, let path = try? RelativePath(bytes) { paths.append(path) }
          continue
        }
        if field[..<equals] == "host" {
          let words = EscapedLine.unescape(field[field.index(after: equals)...].unicodeScalars).split(
            separator: " ", maxSplits: 1)
          if words.count == 2, let until = Int64(words[0]) {
            wishes.append(
              TransferBudget.Wish(host: String(words[1]), until: Timestamp(nanoseconds: until)))
          }
          continue
        }
        values[String(field[..<equals])] = EscapedLine.unescape(
          field[field.index(after: equals)...].unicodeScalars)
      }
      guard let folder = values["folder"] else { continue }
      var mirror = Mirror(folder: folder)
      mirror.feed = values["feed"]
      mirror.isPaused = values["paused"] == "yes"
      mirror.priority = values["priority"].flatMap { ControlCommand.Priority(rawValue: $0) } ?? .normal
      mirror.failures = values["failures"].flatMap { Int($0) }.map { max(0, $0) } ?? 0
      mirror.outcome = values["outcome"].flatMap { RunSchedule.Outcome(rawValue: $0) }
      mirror.since = values["since"].flatMap { Int64($0) }.map { Timestamp(nanoseconds: $0) }
      mirror.lastAttempt = values["attempt"].flatMap { Int64($0) }.map { Timestamp(nanoseconds: $0) }
      mirror.heldUntil = values["held-until"].flatMap { Int64($0) }.map { Timestamp(nanoseconds: $0) }
      mirror.isHeldByFeed = values["held-by"] == "feed"
      mirror.wasCutShort = values["cut-short"] == "yes"
      mirror.failure = values["failure"].map {
        PassFault(message: $0, isOfFolder: values["failure-of"] == "folder")
      }
      mirror.approved = values["approved"]
      mirror.pausedPaths = paths
      mirror.wishes = wishes
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
