import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// Writes a mirror into the settings, for `tarn add` and `tarn init`.
struct MirrorAdding {
  /// The request of a user.
  struct Wish {
    var feed: String
    var folder: String
    /// The name; `nil` for one made from the folder.
    var name: String?
    var state: String?
    var rhythm: (name: String, text: String)?
    var adopts = false
    /// True when the folder follows another feed so far.
    var changesFeed = false
    var options = PassOptions()
    /// True when the feed is read before anything is written.
    var readsFeed = true
  }

  private let session: Session
  private let change: SettingsChange

  init(_ session: Session) {
    self.session = session
    change = SettingsChange(session: session)
  }

  /// - Returns: what was written, and how the agent took it.
  func run(_ wish: Wish) throws(PassFailure) -> AddReport {
    let directory = try change.directory()
    let (feed, folder) = try words(wish)
    let name = try name(wish, folder)
    if let failure = SettingsReport(session).failure { throw failure }
    if let place = session.place(of: "feed", in: name) {
      // A folder has one mirror, whatever its name.
      let isSame = session.configured(name).map { session.tarn.isSamePlace($0.folder, folder) } ?? false
      throw PassFailure(
        .usage, code: "mirror-exists", "'\(Printable.escape(name))' is a mirror already: \(place)",
        hint: isSame
          ? "it keeps this folder: change it there, or first: tarn remove \(ShellWord.quote(name))"
          : wish.name == nil ? "give the new one a name: --name NAME" : "choose another name")
    }
    let file = MirrorDropIn(name: name, directory: directory)
    var contents = MirrorDropIn.Contents(feed: feed, folder: folder)
    contents.state = wish.state.map(session.tarn.absolute)
    contents.rhythm = wish.rhythm
    contents.adopts = wish.adopts
    contents.options = wish.options
    let text = file.text(contents)
    let mirror = try checked(file, text)
    try refuseOtherFeed(feed, folder, wish)
    try refuseUnmakableFolder(mirror.folder)
    warnOfFolder(mirror)
    var report = AddReport(mirror, file: file.path, rhythm: wish.rhythm)
    if wish.readsFeed { report.read(try read(mirror, wish), options: mirror.options) }
    report.agent = try write(file, text).word
    if report.agent == "none" { report.next = change.start }
    warnOfConfinement(mirror.folder)
    return report
  }

  // MARK: Words

  private func words(_ wish: Wish) throws(PassFailure) -> (feed: String, folder: String) {
    let tarn = session.tarn
    try tarn.refuseEmptyNames(wish.folder, wish.state)
    if tarn.meaning(of: wish.feed) != .feed, tarn.meaning(of: wish.folder) == .feed,
      wish.folder.contains("://")
    {
      throw PassFailure(
        .usage, code: "usage", "the feed comes first, and the folder after it",
        hint: "tarn add \(ShellWord.quote(wish.folder)) \(ShellWord.quote(wish.feed))")
    }
    guard wish.feed != "-", StandardInput.descriptor(wish.feed) == nil else {
      throw PassFailure(
        .usage, code: "feed-not-understood", "an agent has no standard input to read a feed from",
        hint: "give a URL or a file; 'tarn sync - FOLDER < FILE' makes one pass")
    }
    var feed = wish.feed
    if !feed.contains("://"), !["/", "./", "../"].contains(where: { feed.hasPrefix($0) }) {
      feed = try bare(feed)
    }
    // A path in the settings is plain and absolute.
    let text = try tarn.feedText(feed)
    return (feed.contains("://") ? feed : text, tarn.absolute(wish.folder))
  }

