import TarnCore
import TarnEngine

/// The condition of one mirror for monitoring, by its state and the age of its last success.
struct MirrorCheck {
  /// The verdicts, the worst first.
  enum Verdict: String, CaseIterable {
    /// The last success is too old, or there was none.
    case late
    /// The last success lies in the future, so its age is unknown.
    case clock
    /// The last pass failed, or left files undone.
    case failing
    /// Deletions wait for an approval.
    case held
    /// The last pass was ended early, or the mirror is paused, and files are missing.
    case interrupted
    case good
  }

  let document: StatusDocument
  let verdict: Verdict
  /// The seconds since the last success; `nil` when there was none, or it lies in the future.
  let age: Int64?
  /// The name, with the folder where others have that name too.
  let name: String
  private let maxAge: Int64?
  private let now: Timestamp

  /// The seconds by which the clocks of two machines may differ.
  private static let tolerance: Int64 = 60

  /// - Parameters:
  ///   - shared: the names that several mirrors have.
  ///   - maxAge: the seconds since the last success, at most; `nil` judges the state alone.
  init(_ document: StatusDocument, among shared: Set<String> = [], maxAge: Int64?, now: Timestamp) {
    self.document = document
    name = Printable.escape(document.shownName(among: shared))
    self.maxAge = maxAge
    self.now = now
    let success = document.lastSuccess.flatMap { Timestamp(rfc3339: $0) }
    let passed = success.map { now.seconds - $0.seconds }
    age = passed.flatMap { $0 < -Self.tolerance ? nil : max(0, $0) }
    let isLate = maxAge.map { most in passed.map { $0 > most } ?? true } ?? false
    let isAhead = passed != nil && age == nil
    verdict = isLate ? .late : isAhead ? .clock : Self.state(of: document)
  }

  /// Returns the verdict of the state alone.
  private static func state(of document: StatusDocument) -> Verdict {
    if document.state == "failing" || document.lastFailure != nil { return .failing }
    if document.held != nil || document.state == "held" { return .held }
    // A pause hides neither what failed before it nor what it left undone.
    if document.state == "paused", document.moreProblems > 0 || !document.problems.isEmpty { return .failing }
    if ["interrupted", "paused"].contains(document.state), document.missing > 0 { return .interrupted }
    // While the next pass is at work, the one before it still counts.
    let settled = ["in-sync", "held", "planned", "stopped"]
    if document.process != nil, let last = document.lastRun, !settled.contains(last.code) { return .failing }
    return .good
  }

  var isGood: Bool { verdict == .good }

  /// The line of the check: `held: iso (12 deletions wait for approval, last success 2 hours ago)`.
  var line: String { "\(verdict.rawValue): \(name)\(detail)" }

  /// The verdict without the name: `failing (the feed answers with HTTP 404, last success 2 hours ago)`.
  var summary: String { "\(verdict.rawValue)\(detail)" }

  private var detail: String {
    let success = "last success \(StatusText.age(document.lastSuccess, now: now))"
    switch verdict {
    case .late:
      let span = Durations.span(maxAge ?? 0)
      let hint = document.hint.map { "; \(Message.safe($0))" } ?? ""
      if document.lastSuccess == nil, let failure = document.lastFailure {
        return ": \(Message.safe(failure))\(hint)"
      }
      if document.feedBefore != nil {
        return
          " (its feed was changed, and the new one was not read yet); expected within \(span)"
      }
      let state =
        document.state == "idle" && document.dryRun != true ? "" : "\(StatusText.word(document).text), "
      return " (\(state)\(success)); expected within \(span)"
    case .clock:
      return
        " (last success at \(Printable.escape(document.lastSuccess ?? "")), in the future: is the clock right?)"
    case .failing: return " (\(failure), \(success))"
    case .held:
      let deletions = document.held.map { Numbers.count($0.deletions, "deletion") } ?? "deletions"
      let wait = document.held?.deletions == 1 ? "waits" : "wait"
      let missing = document.missing > 0 ? "\(Numbers.count(document.missing, "file")) missing, " : ""
      return " (\(deletions) \(wait) for approval, \(missing)\(success))"
    case .interrupted:
      let reason = document.state == "paused" ? "the mirror is paused" : "the last pass was ended"
      return " (\(Numbers.count(document.missing, "file")) missing, because \(reason); \(success))"
    case .good: return " (\(success))"
    }
  }

