import Glibc
import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

extension Doctor {
  /// Checks the folder of one mirror, its record and its file system.
  func folder(_ patient: Patient) -> [Finding] {
    var findings = [place(patient)]
    guard findings[0].level != .problem, TextFile.isDirectory(patient.folder) else { return findings }
    findings += permissions(patient)
    findings += fileSystem(patient)
    findings.append(space(patient))
    // The folder of a new mirror has no record.
    if (try? session.tarn.recordDirectory(folder: patient.folder, state: patient.state)) != nil {
      findings += ledger(patient)
    }
    return findings
  }

  /// Checks the folder of one mirror, and its last pass.
  func mirror(_ patient: Patient, _ documents: [StatusDocument]) -> [Finding] {
    Self.joined(folder(patient), state(patient, documents))
  }

  /// A mirror that failed each time is told once: what it says of the folder is only that it was never synced.
  static func joined(_ folder: [Finding], _ state: [Finding]) -> [Finding] {
    folder.filter { state.isEmpty || $0.check != .folder || $0.level != .warning } + state
  }

  /// Tells what is wrong with the last pass of a mirror.
  ///
  /// - Parameter documents: the statuses from the agent.
  func state(_ patient: Patient, _ documents: [StatusDocument]) -> [Finding] {
    let tarn = session.tarn
    let told = documents.first { $0.folder.hasPrefix("/") && tarn.isSamePlace($0.folder, patient.folder) }
    guard
      let document = told
        ?? (try? tarn.status(folder: patient.folder, state: patient.state, problemLimit: 1))
    else { return [] }
    let check = MirrorCheck(document, maxAge: nil, now: session.now)
    guard !check.isGood else { return [] }
    let isHarmless = [.held, .interrupted].contains(check.verdict)
    return [
      Finding(
        isHarmless ? .warning : .problem, .state, of: patient.name, check.summary,
        mend: command("status", patient))
    ]
  }

  /// Returns a command about a mirror, for these settings.
  private func command(_ verb: String, _ patient: Patient) -> String {
    session.sources.paths.command(
      "\(verb) \(ShellWord.quote(patient.settings?.name ?? patient.folder))")
  }

  private func place(_ patient: Patient) -> Finding {
    let tarn = session.tarn
    do throws(PassFailure) {
      _ = try tarn.recordDirectory(folder: patient.folder, state: patient.state)
      return Finding(.ok, .folder, of: patient.name, Printable.escape(patient.folder))
    } catch {
      if error.kind == .permission {
        return Finding(
          .problem, .permissions, of: patient.name, error.message,
          mend: error.hint ?? FolderAccess.lookFirst(patient.folder))
      }
      let isNew = ["no-folder", "not-a-mirror"].contains(error.code) && !tarn.isLostOrEmptied(patient.folder)
      guard isNew else {
        return Finding(
          .problem, .folder, of: patient.name, error.message, mend: error.hint ?? command("status", patient))
      }
      if let reason = FolderAccess(isSystem: isSystem).reasonNotToMake(patient.folder) {
        return Finding(
          .problem, .permissions, of: patient.name, reason.message, mend: reason.mend)
      }
      if patient.settings?.isDryRun == true {
        return Finding(.ok, .folder, of: patient.name, "it was never synced: its passes only plan (dry-run)")
      }
      if let refusal = patient.settings.flatMap(tarn.loss) {
        return Finding(
          .problem, .folder, of: patient.name, refusal.message, mend: refusal.hint ?? command("sync", patient)
        )
      }
      return Finding(
        .warning, .folder, of: patient.name, "it was never synced", mend: command("sync", patient))
    }
  }

  private func permissions(_ patient: Patient) -> [Finding] {
    // The system's agent does not look after a mirror that a user made by hand, and root may write anywhere.
    guard !isSystem || patient.settings != nil else { return [] }
    let agents = FolderAccess(isSystem: isSystem)
    let state = (try? session.tarn.recordDirectory(folder: patient.folder, state: patient.state)) ?? ""
    let paths = [patient.folder, state].filter { !$0.isEmpty && TextFile.status($0) != nil }
    if let reason = agents.reasonNotToWrite(paths) {
      return [Finding(.warning, .permissions, of: patient.name, reason.message, mend: reason.mend)]
    }
    for path in paths where agents.agentUser == nil {
      // A read-only file system is told by itself, and no chmod mends it.
      guard access(path, R_OK | W_OK | X_OK) != 0, errno != EROFS else { continue }
      return [
        Finding(
          .problem, .permissions, of: patient.name,
          "this user may not write \(Printable.escape(path))\(FolderAccess.owner(path))",
          mend: FolderAccess.lookFirst(path))
      ]
    }
    return []
  }

  // MARK: File system

  /// The file systems where inotify, SQLite's log or names differ from a local disk, by the names of proc(5).
  private static let odd: [String: String] = [
    "nfs": elsewhere, "nfs4": elsewhere, "cifs": elsewhere, "smb3": elsewhere, "9p": elsewhere,
    "vfat": names, "exfat": names, "msdos": names,
  ]
  private static let elsewhere =
    "it does not report what other machines change, and the record is not safe on it"
  private static let names =
    "names that differ only in case are one file there, and some names cannot be stored"
  private static let behind = "what a power cut leaves there depends on the program behind it"

