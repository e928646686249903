import Glibc
package import TarnConfig
package import TarnCore
import TarnEngine
import TarnFolder
import TarnLedger
import TarnRuntime

/// Finds mirrors on disk from what users write.
extension Tarn {
  var registry: Registry? { Registry(environment: environment) }

  /// Returns an absolute path without `.`, `..`, doubled or trailing slashes; links are not followed.
  package func absolute(_ folder: String) -> String {
    var segments: [Substring] = []
    let full = folder.hasPrefix("/") ? folder : workingDirectory + "/" + folder
    for segment in full.split(separator: "/") {
      switch segment {
      case ".": continue
      case "..": _ = segments.popLast()
      default: segments.append(segment)
      }
    }
    return "/" + segments.joined(separator: "/")
  }

  /// Returns an existing mirror.
  ///
  /// - Parameter name: the mirror of the settings that names its state.
  /// - Throws: `folderUnusable` when there is none, or its marker is missing.
  func home(folder: String, state: String?, name: String? = nil) throws(PassFailure) -> FolderHome {
    try refuseEmptyNames(folder, state)
    let place = place(of: folder)
    let path = absolute(place?.folder ?? folder)
    let name = place == nil || state != nil ? name : folder
    let state = (state ?? place?.state).map(absolute)
    // A mirror's name implies its feed; a word after FEED would be taken for a folder.
    func syncing(_ option: String = "") -> String {
      let word = ShellWord.quote(folder)
      if place != nil { return command("sync\(option) \(word)") }
      return configuredName(at: path).map { command("sync\(option) \(ShellWord.quote($0))") }
        ?? "tarn sync\(option) FEED \(word)"
    }
    switch try inspect(path, state: state, name: name) {
    case .mirror(let home):
      try refuseCopy(home)
      return home
    case .markerMissing(let reason):
      throw markerMissing(path, reason, state: state, name: place == nil ? name : folder)
    case .missing:
      try refuseUnmounted(path)
      try refuseTransfer(folder)
      try refuseInside(path)
      throw PassFailure(
        .folderUnusable, code: "no-folder", "there is no folder \(Printable.escape(path))",
        hint: lost(path)?.hint ?? misspelt(folder) ?? syncing())
    case .notDirectory:
      try refuseInside(path)
      throw notFolder(path)
    case .empty:
      try refuseUnmounted(path)
      try refuseInside(path)
      throw lost(path) ?? notMirror(path, syncing(), folder)
    case .foreign:
      try refuseInside(path)
      if wasMirror(path) { throw markerGone(path, syncing(" --adopt")) }
      throw notMirror(path, syncing(" --adopt"), folder)
    }
  }

  /// Returns the place of a mirror by its name; `nil` for a word that cannot be a name.
  package func place(of word: String) -> (folder: String, state: String?)? {
    word.contains { "/.:".contains($0) } ? nil : configured(word)
  }

  /// Returns a word that means this folder even where a mirror of that name takes precedence.
  package func word(ofFolder folder: String) -> String { place(of: folder) == nil ? folder : "./\(folder)" }

  /// Refuses `MIRROR:PATH` and the address of a feed, where only a mirror makes sense.
  package func refuseTransfer(_ word: String) throws(PassFailure) {
    try refuseFeed(word)
    guard let colon = word.firstIndex(of: ":"), place(of: String(word[..<colon])) != nil else { return }
    let (mirror, path) = (word[..<colon], ShellWord.quote(String(word[word.index(after: colon)...])))
    throw PassFailure(
      .usage, code: "not-of-a-path",
      "\(Printable.escape(word)) is one transfer, but a mirror is expected here",
      hint: "the mirror is \(mirror); 'tarn explain \(mirror) \(path)' says what is known of that path")
  }

  func notFolder(_ path: String) -> PassFailure {
    PassFailure(
      .folderUnusable, code: "not-a-folder", "\(Printable.escape(path)) is not a folder",
      hint: "a mirror is a directory: give the name of one, or of one to make")
  }

