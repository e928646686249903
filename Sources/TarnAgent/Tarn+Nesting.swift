import Glibc
import TarnConfig
package import TarnCore
import TarnEngine
import TarnFolder

extension Tarn {
  /// Refuses the address of a feed where a mirror is meant. As a path it would be a folder below this one.
  package func refuseFeed(_ word: String) throws(PassFailure) {
    guard FeedText.scheme(of: word) != nil, !isThere(word) else { return }
    let shown = ShellWord.quote(Redaction.value(word))
    let mirrors = knownMirrors(ofFeed: word).map(ShellWord.quote)
    throw PassFailure(
      .usage, code: "usage", "\(shown) is a feed, not a mirror",
      hint: mirrors.isEmpty
        ? "'tarn status' lists the mirrors; to make one: tarn sync \(shown) FOLDER"
        : "\(mirrors.count == 1 ? "its mirror is" : "its mirrors are") \(mirrors.joined(separator: ", "))")
  }

  /// Returns the first mirrors that follow a feed: those of the settings by their names, also before their first
  /// pass, then this user's others by their folders.
  private func knownMirrors(ofFeed word: String) -> [String] {
    guard let feed = try? feedText(word) else { return [] }
    let named = configuredFolders().filter {
      (try? feedText($0.feed))?.utf8.elementsEqual(feed.utf8) == true
    }
    let folders = knownFolders().lazy.filter { folder in
      !named.contains { isSamePlace($0.folder, folder) }
        && (try? remembered(folder: folder))?.feed?.utf8.elementsEqual(feed.utf8) == true
    }
    return Array((named.map(\.name) + folders.prefix(3)).prefix(3))
  }
}

/// Refuses nested mirrors: each would take the other's files for foreign ones, or delete them.
extension Tarn {
  /// The mirror that contains a path; `nil` for a mirror's own folder. Links are followed as well.
  package func mirrorFolder(around path: String) -> String? {
    let path = absolute(path)
    let places = [path] + [resolved(path)].filter { !$0.utf8.elementsEqual(path.utf8) }
    return places.lazy.compactMap { place in
      place == "/" ? nil : mirrorFolder(containing: absolute(place + "/.."))
    }.first
  }

  /// True when the folder is no mirror and never was one.
  package func isNoMirror(_ folder: String) -> Bool {
    let path = absolute(folder)
    return [.missing, .empty, .foreign, .notDirectory].contains(look(path)) && !wasMirror(path)
  }

  /// The folder around a path that was a mirror of this user and was moved or deleted; `nil` when there was
  /// none.
  private func lostFolder(around path: String) -> String? {
    let places = [path, resolved(path)]
    return registry?.mirrors().map(\.folder).first { folder in
      [folder, resolved(folder)].contains { folder in places.contains { isBelow(folder, $0) } }
    }
  }

  /// Refuses a folder that is no mirror but a part of one, or of one that is gone.
  func refuseInside(_ path: String) throws(PassFailure) {
    guard let outer = mirrorFolder(around: path) else {
      guard let lost = lostFolder(around: path) else { return try refuseOthersMirror(around: path) }
      throw PassFailure(
        .folderUnusable, code: "no-folder",
        "\(Printable.escape(path)) is no mirror; \(Printable.escape(lost)) was one, and its folder was moved or deleted",
        hint: self.lost(lost)?.hint)
    }
    throw PassFailure(
      .folderUnusable, code: "not-a-mirror",
      "\(Printable.escape(path)) is no mirror, but lies in the mirror \(Printable.escape(outer))",
      hint: "name that one: \(ShellWord.quote(outer))")
  }

  /// Refuses a path in a mirror that this user may not look into.
  package func refuseOthersMirror(around path: String) throws(PassFailure) {
    let path = absolute(path)
    for place in [path, resolved(path)] {
      var outer = place
      while outer != "/" {
        outer = absolute(outer + "/..")
        var status = stat()
        guard lstat(outer + "/.tarn", &status) == 0 || errno == EACCES else { continue }
        do throws(PassFailure) {
          _ = try inspect(outer, state: nil)
        } catch {
          if error.kind == .permission { throw error }
        }
      }
    }
  }

  /// Refuses to make a mirror in another one or around one. That may be an existing mirror of anybody, or one
  /// of the settings.
  ///
  /// - Parameters:
  ///   - path: an absolute path.
  ///   - state: the absolute path of `--state`.
  func refuseOverlap(_ path: String, state: String?) throws(PassFailure) {
    if let outer = mirrorFolder(around: path) {
      throw overlap(
        "\(Printable.escape(path)) lies in the mirror \(Printable.escape(outer))",
        "to bring that one up to date: tarn sync \(ShellWord.quote(outer)); or choose a folder beside it")
    }
    if let outer = lostFolder(around: path) {
      throw overlap(
        "\(Printable.escape(path)) lies in \(Printable.escape(outer)), which was a mirror and was moved or deleted",
        "choose a folder beside it; \(lossHint(outer) ?? "")")
    }
    try refuseOthersMirror(around: path)
    if let state, let outer = mirrorFolder(around: state + "/id"), !outer.utf8.elementsEqual(path.utf8) {
      throw overlap(
        "the state \(Printable.escape(state)) would lie in the mirror \(Printable.escape(outer))",
        "choose a directory beside it")
    }
    let own = resolved(path)
    let inner = registry?.mirrors().map(\.folder).first { folder in
      isBelow(own, resolved(folder)) && look(folder)?.home != nil
    }
    if let inner = inner ?? FolderHome.mirror(below: path) {
      throw overlap(
        "\(Printable.escape(path)) has the mirror \(Printable.escape(inner)) in it",
        "choose a folder beside it; to give that one up, keeping its files: tarn forget \(ShellWord.quote(inner))"
      )
    }
    try refuseOverlapWithSettings(path)
  }

  /// Refuses an overlap with a mirror of the settings, which may have had no pass yet: then nothing in its
  /// folder tells of it.
  private func refuseOverlapWithSettings(_ path: String) throws(PassFailure) {
    let own = resolved(path)
    for (name, folder, _) in configuredFolders() {
      let other = resolved(absolute(folder))
      let isInner = isBelow(other, own)
      guard isInner || isBelow(own, other) else { continue }
      let place = isInner ? "lies in" : "has in it"
      throw overlap(
        "\(Printable.escape(path)) \(place) \(Printable.escape(folder)), the folder of \(Printable.escape(name)) in the settings",
        "choose a folder beside it")
    }
  }

  /// Compares bytes, as the file system does.
  func isBelow(_ folder: String, _ path: String) -> Bool { path.utf8.starts(with: (folder + "/").utf8) }

  private func overlap(_ message: String, _ hint: String) -> PassFailure {
    PassFailure(
      .usage, code: "folder-overlap", "\(message), and no mirror may lie in another one", hint: hint)
  }
}
