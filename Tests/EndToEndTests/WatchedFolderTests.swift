import Foundation
import Testing

/// What users do to the folder under a running agent, and what becomes of it.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class WatchedFolderTests: WatchedHouse {
  private static let text = "wanted by the feed\n"

  init() throws {
    try super.init(
      files: ["f1": Self.text, "f2": "two\n", "sub/f3": "three\n", "sub/deep/f4": "four\n"])
  }

  // MARK: - Changes

  enum Change: CaseIterable {
    case delete, edit, append, truncate, replace, rename, renameOver, chmod, link, directory, fifo

    /// What of the user's has to be in the trash.
    var usersBytes: [String] {
      switch self {
      case .edit, .replace: ["mine\n"]
      case .append: [WatchedFolderTests.text + "mine\n"]
      case .truncate: ["wanted"]
      case .renameOver: ["two\n"]
      case .directory: ["inner\n", "deeper\n"]
      case .delete, .rename, .chmod, .link, .fifo: []
      }
    }

    /// What has to be fetched: no content that is still there under another name.
    var downloads: [String] {
      switch self {
      case .rename, .chmod: []
      // Of two files that are renamed over each other the one that makes way is copied before.
      default: ["/f1"]
      }
    }
  }

  private func make(_ change: Change) throws {
    let file = place.path + "/files/f1"
    switch change {
    case .delete: try place.remove("files/f1")
    case .edit:
      let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
      try handle.truncate(atOffset: 0)
      try handle.write(contentsOf: Data("mine\n".utf8))
      try handle.close()
    case .append:
      let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
      try handle.seekToEnd()
      try handle.write(contentsOf: Data("mine\n".utf8))
      try handle.close()
    case .truncate: #expect(truncate(file, 6) == 0)
    case .replace:
      try place.write("mine\n", to: "files/f1.new")
      #expect(rename(file + ".new", file) == 0)
    case .rename: #expect(rename(file, place.path + "/files/sub/moved") == 0)
    case .renameOver: #expect(rename(place.path + "/files/f2", file) == 0)
    case .chmod: #expect(chmod(file, 0o600) == 0)
    case .link:
      try place.remove("files/f1")
      #expect(symlink("sub/f3", file) == 0)
    case .directory:
      try place.remove("files/f1")
      try place.write("inner\n", to: "files/f1/inner")
      try place.write("deeper\n", to: "files/f1/more/deeper")
    case .fifo:
      try place.remove("files/f1")
      #expect(mkfifo(file, 0o600) == 0)
    }
  }

  /// Files are in place before the repair lets go of the folder.
  private func waitUntilNothingIsLeftToDo(after change: String) throws {
    try waitUntil("nothing is left to do after \(change)") {
      let entries = try mirror()["entries"] as? [String: Int] ?? [:]
      return try mirror()["state"] as? String == "idle" && entries["pending"] == 0 && entries["failed"] == 0
    }
  }

  /// A repair that looks once more has the folder for a moment.
  private func verifyOnceItIsFree() throws -> Outcome {
    var verified = try tarn("verify", "files")
    try waitUntil("no repair has the folder") {
      guard verified.status == 75 else { return true }
      verified = try tarn("verify", "files")
      return verified.status != 75
    }
    return verified
  }

  @Test(arguments: Change.allCases) func whatChangesComesBack(_ change: Change) throws {
    try startInSync()
    let bodies = try bodies {
      try make(change)
      try waitUntil("f1 is as the feed wants it after \(change)") {
        stands("f1", Self.text, mode: 0o644) && stands("f2", "two\n", mode: 0o644)
      }
      try waitUntilNothingIsLeftToDo(after: "\(change)")
    }
    #expect(bodies.sorted() == change.downloads, "by a repair, so the feed is not asked")
    let trash = place.contents(below: "files/.tarn/trash")
    for text in change.usersBytes { #expect(trash.contains(text), "\(text) is not in the trash: \(trash)") }
    if change == .rename { #expect(place.text("files/sub/moved") == Self.text) }
    if change == .link {
      let trashed = try tarn("trash", "list", "files", "--json")
      #expect(trashed.output.contains("f1"), "\(trashed)")
    }
    let explained = try tarn("explain", "files", "f1")
    #expect(explained.status == 0 && explained.output.contains("f1"), "\(explained)")
    let verified = try verifyOnceItIsFree()
    #expect(verified.status == 0, "\(verified)")
    #expect(try tarn("plan", "--exit-code", "files").status == 0)
  }

  /// The directory moves out of the folder with all in it, and to another name within.
  @Test func aDirectoryThatWasMovedComesBack() throws {
    try startInSync()
    let bodies = try bodies {
      #expect(rename(place.path + "/files/sub", place.path + "/files/moved") == 0)
      try waitUntil("its files are back") {
        stands("sub/f3", "three\n", mode: 0o644) && stands("sub/deep/f4", "four\n", mode: 0o644)
      }
    }
    #expect(bodies.isEmpty, "both files are there, under another name: \(bodies)")
    #expect(place.text("files/moved/deep/f4") == "four\n")
    // The new directories are watched as well.
    try waitUntilAllNewsAreTaken(by: "sub/deep/f4")
    #expect(rename(place.path + "/files/sub", place.path + "/elsewhere") == 0)
    try waitUntil("its files are back again") {
      stands("sub/f3", "three\n", mode: 0o644) && stands("sub/deep/f4", "four\n", mode: 0o644)
    }
    #expect(place.text("elsewhere/deep/f4") == "four\n")
    try waitUntilNothingIsLeftToDo(after: "the second move")
    let verified = try verifyOnceItIsFree()
    #expect(verified.status == 0, "\(verified)")
  }

  /// What the first pass writes is its own; so is what a repair writes.
  @Test func ownWritesCauseNoRepair() throws {
    agent = try begin("agent", "-v")
    try waitUntil("it answers") { agent?.errorsSoFar.contains("answers at") == true }
    let bodies = try bodies {
      #expect(try tarn("sync", "files").status == 0)
      try waitForMode("watching")
      try waitUntilAllNewsAreTaken(by: "f2")
      try waitUntilAllNewsAreTaken(by: "sub/f3")
    }
    #expect(bodies.sorted() == ["/SHA256SUMS", "/f1", "/f2", "/f2", "/sub/deep/f4", "/sub/f3", "/sub/f3"])
    func repairs() -> Int {
      (agent?.errorsSoFar ?? "").split(separator: "\n").count { $0.contains("local changes:") }
    }
    try waitUntil("both are in the log") { repairs() >= 2 }
    #expect(repairs() == 2)
    #expect(agent?.errorsSoFar.contains("a pass follows") == false)
  }

  // MARK: - Policies

  @Test(arguments: ["keep", "report"]) func theUsersWishIsKept(_ policy: String) throws {
    try settings((place.text("tarn.toml") ?? "") + "every = \"1h\"\nlocal-changes = \"\(policy)\"\n")
    try startInSync()
    let bodies = try bodies {
      try place.write("mine\n", to: "files/f1")
      try place.remove("files/f2")
      if policy == "report" {
        try waitUntil("status counts both") {
          (try mirror()["entries"] as? [String: Int])?["conflict"] == 2
        }
      }
      #expect(try tarn("sync", "files").status == (policy == "keep" ? 0 : 3))
      // The pass may have begun before the watcher told of both.
      try waitUntil("status counts both") {
        (try mirror()["entries"] as? [String: Int])?[policy == "keep" ? "kept" : "conflict"] == 2
      }
    }
    #expect(Set(bodies).isSubset(of: ["/SHA256SUMS"]))
    #expect(place.text("files/f1") == "mine\n" && !place.exists("files/f2"))
    #expect(place.contents(below: "files/.tarn/trash").isEmpty)
    for name in ["f1", "f2"] {
      let explained = try tarn("explain", "files", name)
      let reason = policy == "keep" ? "--local-changes keep leaves it so" : "by policy (report)"
      #expect(explained.output.contains(reason), "\(explained)")
    }
  }
}