  /// The reason of a failure, in a few words.
  private var failure: String {
    if let failure = document.lastFailure { return Message.safe(failure) }
    guard let first = document.problems.first else {
      let more = document.moreProblems
      return more > 0 ? Numbers.count(more, "problem") : "the last pass was not in sync"
    }
    let more = document.problems.count - 1 + document.moreProblems
    return "\(Message.safe(first.path)): \(Message.safe(first.message)) [\(first.code)]"
      + (more > 0 ? ", and \(Numbers.count(more, "more problem"))" : "")
  }
}

/// The check of several mirrors.
struct StatusCheck {
  let mirrors: [MirrorCheck]
  /// The number of mirrors that are not judged because their passes only plan.
  let leftOut: Int
  /// The number of mirrors that are not judged because their settings no longer name them.
  let unnamed: Int
  let maxAge: Int64
  /// The reasons why mirrors could not be examined, one each.
  var failures: [PassFailure] = []
  /// The reason why the settings were refused; they may name more mirrors.
  var settingsFailure: PassFailure?
  private let now: Timestamp

  init(
    _ documents: [StatusDocument], leftOut: Int = 0, unnamed: Int = 0, maxAge: Int64, now: Timestamp
  ) {
    let shared = documents.sharedNames
    mirrors = documents.map { MirrorCheck($0, among: shared, maxAge: maxAge, now: now) }
    (self.leftOut, self.unnamed) = (leftOut, unnamed)
    self.maxAge = maxAge
    self.now = now
  }

  var allFailures: [PassFailure] { [settingsFailure].compactMap { $0 } + failures }

  var isGood: Bool { allFailures.isEmpty && mirrors.allSatisfy(\.isGood) && !isNothingKnown }

  /// The number of mirrors that are not good: `2 not good of 3 mirrors`. Errors belong to no mirror: `1 not good of 1 mirror, 1 error`.
  var count: String {
    let wrong = mirrors.count { !$0.isGood }
    let counts = [
      mirrors.isEmpty ? nil : "\(wrong) not good of \(Numbers.count(mirrors.count, "mirror"))",
      failures.isEmpty ? nil : Numbers.count(failures.count, "error"),
    ]
    return counts.compactMap(\.self).joined(separator: ", ")
      + (settingsFailure == nil ? "" : ", and the settings have errors")
  }

  private var isNothingKnown: Bool { mirrors.isEmpty && others.isEmpty }

  /// One line when all are good; otherwise one line for each that is not.
  var lines: [String] {
    let unknown = allFailures.map(Self.line)
    let wrong = mirrors.filter { !$0.isGood }.map(\.line)
    if !unknown.isEmpty || !wrong.isEmpty { return unknown + wrong }
    return [isNothingKnown ? "unknown: no mirror is known" : good]
  }

  static func line(of failure: PassFailure) -> String {
    let failure = failure.withSettings
    return "unknown: \(Message.safe(failure.message))" + (failure.hint.map { "; \(Message.safe($0))" } ?? "")
  }

  /// The mirrors that are not judged, with the reason.
  private var others: [String] {
    [
      leftOut > 0 ? "\(Numbers.count(leftOut, "mirror")) left out, where passes only plan (dry-run)" : nil,
      unnamed > 0 ? "\(Numbers.count(unnamed, "mirror")) left out, which the settings no longer name" : nil,
    ].compactMap { $0 }
  }

  /// The line when all are good: `in sync within 24 hours: 3 mirrors, last success 2 hours ago`.
  private var good: String {
    guard !mirrors.isEmpty else { return "nothing to check: \(others.joined(separator: "; "))" }
    let oldest = mirrors.compactMap { $0.document.lastSuccess.flatMap { Timestamp(rfc3339: $0) } }.min()
    let when = oldest.map { Durations.ago($0, now: now) } ?? "never"
    let line =
      "in sync within \(Durations.span(maxAge)): \(Numbers.count(mirrors.count, "mirror")), last success \(when)"
    return ([line] + others).joined(separator: "; ")
  }
}

extension [StatusDocument] {
  /// The names of several folders: that of one of the user's settings, and that of one of the system's agent.
  var sharedNames: Set<String> {
    let folders = Dictionary(grouping: self, by: \.name).mapValues { Set($0.map(\.folder)) }
    return Set(folders.filter { $0.value.count > 1 }.keys)
  }
}

extension StatusDocument {
  /// The name; with the folder, where that is told, if others have that name too.
  func shownName(among shared: Set<String>) -> String {
    shared.contains(name) && folder.hasPrefix("/") ? "\(name) in \(folder)" : name
  }

  /// The entries that are neither as in the feed nor kept as the user changed them.
  var missing: Int { max(0, entries.wanted - entries.current - entries.kept) }
}
