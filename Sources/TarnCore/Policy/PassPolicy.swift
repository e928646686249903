/// What a pass may do to a folder.
package struct PassPolicy: Sendable, Equatable {
  package enum LocalChanges: String, Sendable, CaseIterable { case restore, keep, report }

  /// True to move to the trash what a complete manifest does not name.
  package var deletes = false
  package var localChanges = LocalChanges.restore
  package var filter = PathFilter()
  /// The patterns of entries that are published after all others.
  package var publishLast = PathPatterns(Self.indexNames)
  /// True to keep a checksum list beside the files that it names.
  package var keepsList = true
  /// The number of attempts after the first, 0 to 100.
  package var retries = 5
  package var reserve = Reserve.share(percent: 1)
  package var pathRule = PathRule.linux
  package var format = FormatChoice.auto
  package var window = WindowPolicy()
  package var deleteLimit = DeleteLimit.standard
  /// Seconds after which a file that Tarn placed leaves the trash; `nil` for never.
  package var keepTrash: Int64? = 7 * 86_400

  package init() {}

  /// The index files that the formats know: they name the others, so they come last.
  package static let indexNames = [
    "**/repodata/repomd.xml", "**/repodata/repomd.xml.asc", "Release", "Release.gpg", "InRelease",
    "index.html", "SHA256SUMS", "SHA256SUMS.asc", "SHA256SUMS.gpg", "SHA256SUMS.sig", "SHA256SUMS.minisig",
  ]

  package func phase(of entry: Entry) -> Action.Phase {
    if entry.isList { return .list }
    return publishLast.matches(entry.path) == true ? .index : .payload
  }

  /// Returns whether a pass with this policy takes other files, or other names, than one with the mirror's own policy. What it does
  /// about local changes does not count.
  package func choosesOthers(than own: PassPolicy) -> Bool {
    var window = window
    window.localChanges = own.window.localChanges
    return filter != own.filter || window != own.window || own.keepsList && !keepsList
      || pathRule != own.pathRule || format != own.format
  }
}

/// How much of the file system is kept free.
package enum Reserve: Sendable, Equatable {
  case bytes(UInt64)
  /// A percentage of the file system's size, 0 to 99.
  case share(percent: Double)

  /// - Parameter total: the size of the file system in bytes.
  package func bytes(ofTotal total: UInt64) -> UInt64 {
    switch self {
    case .bytes(let bytes): return bytes
    case .share(let percent):
      guard percent > 0 else { return 0 }
      return UInt64(Double(total) / 100 * min(percent, 99))
    }
  }
}

/// The paths of the feed that are wanted (`--include`, `--exclude`).
package struct PathFilter: Sendable, Equatable {
  /// The patterns to include. If there are any, a path must match one.
  package var include = PathPatterns([])
  package var exclude = PathPatterns([])

  package init() {}

  package func excludes(_ path: RelativePath) -> Bool {
    if exclude.matches(path) == true { return true }
    return !include.isEmpty && include.matches(path) != true
  }

  /// The reason why `excludes` is true.
  package enum Exclusion: Sendable, Equatable {
    /// This pattern of `--exclude` matches.
    case excluded(by: String)
    /// This pattern of `--include` excludes the path again.
    case takenBack(by: String)
    /// No pattern of `--include` matches.
    case notIncluded
  }

  /// Returns why a path is excluded; `nil` when it is not.
  package func exclusion(of path: RelativePath) -> Exclusion? {
    guard excludes(path) else { return nil }
    if exclude.matches(path) == true { return exclude.deciding(path).map { .excluded(by: $0) } }
    return include.deciding(path).map { .takenBack(by: $0) } ?? .notIncluded
  }

  /// Returns why a refused name is left out, by the feed's text: it is not a path, but patterns may match its text. Leading slashes
  /// do not count.
  ///
  /// - Parameter isName: false for other text of the feed, such as a line, to which `include` does not apply.
  package func exclusion(ofRefused name: [UInt8], isName: Bool = true) -> Exclusion? {
    let text = name.prefix(Refusal.mostShown).drop { $0 == UInt8(ascii: "/") }
    let found = exclusion(of: RelativePath(trusted: Array(text)))
    if !isName, found == .notIncluded { return nil }
    return found
  }

  /// Returns why nothing below a directory is wanted; `nil` where no pattern of `--exclude` matches all of it.
  package func exclusion(ofDirectory path: RelativePath) -> Exclusion? {
    exclude.deciding(directory: path).map { .excluded(by: $0) }
  }
}