  func notMirror(_ path: String, _ command: String, _ word: String) -> PassFailure {
    PassFailure(
      .folderUnusable, code: "not-a-mirror", "\(Printable.escape(path)) is no mirror of Tarn's",
      hint: misspelt(word) ?? "make it one: \(command)")
  }

  /// Returns the folder for a pass. A folder that is no mirror yet is made, or taken with `--adopt`.
  ///
  /// - Returns: the mirror, and the parts that this process made just now.
  func homeForSync(_ request: SyncRequest) throws(PassFailure) -> (FolderHome, made: FolderHome.CreatedParts)
  {
    try refuseEmptyNames(request.folder, request.state)
    let path = try admissible(request.folder)
    let state = request.state.map(absolute)
    if let state { try refuseInsideRecord(state, isState: true) }
    let found = try inspect(path, state: state, name: request.nameOfState)
    if [.missing, .empty, .foreign].contains(found) { try refuseOverlap(path, state: state) }
    if found == .foreign, !request.adopt { try refuseUnwritable(path) }
    try refuseUnusable(found, path, state: state, request)
    switch found {
    case .mirror(let home):
      try refuseCopy(home)
      return (home, FolderHome.CreatedParts())
    case .markerMissing: return try make(path, state)
    case .notDirectory:
      throw notFolder(path)
    case .missing, .empty, .foreign:
      guard request.feed != nil else {
        try refuseTransfer(request.folder)
        if var lost = lost(path) {
          if request.recreate, configuredName(at: path) == nil {
            lost.hint = "its feed went with it: tarn sync --recreate FEED \(ShellWord.quote(request.folder))"
          }
          throw lost
        }
        throw notMirror(path, "tarn sync FEED \(ShellWord.quote(request.folder))", request.folder)
      }
      return try make(path, state)
    }
  }

