import Glibc
import TarnCore
import TarnRuntime

/// Tells whether the user who keeps a mirror current can make its folder and write there, by owner, group and
/// mode. Access lists may say otherwise.
struct FolderAccess {
  /// The user of an agent.
  struct User {
    let name: String
    let id: uid_t
    let group: gid_t
  }

  /// The user who runs the system's agent, when root asks and the user exists; otherwise `nil`, and this user
  /// is meant.
  let agentUser: User?

  init(agentUser: User?) { self.agentUser = agentUser }

  init(isSystem: Bool) {
    guard isSystem, geteuid() == 0, let entry = getpwnam("tarn") else {
      self.init(agentUser: nil)
      return
    }
    self.init(agentUser: User(name: "tarn", id: entry.pointee.pw_uid, group: entry.pointee.pw_gid))
  }

  /// Returns why a folder that is absent cannot be made, and the command that makes it; `nil` when it can.
  func reasonNotToMake(_ folder: String) -> (message: String, mend: String)? {
    var above = folder
    while !above.isEmpty, TextFile.status(above) == nil {
      above = above.lastIndex(of: "/").map { String(above[..<$0]) } ?? ""
    }
    let directory = above.isEmpty ? "/" : above
    guard directory != folder else { return nil }
    guard TextFile.isDirectory(directory) else {
      return ("\(Printable.escape(directory)) is no directory", "ls -ld \(ShellWord.quote(directory))")
    }
    guard let user = agentUser else {
      guard access(directory, W_OK | X_OK) != 0 else { return nil }
      return (
        "this user may not make it in \(Printable.escape(directory))",
        "sudo install -d -o \"$USER\" \(ShellWord.quote(folder))"
      )
    }
    guard !Self.mayWrite(directory, user) else { return nil }
    return (
      "the agent's user \(user.name) may not make it in \(Printable.escape(directory))",
      "sudo install -d -o \(user.name) -g \(user.name) \(ShellWord.quote(folder))"
    )
  }

  /// True for a directory that is there and where this user may not write.
  static func isClosed(_ folder: String) -> Bool {
    TextFile.isDirectory(folder) && access(folder, W_OK | X_OK) != 0 && errno == EACCES
  }

  /// Returns why the agent's user may not write to one of the paths that are there, and what helps; `nil` when
  /// it may.
  func reasonNotToWrite(_ paths: [String]) -> (message: String, mend: String)? {
    guard let user = agentUser,
      let path = paths.first(where: { TextFile.status($0) != nil && !Self.mayWrite($0, user) })
    else { return nil }
    return (
      "by its mode the agent's user \(user.name) may not write \(Printable.escape(path))\(Self.owner(path))",
      TextFile.status(path)?.st_uid == 0
        ? "sudo chown -R \(user.name): \(ShellWord.quote(path))" : Self.lookFirst(path)
    )
  }

  /// Returns `, which belongs to ann`; empty when the path cannot be looked at.
  static func owner(_ path: String) -> String {
    guard let id = TextFile.status(path)?.st_uid else { return "" }
    return ", which belongs to " + (getpwuid(id).map { String(cString: $0.pointee.pw_name) } ?? "user \(id)")
  }

  /// What to do where a change of the owner might take a directory from somebody.
  static func lookFirst(_ path: String) -> String {
    "ls -ld \(ShellWord.quote(path)); then chown or chmod it, or choose another folder"
  }

  static func mayWrite(_ path: String, _ user: User) -> Bool {
    guard let status = TextFile.status(path) else { return false }
    let mode = status.st_mode
    if user.id == 0 { return true }
    if status.st_uid == user.id { return mode & 0o300 == 0o300 }
    if status.st_gid == user.group, mode & 0o030 == 0o030 { return true }
    return mode & 0o003 == 0o003
  }
}
