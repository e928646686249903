package import TarnConfig
package import TarnCore
import TarnEngine
import TarnFolder
import TarnLedger

/// The options that a mirror made by hand remembers.
extension Tarn {
  /// What a mirror remembers of itself.
  package struct Remembered: Sendable {
    /// The feed; `nil` before the first pass.
    package var feed: String?
    package var folder: String
    /// The directory of the record; `nil` for the record in the folder.
    package var state: String?
    /// The options, without passwords.
    package var options: PassOptions
  }

  package func remembered(folder: String, state: String? = nil) throws(PassFailure) -> Remembered {
    let home = try home(folder: folder, state: state)
    let isInner = home.stateDirectory == home.folder + "/.tarn"
    return try asking(home) { ledger in
      Remembered(
        feed: try ledger.fact(.feed), folder: home.folder, state: isInner ? nil : home.stateDirectory,
        options: PassOptions(encoded: try ledger.fact(.options) ?? "").withoutPasswords)
    }
  }

  /// Drops a plan of deletions that waits for approval.
  ///
  /// - Returns: the plan; `nil` when none waited.
  package func dropHold(folder: String, state: String?) throws(PassFailure) -> HeldPlan? {
    guard try heldPaths(folder: folder, state: state, limit: 0) != nil else { return nil }
    return try withMirror(home(folder: folder, state: state)) {
      try Approval.withdraw(in: $0.ledger, now: now)
    }
  }

  /// The value of `deleteOrder` after a command that deletes once.
  static let command = "command"

  /// Returns whether a mirror of the settings deletes: by these, or because the last command said so.
  func isDeletionOrdered(by settings: MirrorSettings, state: String?) throws(PassFailure) -> Bool {
    if settings.deletes { return true }
    return try asking(home(folder: settings.folder, state: state)) { try $0.fact(.deleteOrder) }
      == Self.command
  }

  /// Drops a plan of deletions that nobody orders any more: neither the settings nor the last command delete, or the settings name
  /// another feed than the list of the plan.
  ///
  /// - Returns: the plan; `nil` when none waited, or it is still ordered.
  package func dropUnorderedHold(of settings: MirrorSettings, state: String? = nil) throws(PassFailure)
    -> HeldPlan?
  {
    let state = state ?? settings.state
    do throws(PassFailure) {
      guard try heldPaths(folder: settings.folder, state: state, limit: 0) != nil else { return nil }
    } catch {
      // Where there is no mirror, nothing is held. Who asks for it is told so.
      guard error.kind == .folderUnusable else { throw error }
      return nil
    }
    let known = try remembered(folder: settings.folder, state: state).feed
    let follows = known.map { isFeed($0, of: settings) } ?? true
    let isOrdered = try isDeletionOrdered(by: settings, state: state)
    guard !isOrdered || !follows else { return nil }
    return try dropHold(folder: settings.folder, state: state)
  }

  /// Removes remembered options, so that later passes go without them. A plan of deletions that waits is
  /// dropped with `delete`.
  ///
  /// - Parameter names: the options; `nil` for all.
  /// - Returns: the options that were remembered, without passwords, and the plan that was dropped.
  package func forgetOptions(
    _ names: [PassOptions.Name]?, folder: String, state: String? = nil
  ) throws(PassFailure) -> (options: PassOptions, plan: HeldPlan?) {
    try withMirror(home(folder: folder, state: state)) { mirror in
      var options = PassOptions(encoded: try mirror.ledger.fact(.options) ?? "")
      let gone = PassOptions(values: options.values.filter { names?.contains($0.key) ?? true })
      for name in gone.values.keys { options.values[name] = nil }
      if !gone.values.isEmpty { try mirror.ledger.apply([.fact(.options, options.encoded)]) }
      let plan = gone.values[.delete] == nil ? nil : try Approval.withdraw(in: mirror.ledger, now: now)
      return (gone.withoutPasswords, plan)
    }
  }
}

extension PassOptions {
  /// The options for display: a proxy's URL may hold a password.
  package var withoutPasswords: PassOptions {
    PassOptions(
      values: values.reduce(into: [:]) { shown, option in
        shown[option.key] = option.value.map {
          option.key == .proxy ? Redaction.value($0) : Redaction.text($0)
        }
      })
  }
}
