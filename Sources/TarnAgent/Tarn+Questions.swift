package import TarnCore
package import TarnEngine
import TarnFolder
import TarnLedger
import TarnRuntime

extension Tarn {
  /// Answers beside a running pass as well.
  package func status(folder: String, state: String?, problemLimit: Int) throws(PassFailure) -> StatusDocument
  {
    let home = try home(folder: folder, state: state)
    let ledger = try readLedger(home)
    defer { ledger.close() }
    return try PassFailure.translating {
      return try StatusQuery(ledger: ledger).document(
        name: folder, folder: home.folder, holder: home.holder(), problemLimit: problemLimit)
    }
  }

  /// - Parameter path: below the folder, or absolute within it.
  package func explain(folder: String, state: String?, path: String) throws(PassFailure) -> Explanation {
    let home = try home(folder: folder, state: state)
    let ledger = try readLedger(home)
    defer { ledger.close() }
    let local = try openFolder(home)
    let relative = try self.path(path, in: home)
    return try ExplainQuery(ledger: ledger, folder: local).explain(relative, mirror: folder)
  }

  /// - Parameter marking: let the next pass fetch again what is damaged.
  package func verify(
    folder: String, state: String?, marking: Bool, observer: any PassObserver, progress: PassProgress,
    stop: StopFlag
  ) throws(PassFailure) -> VerifyReport {
    return try withMirror(folder, state) { mirror in
      let ports = Verification.VerifyPorts(ledger: mirror.ledger, clock: SystemClock())
      return try Verification(
        ports: ports, folder: mirror.folder, observer: observer, progress: progress, stop: stop
      ).run(forgetDamage: marking)
    }
  }

  package func heldPaths(
    folder: String, state: String?
  ) throws(PassFailure) -> (plan: HeldPlan, paths: [RelativePath])? {
    let ledger = try readLedger(home(folder: folder, state: state))
    defer { ledger.close() }
    return try PassFailure.translating {
      guard let plan = try ledger.held() else { return nil }
      return (plan, try ledger.heldPaths(plan: plan.id))
    }
  }

  package func approve(
    folder: String, state: String?, plan: String?, observer: any PassObserver, stop: StopFlag
  ) throws(PassFailure) -> ApprovalReport {
    return try withMirror(folder, state) { mirror in
      try recover(mirror)
      return try Approval(
        ledger: mirror.ledger, folder: mirror.folder, clock: SystemClock(), random: SystemRandom(),
        observer: observer, stop: stop
      ).run(plan: plan)
    }
  }

  /// True for what is a FEED when two arguments are given: it has a scheme, is `-`, or leads to a regular file.
  package func isFeed(_ text: String) -> Bool {
    if text == "-" || FeedText.scheme(of: text) != nil { return true }
    guard text.hasPrefix("/") || text.hasPrefix("./") || text.hasPrefix("../") else { return false }
    return TextFile.isRegular(absolute(text))
  }

  /// Folders that this user's Tarn has made mirrors of, in the order that they were made.
  package func knownFolders() -> [String] {
    registry?.mirrors().map(\.folder) ?? []
  }

  /// The mirror that a directory lies in; nil when it lies in none.
  package func mirrorFolder(containing directory: String) -> String? {
    var path = absolute(directory)
    while true {
      if case .mirror? = try? FolderHome.inspect(folder: path, state: nil) { return path }
      guard path != "/", let slash = path.lastIndex(of: "/") else { return nil }
      path = slash == path.startIndex ? "/" : String(path[..<slash])
    }
  }

  // MARK: Parts

  /// Does something to a mirror with its folder locked. A damaged ledger is refused: only a pass makes a new one.
  func withMirror<Result>(
    _ folder: String, _ state: String?, _ body: (OpenMirror) throws -> Result
  ) throws(PassFailure) -> Result {
    let mirror = try OpenMirror.open(home(folder: folder, state: state), now: now)
    defer { mirror.close() }
    do {
      return try body(mirror)
    } catch {
      throw PassFailure(translating: error).explainingDamage(of: mirror.home)
    }
  }

  /// What a crash left is put right before anything is decided about it.
  func recover(_ mirror: OpenMirror) throws {
    try Recovery(ledger: mirror.ledger, folder: mirror.folder, clock: SystemClock()).run()
  }

  func readLedger(_ home: FolderHome) throws(PassFailure) -> any LedgerPort {
    do {
      return try SQLiteLedger(directory: home.stateDirectory, mode: .readOnly)
    } catch  where error.code == .missing {
      return AbsentLedger()
    } catch {
      throw PassFailure(error).explainingDamage(of: home)
    }
  }

  func openFolder(_ home: FolderHome) throws(PassFailure) -> LocalFolder {
    return try PassFailure.translating {
      return try home.open()
    }
  }

  func path(_ text: String, in home: FolderHome) throws(PassFailure) -> RelativePath {
    var relative = text
    if text.hasPrefix("/") {
      let full = absolute(text)
      guard full.hasPrefix(home.folder + "/") else {
        throw PassFailure(
          .usage, code: "path-outside", "\(Printable.escape(text)) is not in \(Printable.escape(home.folder))"
        )
      }
      relative = String(full.dropFirst(home.folder.count + 1))
    }
    while relative.hasPrefix("./") { relative = String(relative.dropFirst(2)) }
    do {
      return try RelativePath(Array(relative.utf8))
    } catch {
      throw PassFailure(.usage, code: error.rawValue, "'\(Printable.escape(text))': \(error.reason)")
    }
  }
}