  /// Refuses to make a mirror in a folder where this user may not write, whatever else is wrong with it.
  private func refuseUnwritable(_ path: String) throws(PassFailure) {
    guard !wasMirror(path), faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) != 0, errno == EACCES else {
      return
    }
    throw PassFailure(
      .permission, code: FolderFailure.Code.permission.rawValue,
      "cannot make a mirror of \(Printable.escape(path)): this user may not write there",
      hint: wayToWrite(path))
  }

  private func wayToWrite(_ path: String) -> String {
    serviceUser.map { user in
      "let the agent's user \(user) write there: sudo install -d -o \(user) -g \(user) \(ShellWord.quote(path))"
    } ?? "let this user write there, or give another folder"
  }

  /// Refuses a folder that is no longer a mirror, and one that this request may not take or make anew.
  private func refuseUnusable(
    _ found: FolderHome.State, _ path: String, state: String?, _ request: SyncRequest
  ) throws(PassFailure) {
    switch found {
    case .mirror, .notDirectory: break
    case .markerMissing(let reason):
      try refuseOthers(path, state: state, name: request.name)
      guard request.recreate, isGone(path) else {
        throw markerMissing(path, reason, state: state, name: request.name)
      }
      try refuseUnmounted(path)
    case .foreign where !request.adopt: throw notEmpty(path, request)
    case .missing, .empty, .foreign:
      try refuseUnmounted(path)
      try refuseLost(path, request)
    }
  }

  private func make(
    _ path: String, _ state: String?
  ) throws(PassFailure) -> (FolderHome, made: FolderHome.CreatedParts) {
    do {
      return try FolderHome.make(folder: path, state: state)
    } catch {
      let kind: PassFailure.Kind = error.code == .permission ? .permission : .folderUnusable
      let hint =
        switch error.code {
        case .permission: wayToWrite(path)
        // What 'tarn forget' leaves lies there, too.
        case .exists: "look at what is in it; nothing there was changed"
        default: PassFailure(error).hint ?? "give a folder elsewhere"
        }
      throw PassFailure(
        kind, code: error.code.rawValue,
        "cannot make a mirror of \(Printable.escape(path)): \(error.message)", hint: hint)
    }
  }

  /// Finds the original of a copied folder. A copy leads to the same state elsewhere, which two folders
  /// cannot share.
  ///
  /// - Returns: the original folder; `nil` when this is no copy.
  func original(ofCopy home: FolderHome) -> String? {
    guard home.stateDirectory != home.folder + "/.tarn" else { return nil }
    return registry?.mirrors().first { known in
      guard known.id == home.id, !known.isAt(home.folder), !isSameDirectory(known.folder, home.folder),
        let there = look(known.folder)?.home
      else { return false }
      return there.id == home.id && there.stateDirectory == home.stateDirectory
    }?.folder
  }

  private func refuseCopy(_ home: FolderHome) throws(PassFailure) {
    guard let original = original(ofCopy: home) else { return }
    let folder = ShellWord.quote(home.folder)
    throw PassFailure(
      .usage, code: "copy-of-a-mirror",
      "\(Printable.escape(home.folder)) is a copy of \(Printable.escape(original)), and both lead to its state in "
        + "\(Printable.escape(home.stateDirectory)); nothing was changed",
      hint:
        "to follow the feed here as well: tarn forget \(folder), then: tarn sync --adopt --state DIR FEED \(folder)"
    )
  }

  /// Returns a hint for a bare word that may be a misspelled name of a mirror.
  ///
  /// - Returns: `nil` when the settings name no mirror, or the word is a path.
  private func misspelt(_ word: String) -> String? {
    guard mayBeMisspelt(word), !configuredFolders().isEmpty else { return nil }
    let make = "to make a mirror of that folder: tarn sync FEED ./\(ShellWord.quote(word))"
    guard let near = nearName(word) else {
      return "the settings have no mirror of that name; \(make)"
    }
    return "did you mean \(ShellWord.quote(near)), of the settings? \(make)"
  }

  /// True for a bare word that is no mirror's name.
  private func mayBeMisspelt(_ word: String) -> Bool {
    !word.contains(where: { "/.:".contains($0) }) && place(of: word) == nil
  }

  /// Returns the mirror of the settings whose name a bare word nearly is; `nil` without one.
  package func nearName(_ word: String) -> String? {
    mayBeMisspelt(word) ? Spelling.nearest(word, configuredFolders().map(\.name)) : nil
  }

  /// True when something has that path, also a link that leads nowhere.
  package func isThere(_ path: String) -> Bool {
    var status = stat()
    return lstat(absolute(path), &status) == 0
  }

  /// True when something other than a folder is there.
  package func isFile(_ path: String) -> Bool { isThere(path) && !TextFile.isDirectory(absolute(path)) }

  /// True when nothing is there, or an empty folder.
  func isGone(_ path: String) -> Bool { [.missing, .empty].contains(look(path)) }

  /// Returns a FEED as it is remembered: a local one by its absolute path.
  ///
  /// - Throws: `usage` for an invalid feed.
  package func feedText(_ feed: String) throws(PassFailure) -> String {
    try location(of: feed).text
  }

  func location(of feed: String) throws(PassFailure) -> FeedLocation {
    try FeedText.parse(feed, workingDirectory: workingDirectory)
  }

  /// Refuses empty names, as from `tarn sync FEED "$DIR"` with DIR unset: as a path it would be the working
  /// directory.
  package func refuseEmptyNames(_ folder: String, _ state: String?) throws(PassFailure) {
    guard folder.isEmpty || state?.isEmpty == true else { return }
    throw PassFailure(
      .usage, code: "empty-name", "the name of the \(folder.isEmpty ? "folder" : "state") is empty",
      hint: "is a variable not set? '.' is the working directory")
  }

  /// Refuses `/` and `$HOME` as mirrors, with any options and by any path.
  func admissible(_ folder: String) throws(PassFailure) -> String {
    let path = absolute(folder)
    for refused in ["/", homeDirectory].compactMap({ $0 }) where isSameDirectory(path, refused) {
      throw PassFailure(
        .usage, code: "folder-refused", "\(Printable.escape(path)) cannot be a mirror",
        hint: "choose a folder of its own below it")
    }
    let tilde = absolute("~")
    if path == tilde || path.hasPrefix(tilde + "/"), access(tilde, F_OK) != 0 {
      throw PassFailure(
        .usage, code: "folder-refused",
        "\(Printable.escape(path)) would lie in a new directory of the name ~",
        hint:
          "the shell puts your home there only without quotes, as in ~/'my files'; mkdir ./~ makes that directory"
      )
    }
    try refuseInsideRecord(path)
    return path
  }

  /// Refuses a place in the record of a mirror, which that mirror may remove: `.tarn`, or the directory of
  /// its `--state`. Links are followed.
  ///
  /// - Parameter isState: true when the path is to be a record itself, and so may be one.
  func refuseInsideRecord(_ path: String, isState: Bool = false) throws(PassFailure) {
    var isInside = false
    for place in [path, resolved(path)] {
      var words = place.split(separator: "/")
      if isState { _ = words.popLast() }
      while let word = words.last, !isInside {
        isInside = word == ".tarn" || FolderHome.isRecord("/" + words.joined(separator: "/"))
        words.removeLast()
      }
    }
    guard isInside else { return }
    throw PassFailure(
      .usage, code: "folder-refused", "\(Printable.escape(path)) is inside the record of a mirror",
      hint: "choose a directory outside of it")
  }

  /// Returns an absolute path with links resolved in its existing part.
  package func resolved(_ path: String) -> String {
    let there = nearestDirectory(path)
    let real = realpath(there, nil)
    defer { free(real) }
    return (real.flatMap { String(validatingCString: $0) } ?? there) + path.dropFirst(there.count)
  }

  /// Returns the real path of a folder, existing or not, as bytes. It is equal for all words that mean the
  /// folder.
  package func realPlace(_ folder: String) -> [UInt8] { Array(resolved(absolute(folder)).utf8) }

  /// True when two words mean one folder.
  package func isSamePlace(_ left: String, _ right: String) -> Bool {
    absolute(left).utf8.elementsEqual(absolute(right).utf8) || realPlace(left) == realPlace(right)
  }

  private func isSameDirectory(_ left: String, _ right: String) -> Bool {
    if left == absolute(right) { return true }
    var first = stat()
    var second = stat()
    return stat(left, &first) == 0 && stat(right, &second) == 0 && first.st_ino == second.st_ino
      && first.st_dev == second.st_dev
  }

  /// Returns the current state of a folder, whose marker names its record; `nil` when it cannot be examined.
  ///
  /// - Parameter path: an absolute path.
  func look(_ path: String) -> FolderHome.State? { try? FolderHome.inspect(folder: path, state: nil) }

  /// Returns the current state of a folder. Changes nothing.
  ///
  /// - Parameter name: the mirror of the settings that names its state.
  /// - Throws: `usage`, also when links lead to a path that is not UTF-8.
  func inspect(
    _ path: String, state: String?, name: String? = nil
  ) throws(PassFailure) -> FolderHome.State {
    for path in [path, state].compactMap({ $0 }) { try refuseOtherEncoding(path) }
    do {
      return try FolderHome.inspect(folder: path, state: state)
    } catch  where error.code == .exists {
      let (setting, place) =
        name.map { ("'state'", " of \(TOMLText.mirror($0))") } ?? ("--state", "")
      let others = FolderHome.hasOwnDirectory(path) ? "" : ", or give the one it has"
      throw PassFailure(
        .usage, code: "state-elsewhere", "\(error.message): \(setting)\(place) cannot move it",
        hint: "leave \(setting) out\(place)\(others)")
    } catch {
      var failure = PassFailure(error)
      if failure.kind == .permission { failure.hint = ownersHint(path) }
      throw failure
    }
  }

  /// Returns a hint how to ask as the owner, who alone may look into a mirror.
  private func ownersHint(_ path: String) -> String? {
    var status = stat()
    guard stat("\(path)/.tarn", &status) == 0 || stat(path, &status) == 0 else {
      return "run the command as the owner of the folder, or with sudo"
    }
    guard status.st_uid != geteuid(), geteuid() != 0 else { return nil }
    let name = getpwuid(status.st_uid).flatMap { String(validatingCString: $0.pointee.pw_name) }
    guard status.st_uid != 0 else { return "it belongs to root: put 'sudo' before the command" }
    let user = name.map(ShellWord.quote) ?? "#\(status.st_uid)"
    return "it belongs to \(user): put \"sudo -u \(name == nil ? "'\(user)'" : user)\" before the command"
  }

  func wasMirror(_ path: String) -> Bool { known(at: path) != nil }

  /// The entry of a folder in the list of this user's mirrors, by this path or another one that leads there.
  private func known(at path: String) -> Registry.Mirror? {
    let mirrors = registry?.mirrors() ?? []
    if let mirror = mirrors.first(where: { $0.isAt(path) }) { return mirror }
    let place = realPlace(path)
    return mirrors.first { realPlace($0.folder) == place }
  }

  /// Removes a folder from the list, by every path that leads there.
  func removeFromList(_ path: String) {
    let place = realPlace(path)
    for mirror in registry?.mirrors() ?? [] where mirror.isAt(path) || realPlace(mirror.folder) == place {
      registry?.remove(folder: mirror.folder)
    }
  }

  /// Returns the failure of a lost marker, with which the feed and the options are lost.
  private func markerGone(_ path: String, _ command: String) -> PassFailure {
    PassFailure(
      .folderUnusable, code: PassFailure.lostFolder,
      "\(Printable.escape(path)) was a mirror, and its marker .tarn is gone; nothing was changed",
      hint:
        "mount what belongs there, or put the marker back; to take it, keeping every file that is in it: \(command)"
    )
  }

  func notEmpty(_ path: String, _ request: SyncRequest) -> PassFailure {
    let feed = request.feed.map { ShellWord.quote(Redaction.value($0)) } ?? "FEED"
    let state = request.state.map { " --state \(ShellWord.quote($0))" } ?? ""
    // The settings hold these values, so the command does not repeat them. The record of a pass by another user
    // would lock the agent out.
    let command =
      request.name.map { name in
        serviceUser == nil
          ? self.command("sync --adopt \(ShellWord.quote(name))")
          : "write adopt = true below \(TOMLText.mirror(name)) of its settings, then: \(self.command("reload"))"
      }
      ?? "tarn sync --adopt\(state) \(feed) \(ShellWord.quote(request.folder))"
    if wasMirror(path) { return markerGone(path, command) }
    return PassFailure(
      .usage, code: PassFailure.folderNotEmpty,
      "\(Printable.escape(path)) is not empty, and no mirror of Tarn's",
      hint: "to take it, keeping every file that is in it: \(command)")
  }

  /// - Parameter name: the name of a mirror of the settings.
  func markerMissing(
    _ path: String, _ reason: String, state: String? = nil, name: String? = nil
  ) -> PassFailure {
    let option = state.map { "--state \(ShellWord.quote($0)) " } ?? ""
    let forget =
      name.map { name in
        let word = ShellWord.quote(name)
        guard !isGone(path) else { return "to fetch all of it again: \(command("sync --recreate \(word)"))" }
        return
          "to begin anew, keeping its files, with no agent at work there: \(command("forget \(word)")), then: \(command("sync --adopt \(word)"))"
      } ?? "to give the mirror up, keeping its files: tarn forget \(option)\(ShellWord.quote(path))"
    return PassFailure(
      .folderUnusable, code: "marker-missing", "\(Printable.escape(path)): \(reason); nothing was changed",
      hint: "mount what belongs there, or put the right folder back; \(forget)")
  }

  /// Refuses a mirror whose folder was moved or deleted: all of it would be fetched again, and its history
  /// would be lost.
  func refuseLost(_ path: String, _ request: SyncRequest) throws(PassFailure) {
    guard !request.recreate, wasMirror(path) else { return }
    // `--adopt` takes what is there; it is no order to fetch everything again.
    guard !request.adopt || isGone(path) else { return }
    if let name = request.name { throw folderLost(path, hint: stepIfLost([name])) }
    // Without a feed it cannot be made anew; a later check reports that.
    guard let feed = request.feed, var failure = lost(path) else { return }
    if configuredName(at: path) == nil {
      let words = "\(ShellWord.quote(Redaction.value(feed))) \(ShellWord.quote(request.folder))"
      failure.hint =
        (failure.hint.map { "\($0); " } ?? "") + "to fetch all of it again: tarn sync --recreate \(words)"
    }
    throw failure
  }

  private func folderLost(_ path: String, hint: String) -> PassFailure {
    PassFailure(
      .folderUnusable, code: "marker-missing",
      "\(Printable.escape(path)) was a mirror, and its folder was moved or deleted; nothing was changed",
      hint: hint)
  }

  /// Returns the remedy for mirrors of the settings whose folders are gone.
  package func stepIfLost(_ names: [String]) -> String {
    let words = names.map(ShellWord.quote).joined(separator: " ")
    let what =
      names.count == 1
      ? "move it back, or change its folder in the settings; to fetch all of it again"
      : "move them back, or change their folders in the settings; to fetch all of them again"
    return "\(what): \(command("sync --recreate \(words)"))"
  }

  /// Refuses an empty folder where a mirror was, on another file system than the mirror's: that is not
  /// mounted.
  func refuseUnmounted(_ path: String) throws(PassFailure) {
    guard let known = known(at: path), !known.fileSystem.isEmpty else { return }
    let now = MountedFileSystem.id(of: nearestDirectory(path))
    guard !now.isEmpty, now != known.fileSystem else { return }
    throw PassFailure(
      .folderUnusable, code: "marker-missing",
      "\(Printable.escape(path)) was a mirror on another file system, which is not there now; nothing was changed",
      hint: "mount it; or, to begin anew here: tarn forget \(ShellWord.quote(path))")
  }

  /// Returns the reason why passes refuse the folder of a configured mirror, in their words; `nil` when one
  /// would make it.
  package func loss(of settings: MirrorSettings) -> PassFailure? {
    let path = absolute(settings.folder)
    let state = settings.state.map(absolute)
    guard let found = try? inspect(path, state: state) else { return nil }
    do throws(PassFailure) {
      try refuseUnusable(found, path, state: state, SyncRequest(settings, credentials: nil))
      return nil
    } catch {
      return error
    }
  }

  /// Returns a hint for a folder that is gone; `nil` when no mirror of this user was there.
  package func lossHint(_ folder: String) -> String? {
    let path = absolute(folder)
    guard wasMirror(path) else { return nil }
    return configuredName(at: path).map { stepIfLost([$0]) }
      ?? "if it is gone for good: tarn forget \(ShellWord.quote(path))"
  }

  /// The name of the mirror in the settings that has this folder.
  func configuredName(at path: String) -> String? {
    configuredFolders().first { isSamePlace($0.folder, path) }?.name
  }

  /// Returns the failure of a mirror that lay here; `nil` when none of this user's did. A mirror made by hand
  /// has its feed in its folder, wherever that is now.
  func lost(_ path: String) -> PassFailure? {
    guard wasMirror(path) else { return nil }
    guard let name = configuredName(at: path) else {
      let place = look(path) == .empty ? " in place of the empty folder" : ""
      return folderLost(
        path,
        hint:
          "move it back\(place), or name the place where it is now: tarn sync PLACE; \(lossHint(path) ?? "")")
    }
    // A state in another place still knows the mirror.
    let state = configured(name)?.state.map(absolute)
    guard case .markerMissing(let reason)? = try? inspect(path, state: state, name: name) else {
      return folderLost(path, hint: stepIfLost([name]))
    }
    return markerMissing(path, reason, state: state, name: name)
  }

  /// Refuses a real path that is not UTF-8. SQLite gets real paths as text, so that it refuses links that are
  /// put there later.
  private func refuseOtherEncoding(_ path: String) throws(PassFailure) {
    guard let real = realpath(nearestDirectory(path), nil) else { return }
    defer { free(real) }
    guard String(validatingCString: real) == nil else { return }
    let bytes = Printable.escape(Array(UnsafeRawBufferPointer(start: real, count: strlen(real))))
    throw PassFailure(
      .usage, code: "not-utf-8", "\(Printable.escape(path)) leads to \(bytes), whose name is not UTF-8",
      hint: "rename that directory with mv (names inside a mirror may be any bytes)")
  }

  private func nearestDirectory(_ path: String) -> String {
    var path = path
    var status = stat()
    while stat(path, &status) != 0, let slash = path.lastIndex(of: "/"), slash != path.startIndex {
      path = String(path[..<slash])
    }
    return path.isEmpty ? "/" : path
  }

  /// Takes back a mirror that nobody has used: one that this process has just made, or that another first
  /// sync left. The folder must hold nothing else. The lock keeps other processes out until it is removed;
  /// nobody else in this process has the mirror open.
  func unmake(_ mirror: OpenMirror, _ made: FolderHome.CreatedParts) {
    guard mirror.recordsNothing else { return }
    // First, for its descriptors may be the last ones.
    mirror.ledger.close()
    guard isBare(mirror, made) else { return }
    registry?.remove(folder: mirror.home.folder)
    // If it cannot be removed, an empty mirror stays, which the next sync takes as it is.
    try? mirror.home.remove()
    made.removeDirectories()
  }

  /// True when `unmake` would take the mirror back now.
  func isUnmade(_ mirror: OpenMirror, _ made: FolderHome.CreatedParts) -> Bool {
    mirrors.isAlone(mirror) && mirror.recordsNothing && isBare(mirror, made)
  }

  private func isBare(_ mirror: OpenMirror, _ made: FolderHome.CreatedParts) -> Bool {
    mirror.holdsNothing && (made.isMirror || mirror.home.isBare())
  }

  /// True when the folder is neither this mirror any more nor another one.
  func isGone(_ home: FolderHome) -> Bool {
    switch look(home.folder) {
    case .missing, .empty, .foreign: true
    case .mirror(let there): there.id != home.id
    case .markerMissing, .notDirectory, nil: false
    }
  }

  static let notListed =
    "the list of this user's mirrors cannot be written: 'tarn status' without arguments does not show this one, and when "
    + "its folder is gone, a pass makes it anew"

  /// - Returns: false when the list of mirrors cannot be written.
  @discardableResult func remember(_ home: FolderHome) -> Bool {
    let mirror = Registry.Mirror(
      folder: home.folder, id: home.id, fileSystem: MountedFileSystem.id(of: home.folder))
    // The old place stays in the list while the settings want the mirror there, so that no pass makes it
    // anew. A copy is not the mirror that was moved.
    return registry?.add(mirror) { configuredName(at: $0) != nil || look($0)?.home?.id == home.id } ?? true
  }

  /// Replaces the old place in the list once the settings name the folder that a mirror was moved to.
  func rememberMove(to folder: String) {
    guard let home = look(absolute(folder))?.home,
      registry?.mirrors().contains(where: { $0.id == home.id && !$0.isAt(home.folder) }) == true
    else { return }
    remember(home)
  }
}

extension FolderHome.State {
  var home: FolderHome? { if case .mirror(let home) = self { home } else { nil } }
}

extension PassFailure {
  /// The code for a mirror's folder that is gone or no longer a mirror.
  static let lostFolder = "marker-missing"
  /// The code for a folder that is no mirror, and would have to be taken with `--adopt`.
  package static let folderNotEmpty = "folder-not-empty"
}