  private func fileSystem(_ patient: Patient) -> [Finding] {
    if MountedFileSystem.isReadOnly(patient.folder) {
      return [
        Finding(
          .problem, .fileSystem, of: patient.name, "it is mounted read-only",
          mend: "findmnt -T \(ShellWord.quote(patient.folder)); then: sudo mount -o remount,rw MOUNTPOINT")
      ]
    }
    let table = TextFile.read("/proc/self/mountinfo", limit: 4 << 20) ?? ""
    guard let kind = Self.fileSystem(of: session.tarn.resolved(patient.folder), table) else { return [] }
    guard let why = Self.odd[kind] ?? (kind.hasPrefix("fuse") ? Self.behind : nil) else { return [] }
    let isOfNames = why == Self.names
    guard !isOfNames || patient.settings?.options.isOn(.portableNames) != true else { return [] }
    return [
      Finding(
        .warning, .fileSystem, of: patient.name, "\(kind): \(why)",
        mend: isOfNames
          ? "write portable-names = true below \(TOMLText.mirror(patient.name)); then: tarn reload"
          : "choose a folder on a disk of this machine")
    ]
  }

  /// - Parameters:
  ///   - path: a path without links.
  ///   - table: the mountinfo of proc(5); of several mounts on one place the last one counts.
  /// - Returns: `nil` when none is found.
  static func fileSystem(of path: String, _ table: String) -> String? {
    var found: (place: Int, kind: String)?
    for line in table.split(separator: "\n") {
      let words = line.split(separator: " ")
      guard let dash = words.firstIndex(of: "-"), dash + 1 < words.count, words.count > 4 else { continue }
      let place = words[4].replacing("\\040", with: " ")
      guard path == place || path.hasPrefix(place == "/" ? "/" : place + "/") else { continue }
      if place.count >= found?.place ?? 0 { found = (place.count, String(words[dash + 1])) }
    }
    return found?.kind
  }

  /// The bytes without which no record can be made.
  private static let leastFree: UInt64 = 1 << 20

  private func space(_ patient: Patient) -> Finding {
    var status = statvfs()
    guard statvfs(patient.folder, &status) == 0 else {
      return Finding(.warning, .space, of: patient.name, "the free space is unknown")
    }
    let free = UInt64(status.f_bavail) * UInt64(status.f_frsize)
    let document = try? session.tarn.status(
      folder: patient.folder, state: patient.state, problemLimit: PassReport.mostProblems)
    let isDone =
      document.map { document in
        let open = document.entries.pending + document.entries.failed
        return document.lastSuccess != nil && open == 0 && (document.bytes.pending ?? 0) == 0
      } ?? false
    if status.f_files > 0, status.f_favail == 0 {
      return Finding(
        isDone ? .warning : .problem, .space, of: patient.name, "no inode is free",
        mend: "df -i \(ShellWord.quote(patient.folder))")
    }
    // The sizes of files that failed are often unknown, so there is no sum.
    if document?.problems.contains(where: { ProblemAdvice.isLackOfSpace($0.code) }) == true {
      return Finding(
        .problem, .space, of: patient.name,
        "files did not fit in the last pass; \(Units.show(free)) are free now: make room, then sync it again",
        mend: "df -h \(ShellWord.quote(patient.folder))")
    }
    let remembered = try? session.tarn.remembered(folder: patient.folder, state: patient.state).options
    let reserve =
      ((try? (patient.settings?.options ?? remembered)?.policy())?.reserve ?? PassPolicy().reserve)
      .bytes(ofTotal: UInt64(status.f_blocks) * UInt64(status.f_frsize))
    let room = Self.room(
      free: free, pending: isDone ? nil : document?.bytes.pending ?? 0, reserve: reserve)
    return Finding(
      room.level, .space, of: patient.name, room.message,
      mend: room.level == .ok ? nil : "df -h \(ShellWord.quote(patient.folder))")
  }

  /// Judges the free space.
  ///
  /// - Parameter pending: the bytes that are still to be downloaded, as far as they are known; `nil` when nothing is.
  static func room(
    free: UInt64, pending: UInt64?, reserve: UInt64
  ) -> (level: Finding.Level, message: String) {
    guard let pending else {
      guard free < leastFree else { return (.ok, "\(Units.show(free)) free") }
      return (.warning, "only \(Units.show(free)) are free: a pass cannot record what it does")
    }
    let (sum, isOver) = pending.addingReportingOverflow(reserve)
    let wanted = isOver ? UInt64.max : sum
    guard free < wanted || free < leastFree else {
      return (.ok, "\(Units.show(free)) free" + (pending > 0 ? ", \(Units.show(pending)) to come" : ""))
    }
    var parts = ["\(Units.show(free)) are free"]
    if pending > 0 { parts.append("\(Units.show(pending)) are still to be downloaded") }
    if reserve > 0 { parts.append("\(Units.show(reserve)) stay free (reserve)") }
    let list =
      parts.count > 2 ? "\(parts[0]), \(parts[1]), and \(parts[2])" : parts.joined(separator: ", and ")
    let missing = free < wanted ? ": \(Units.show(wanted - free)) are missing" : ""
    return (free < pending || free < leastFree ? .problem : .warning, list + missing)
  }

  private func ledger(_ patient: Patient) -> [Finding] {
    do throws(PassFailure) {
      try session.tarn.checkRecord(folder: patient.folder, state: patient.state)
      return [Finding(.ok, .ledger, of: patient.name, "its record is whole")]
    } catch {
      return [
        Finding(
          .problem, .ledger, of: patient.name, "\(error.message); a pass makes a new one of what is there",
          mend: command("sync", patient))
      ]
    }
  }
}