  /// Returns a feed without a scheme, which must be an existing file. The hint suggests an address as
  /// browsers show it.
  private func bare(_ word: String) throws(PassFailure) -> String {
    if TextFile.status(session.tarn.absolute(word)) != nil { return "./\(word)" }
    throw PassFailure(
      .usage, code: "feed-not-understood", "\(ShellWord.quote(Redaction.value(word))) is no feed",
      hint: "a feed is a URL such as \(ShellWord.quote(Redaction.value("https://\(word)"))), or a file")
  }

  private func name(_ wish: Wish, _ folder: String) throws(PassFailure) -> String {
    if let name = wish.name {
      guard MirrorSettings.isName(name) else {
        throw PassFailure(
          .usage, code: "bad-name", "'\(Printable.escape(name))' cannot be a mirror's name",
          hint: MirrorSettings.nameRule)
      }
      return name
    }
    guard let name = Self.name(of: folder) else {
      throw PassFailure(
        .usage, code: "bad-name", "no name can be made from \(ShellWord.quote(folder))",
        hint: "give one: --name NAME")
    }
    return name
  }

  /// Returns the last segment of a path, with hyphens for everything that a name must not have.
  static func name(of folder: String) -> String? {
    let last = folder.split(separator: "/").last.map(String.init) ?? ""
    if MirrorSettings.isName(last) { return last }
    var name = ""
    for character in last where name.utf8.count + character.utf8.count <= 64 {
      if character.isLetter || character.isNumber || character == "_" {
        name.append(character)
      } else if !name.isEmpty, name.last != "-" {
        name += "-"
      }
    }
    while name.last == "-" { name.removeLast() }
    return MirrorSettings.isName(name) ? name : nil
  }

  // MARK: Checks

  /// Returns the mirror as an agent would read it.
  private func checked(_ file: MirrorDropIn, _ text: String) throws(PassFailure) -> MirrorSettings {
    if TextFile.status(file.path) != nil {
      throw PassFailure(
        .usage, code: "file-exists",
        "\(Printable.escape(file.path)) is there already, and does not name this mirror",
        hint: "look at it, or give the mirror another name: --name NAME")
    }
    let loaded = change.proposed(file.path, text)
    if let problem = change.firstNewError(in: loaded) {
      // The new file does not exist yet, so its line is not told.
      let isOwn = if case .file(file.path, _) = problem.origin { true } else { false }
      throw PassFailure(
        .configuration, code: problem.code.rawValue,
        isOwn ? problem.message : "\(problem.origin.text): \(problem.message)", hint: problem.hint)
    }
    for problem in loaded.problems where problem.severity == .warning {
      if case .file(file.path, _) = problem.origin {
        session.say(session.messageStyle.paint("warning:", .warning) + " " + problem.message)
      }
    }
    guard let mirror = loaded.settings?.mirror(file.name) else {
      throw PassFailure(.defect, code: "defect", "the settings do not name the mirror that was written")
    }
    return mirror
  }

  private func refuseOtherFeed(_ feed: String, _ folder: String, _ wish: Wish) throws(PassFailure) {
    guard !wish.changesFeed,
      let known = try? session.tarn.remembered(folder: folder, state: wish.state).feed,
      known != (try session.tarn.feedText(feed))
    else { return }
    throw PassFailure(
      .usage, code: "other-feed",
      "\(Printable.escape(folder)) follows \(Message.safe(Redaction.value(known))) already",
      hint: "to follow the new feed from now on, give --change-feed as well")
  }

  /// For another user it is only a warning: access lists may let the agent write there.
  private func refuseUnmakableFolder(_ folder: String) throws(PassFailure) {
    let access = FolderAccess(isSystem: change.isSystem)
    let shown = Printable.escape(folder)
    if access.agentUser == nil, FolderAccess.isClosed(folder) {
      throw PassFailure(
        .permission, code: FolderFailure.Code.permission.rawValue,
        "cannot make a mirror of \(shown): this user may not write there",
        hint: "let this user write there, or give another folder")
    }
    guard let (reason, mend) = access.reasonNotToMake(folder) else { return }
    guard access.agentUser != nil else {
      throw PassFailure(
        .permission, code: FolderFailure.Code.permission.rawValue, "\(shown) cannot be made: \(reason)",
        hint: "choose another folder, or: \(mend)")
    }
    session.say(
      session.messageStyle.paint("warning:", .warning)
        + " \(shown) is not there, and \(reason): \(mend)")
  }

  /// Warns of a folder that the agent's user may not write.
  private func warnOfFolder(_ mirror: MirrorSettings) {
    let record = try? session.tarn.recordDirectory(folder: mirror.folder, state: mirror.state)
    let paths = [mirror.folder, record].compactMap { $0 }
    guard let (reason, mend) = FolderAccess(isSystem: change.isSystem).reasonNotToWrite(paths) else { return }
    session.say(session.messageStyle.paint("warning:", .warning) + " \(reason): \(mend)")
  }

  /// Plans a first pass.
  private func read(_ mirror: MirrorSettings, _ wish: Wish) throws(PassFailure) -> PassReport {
    let request = SyncRequest(mirror, credentials: session.sources.paths.credentials)
    do throws(PassFailure) {
      let report = try plan(request)
      guard !report.wasStopped else {
        throw PassFailure(.stopped, code: "stopped", "stopped before anything was written")
      }
      return report
    } catch {
      throw hinted(error, mirror, wish)
    }
  }

  private func plan(_ request: SyncRequest) throws(PassFailure) -> PassReport {
    // A program gets one document, and no progress.
    guard !session.isJSON else {
      return try session.stoppable { stop throws(PassFailure) -> PassReport in
        try session.tarn.plan(
          request, observer: SilentObserver(), progress: PassProgress(clock: session.clock), stop: stop
        ) { _, _ in }
      }
    }
    return try session.attend(schema: AddReport.schema, mirror: nil) {
      observer, progress, stop throws(PassFailure) -> PassReport in
      try session.tarn.plan(request, observer: observer, progress: progress, stop: stop) { _, _ in }
    }
  }

  private func hinted(_ failure: PassFailure, _ mirror: MirrorSettings, _ wish: Wish) -> PassFailure {
    var failure = failure
    let words = "\(ShellWord.quote(mirror.feed)) \(ShellWord.quote(mirror.folder))"
    switch failure.kind {
    case .usage where failure.code == PassFailure.folderNotEmpty:
      var given = ["--adopt"]
      if let name = wish.name { given += ["--name", ShellWord.quote(name)] }
      if let state = wish.state { given += ["--state", ShellWord.quote(state)] }
      if let rhythm = wish.rhythm { given += ["--\(rhythm.name)", ShellWord.quote(rhythm.text)] }
      given += wish.options.withoutPasswords.words + [words]
      failure.hint =
        "to take it, keeping every file that is in it: tarn add \(given.joined(separator: " "))"
    case .feedMalformed, .feedUnreachable, .configuration:
      // Each pass would refuse such a file as well.
      let isLasting = failure.kind == .configuration && failure.code.hasSuffix("-malformed")
      let rest =
        "nothing was written"
        + (isLasting ? "" : "; 'tarn add --no-check' adds the mirror without reading the feed")
      failure.hint = failure.hint.map { "\($0); \(rest)" } ?? rest
    default: break
    }
    return failure
  }

  // MARK: Writing

  private func write(_ file: MirrorDropIn, _ text: String) throws(PassFailure) -> SettingsChange.Outcome {
    let directory = try change.directory()
    do throws(SettingsFile.Failure) {
      try SettingsFile.create(
        file.path, text, isPublic: change.isSystem, like: change.isSystem ? "\(directory)/tarn.toml" : nil)
    } catch {
      throw change.failure(error, "write")
    }
    // Somebody may have changed another file meanwhile.
    if let problem = change.firstNewError(in: session.sources.load(.check)) {
      try takeBack(file)
      throw PassFailure(
        .configuration, code: problem.code.rawValue, "\(problem.origin.text): \(problem.message)",
        hint: "the settings were changed meanwhile: look at them, and try again")
    }
    let outcome = change.tellAgent()
    guard case .rejected(let problems) = outcome else { return outcome }
    try takeBack(file)
    _ = change.tellAgent()
    throw PassFailure(
      .configuration, code: "settings-not-taken",
      "the agent does not take these settings, and they were taken back: "
        + (problems.first.map { $0.split(whereSeparator: \.isNewline).first.map(String.init) ?? "" } ?? ""),
      hint: "the agent may be another user, who cannot read what this one can")
  }

  /// Warns when the unit of the system's service does not let it write there.
  private func warnOfConfinement(_ folder: String) {
    guard change.isSystem, UnitState.current(isSystem: true)?.keepsOut(folder) == true else { return }
    session.say(
      session.messageStyle.paint("warning:", .warning)
        + " tarn.service may not write \(Printable.escape(folder)) so far: \(UnitState.permit(Printable.escape(folder)))"
    )
  }

  private func takeBack(_ file: MirrorDropIn) throws(PassFailure) {
    do throws(SettingsFile.Failure) {
      try SettingsFile.remove(file.path)
    } catch {
      throw change.failure(error, "remove")
    }
  }
}

/// The document of `add --json`.
struct AddReport: Encodable {
  static let schema = "tarn-add/1"
  var schema = Self.schema
  var name: String
  var feed: String
  var folder: String
  var file: String
  var every: String?
  var schedule: String?
  /// The files that the feed names; left out when it was not read.
  var files: Int?
  /// Their bytes, as far as the feed tells sizes.
  var bytes: UInt64?
  /// `reloaded`, `none` or `silent`.
  var agent = "none"
  /// The next command.
  var next: String?

  /// True when the feed's rules leave older files out, and nothing deletes those that are there.
  private var leavesOldFiles = false
  /// What is said of options that do nothing with the feed's format.
  private var idleOptions: String?
  /// The number of files whose size the feed does not tell.
  private var unknownSizes = 0

  private enum CodingKeys: CodingKey {
    case schema, name, feed, folder, file, every, schedule, files, bytes, agent, next
  }

  init(_ mirror: MirrorSettings, file: String, rhythm: (name: String, text: String)?) {
    leavesOldFiles =
      (mirror.options.last(.keep) ?? mirror.options.last(.maxAge)) != nil
      && !mirror.options.isOn(.delete)
    name = mirror.name
    feed = Printable.escape(Redaction.value(mirror.feed))
    folder = Printable.escape(mirror.folder)
    self.file = Printable.escape(file)
    if rhythm?.name == "schedule" { schedule = rhythm?.text } else { every = rhythm?.text }
  }

  mutating func read(_ report: PassReport, options: PassOptions) {
    (files, bytes) = (report.counts.wanted, report.bytes.wanted)
    unknownSizes = report.bytes.unknownSizes
    idleOptions = SyncSummary.idleOptions(options, report)
  }

  /// The lines for people.
  var lines: [String] {
    var lines = [
      "added \(ShellWord.quote(name)): \(feed) goes to \(folder)"
        + (every.map { ", every \($0)" } ?? "") + (schedule.map { ", at \(Printable.escape($0))" } ?? "")
    ]
    lines.append("  written: \(file)")
    if let files {
      let size = bytes.flatMap { $0 > 0 ? ", \(Units.show($0))" : nil } ?? ""
      let unknown =
        !size.isEmpty && unknownSizes > 0 ? " and \(Numbers.grouped(unknownSizes)) of unknown size" : ""
      lines.append("  the feed names \(Numbers.count(files, "file"))\(size)\(unknown)")
    }
    if let idleOptions {
      lines.append("  \(idleOptions)")
    } else if leavesOldFiles {
      lines.append("  older files stay in the folder; for them to go as well: --delete")
    }
    switch agent {
    case "reloaded":
      lines.append("  the agent has taken it up; to follow it: tarn status \(ShellWord.quote(name))")
    case "silent": lines.append("  the agent does not answer; when it does: tarn reload")
    default:
      lines.append("no agent keeps it current yet; next: \(next ?? "tarn agent")")
    }
    return lines
  }
}
