import Glibc
import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// Finds the mirrors that the words of a command mean.
struct PassTargets {
  let session: Session
  /// The command that was given: a hint for a plan changes nothing either.
  var command = "sync"

  /// Returns the passes for `FEED FOLDER` or for mirrors. Without words this is the mirror of the working
  /// directory, or else all known ones.
  ///
  /// - Parameter remembers: true when the mirrors remember the options for later passes.
  /// - Throws: `PassFailure` when the words make no sense together.
  func requests(
    _ words: [String], flags: PassFlags, remembers: Bool = true, isOnce: Bool = false
  ) throws(PassFailure) -> [SyncRequest] {
    var requests = try requests(words, flags)
    if words.isEmpty, !isInMirror { requests.removeAll { hasLeftSettings($0) || isOfOtherSettings($0) } }
    if remembers, words.isEmpty { try refuseOptions(flags, forAll: requests) }
    if words.isEmpty, requests.count > 1 { requests.removeAll(where: isOfStandardInput) }
    for index in requests.indices {
      // A mirror of the settings remembers no options.
      let isOfSettings = requests[index].ownOptions.map { $0 != requests[index].options } ?? false
      requests[index].isOnce = isOnce || isOfSettings
    }
    return requests
  }

  private func requests(_ words: [String], _ flags: PassFlags) throws(PassFailure) -> [SyncRequest] {
    var words = words
    if words.count == 2 { words[0] = try StandardInput.resolve(words[0]) }
    let feeds = words.filter { session.tarn.meaning(of: $0) == .feed }
    if feeds.isEmpty {
      let here = session.tarn.mirrorFolder(containing: session.tarn.workingDirectory)
      try session.refuseFaultySettings(words.isEmpty ? here.map { [$0] } ?? [] : words)
    }
    if let feed = feeds.first {
      // A file in the folder's place is no second feed; that it is no folder is reported later.
      let isFolder = words.last.map { session.tarn.meaning(of: $0) != .feed || FeedText.isPath($0) } ?? false
      guard words.count == 2, words[0] == feed, isFolder else {
        throw oddWords(words, feed)
      }
      let folder = session.tarn.absolute(words[1])
      try session.refuseFaultySettings([folder])
      // The word after a FEED is a folder, whatever the names of mirrors are. With the feed of the settings it is that mirror, and
      // their options count.
      if let mirror = session.configured((folder, folder, nil)) {
        guard session.tarn.isFeed(feed, of: mirror) else { throw Self.namesItsFeed(mirror) }
        var request = try request(mirror, flags)
        request.mayBeTheAgents = true
        request.given?.feed = feed
        return [request]
      }
      // Later messages refer to the folder in the words of commands that take mirrors.
      var request = request(feed: feed, folder: session.tarn.word(ofFolder: words[1]), flags)
      request.mayBeTheAgents = true
      return [request]
    }
    if words.count == 2 {
      try refuseMissingFeed(words[0], folder: words[1])
      try refuseMissingScheme(words[0], folder: words[1])
    }
    let places = try places(words)
    if places.count > 1, flags.folder.state != nil {
      throw PassFailure(.usage, code: "usage", "--state goes with one mirror")
    }
    let requests = try places.map { place throws(PassFailure) in
      // One of the settings is also meant by its folder, and then the settings count as well.
      guard let mirror = session.configured(place) else { return request(place, flags) }
      return try request(mirror, flags)
    }
    // A folder is adopted once, so the settings need not have the option. Another user's record would lock the
    // agent out.
    return requests.map { request in
      var request = request
      request.mayBeTheAgents = request.name.map { !flags.onlyAdopts || hasAnotherUsersAgent($0) } ?? true
      return request
    }
  }

  /// Returns whether the agent that has the mirror runs as another user than this command.
  private func hasAnotherUsersAgent(_ name: String) -> Bool {
    guard let answer = AgentLink(session.sources).status(about: name, session), !answer.mirrors.isEmpty,
      let agent = answer.agent
    else { return false }
    // A process of another user may be hidden.
    return TextFile.status("/proc/\(agent.process)")?.st_uid != geteuid()
  }

  /// Returns a pass of one mirror by the word that names it, without further options.
  func request(of word: String, state: String?) -> SyncRequest {
    var request: SyncRequest
    if let settings = session.configured((word, word, nil)) {
      request = SyncRequest(settings, credentials: session.sources.paths.credentials)
    } else {
      request = SyncRequest(feed: nil, folder: word)
    }
    request.state = state ?? request.state
    return request
  }

  /// Returns the mirror that contains the working directory.
  func mirrorHere() throws(PassFailure) -> String {
    guard let here = session.tarn.mirrorFolder(containing: session.tarn.workingDirectory) else {
      throw PassFailure(
        .usage, code: "no-mirror", "this directory is in no mirror",
        hint: "give the name or the folder of one: 'tarn status' lists them")
    }
    return here
  }

  /// Returns the given mirrors, or else the one that contains the working directory, or else all known ones.
  func mirrors(_ words: [String]) throws(PassFailure) -> [String] {
    if !words.isEmpty { return words }
    if let here = session.tarn.mirrorFolder(containing: session.tarn.workingDirectory) { return [here] }
    let known = session.tarn.knownFolders()
    guard known.isEmpty else { return known }
    throw PassFailure(
      .usage, code: "no-mirror", "this directory is in no mirror, and no mirror is known yet",
      hint: "make one with 'tarn sync FEED FOLDER'")
  }

  /// Returns the mirrors with their names: a mirror of the settings or the agent by its name, others by their
  /// folder.
  func places(_ words: [String]) throws(PassFailure) -> [Tarn.Place] {
    let configured = words.isEmpty ? session.sources.checked().settings?.mirrors ?? [] : []
    if words.isEmpty, !isInMirror, !configured.isEmpty {
      // Mirrors without settings are included.
      return distinct(
        configured.map { ($0.name, $0.folder, $0.state) } + session.tarn.knownFolders().map { ($0, $0, nil) })
    }
    return try distinct(
      mirrors(words).map { word in
        if let place = session.tarn.place(of: word) { return (word, place.folder, place.state) }
        return (word, word, nil)
      })
  }

  /// Returns each folder once, by the first word for it.
  private func distinct(_ places: [Tarn.Place]) -> [Tarn.Place] {
    var seen: Set<[UInt8]> = []
    return places.filter { seen.insert(session.tarn.realPlace($0.folder)).inserted }
  }

  /// Returns the mirrors when the settings have errors: those that they name nevertheless are read from their
  /// records.
  func places(_ words: [String], named: [LoadedSettings.Place]) throws(PassFailure) -> [Tarn.Place] {
    let tarn = session.tarn
    func place(_ place: LoadedSettings.Place) -> Tarn.Place { (place.name, place.folder, place.state) }
    if words.isEmpty {
      guard !isInMirror, !named.isEmpty else {
        return try places([])
      }
      return distinct(named.map(place) + tarn.knownFolders().map { ($0, $0, nil) })
    }
    var places: [Tarn.Place] = []
    for word in words {
      if let known = named.first(where: { $0.name.utf8.elementsEqual(word.utf8) }) {
        places.append(place(known))
      } else {
        places += try self.places([word])
      }
    }
    return distinct(places)
  }

  /// True when the working directory is in a mirror's folder, which is meant when no mirror is named.
  private var isInMirror: Bool {
    session.tarn.mirrorFolder(containing: session.tarn.workingDirectory) != nil
  }

  /// True for a mirror that was removed from the settings: only naming it starts a pass. While an agent still
  /// has it, it is the agent's.
  private func hasLeftSettings(_ request: SyncRequest) -> Bool {
    guard request.name == nil,
      session.tarn.hasLeftSettings(folder: request.folder, state: request.state),
      AgentLink(session.sources).name(of: request.folder, session) == nil
    else { return false }
    session.say(
      "\(ShellWord.quote(request.folder)) is left out: the settings no longer name it; "
        + Tarn.stepsIfLeft(request.folder))
    return true
  }

  /// True for a mirror that another file of settings names: what it remembers may not be what that file says by now.
  private func isOfOtherSettings(_ request: SyncRequest) -> Bool {
    guard request.name == nil,
      let file = session.tarn.otherSettings(of: request.folder, state: request.state),
      AgentLink(session.sources).name(of: request.folder, session) == nil
    else { return false }
    session.say(
      "\(ShellWord.quote(request.folder)) is left out: other settings name it; tarn \(command) --config \(ShellWord.quote(file))"
    )
    return true
  }

  /// True for a mirror whose feed is standard input, which belongs to a single mirror. It is left out when no
  /// mirror is named.
  private func isOfStandardInput(_ request: SyncRequest) -> Bool {
    guard request.name == nil,
      (try? session.tarn.remembered(folder: request.folder, state: request.state))?.feed == "-"
    else { return false }
    let folder = ShellWord.quote(request.folder)
    session.say("\(folder) is left out: its feed comes from standard input ('tarn sync - \(folder) < FILE')")
    return true
  }

  /// Removes paused mirrors, for a command that names no mirror.
  func withoutPaused(_ requests: [SyncRequest]) -> [SyncRequest] {
    guard requests.count > 1 else { return requests }
    let answer = try? AgentLink(session.sources).own.status(problemLimit: 0)
    let paused = Set(
      (answer?.mirrors ?? requests.compactMap(record)).filter { $0.state == "paused" }.map(\.name))
    return requests.filter { request in
      guard let name = request.name, paused.contains(name) else { return true }
      session.say(
        "\(ShellWord.quote(name)) is left out: it is paused until 'tarn resume \(ShellWord.quote(name))'")
      return false
    }
  }

  /// Returns the last agent's record of a mirror of the settings.
  private func record(_ request: SyncRequest) -> StatusDocument? {
    guard let settings = request.name.flatMap({ session.configured($0) }) else { return nil }
    return try? session.tarn.status(
      of: settings, among: session.configuredNames, record: session.sources.paths.state, now: session.now,
      problemLimit: 0)
  }

  /// Refuses options without a named mirror: all mirrors that the settings do not name would remember them.
  private func refuseOptions(_ flags: PassFlags, forAll requests: [SyncRequest]) throws(PassFailure) {
    let options = flags.options(workingDirectory: session.tarn.workingDirectory).values
    guard requests.count > 1, !options.isEmpty else { return }
    let known = requests.filter { $0.name == nil && !session.tarn.isLost($0.folder) }
    let folders = known.map { ShellWord.quote($0.folder) }
    guard let first = folders.first else { return }
    let all =
      switch folders.count {
      case 1: first
      case requests.count: "all \(folders.count) known mirrors"
      case let count: "the \(count) mirrors that the settings do not name"
      }
    let given = PassOptions.Name.allCases.filter { options[$0] != nil }.map { "--\($0.rawValue)" }
    throw PassFailure(
      .usage, code: "usage",
      "\(given.joined(separator: ", ")) would be remembered by \(all)",
      hint: "name the mirrors that are meant, such as \(first)"
        + (folders.count == requests.count ? ", or give --once: for this pass" : ""))
  }

  /// Makes the pass of a configured mirror; given options override the settings for this pass.
  private func request(_ settings: MirrorSettings, _ flags: PassFlags) throws(PassFailure) -> SyncRequest {
    guard !flags.folder.changeFeed else { throw Self.namesItsFeed(settings) }
    var request = SyncRequest(settings, credentials: session.sources.paths.credentials)
    request.options = flags.options(workingDirectory: session.tarn.workingDirectory).over(request.options)
    request.state = flags.folder.state ?? request.state
    request.adopt = request.adopt || flags.folder.adopt
    request.recreate = flags.folder.recreate
    request.given = SyncRequest.CommandOverrides(self.request(feed: nil, folder: settings.folder, flags))
    return request
  }

  private static func namesItsFeed(_ mirror: MirrorSettings) -> PassFailure {
    let name = Printable.escape(mirror.name)
    return PassFailure(
      .usage, code: "of-the-settings",
      "'\(name)' is a mirror of the settings, and follows \(Printable.escape(Redaction.text(mirror.feed)))",
      hint: "change feed below \(TOMLText.mirror(name))")
  }

  /// Makes the pass of a mirror that the settings do not name.
  private func request(_ place: Tarn.Place, _ flags: PassFlags) -> SyncRequest {
    request(feed: nil, folder: place.folder, flags)
  }

  private func request(feed: String?, folder: String, _ flags: PassFlags) -> SyncRequest {
    var request = SyncRequest(feed: feed, folder: folder)
    request.state = flags.folder.state
    request.options = flags.options(workingDirectory: session.tarn.workingDirectory)
    request.adopt = flags.folder.adopt
    request.recreate = flags.folder.recreate
    request.changeFeed = flags.folder.changeFeed
    return request
  }

  /// Refuses a first word that is no feed. A mistyped `tarn sync ./SHA256SUM iso`, a file written like a
  /// mirror, or a directory in place of its list would give misleading errors about mirrors.
  private func refuseMissingFeed(_ word: String, folder: String) throws(PassFailure) {
    guard !word.isEmpty else {
      throw PassFailure(
        .usage, code: "empty-name", "the feed's address is empty", hint: "is a variable not set?")
    }
    guard session.tarn.place(of: word) == nil else { return }
    let (quoted, path) = (ShellWord.quote(word), FeedText.isPath(word) ? word : "./" + word)
    switch session.tarn.meaning(of: word) {
    case .file:
      throw PassFailure(
        .usage, code: "feed-not-understood", "\(quoted) is a file, and a feed's path begins with / ./ or ../",
        hint: "tarn \(command) \(ShellWord.quote(path)) \(ShellWord.quote(folder))")
    case .directory where word != folder:
      throw PassFailure(
        .usage, code: "feed-not-a-file", "\(quoted) is a directory: neither a feed nor a mirror",
        hint: FeedWord.list(in: path).map {
          "as a feed, give the list that is in it: tarn \(command) \(ShellWord.quote($0)) \(ShellWord.quote(folder))"
        } ?? "as a feed, give a list of its files; to make one there: sha256sum * > SHA256SUMS")
    case .feed, .directory, .other: break
    }
    guard FeedText.isPath(word), access(word, F_OK) != 0, errno == ENOENT else { return }
    throw PassFailure(
      .feedUnreachable, code: "feed-not-there",
      "cannot read the feed \(ShellWord.quote(word)): there is no such file",
      hint: "check its path, and whether this user may read it")
  }

  /// Refuses addresses as a browser shows them: `example.org/iso/SHA256SUMS`, `localhost:8000/list`,
  /// `http:/host/list`.
  private func refuseMissingScheme(_ word: String, folder: String) throws(PassFailure) {
    var address = word[...]
    var scheme = URLScheme.https
    for written in URLScheme.allCases
    where written.isRemote && address.lowercased().hasPrefix(written.rawValue + ":") {
      scheme = written
      address = address.dropFirst(written.rawValue.count + 1).drop { $0 == "/" }
      break
    }
    guard let slash = address.firstIndex(of: "/"), access(word, F_OK) != 0, errno == ENOENT else { return }
    let parts = address[..<slash].split(separator: ":", omittingEmptySubsequences: false)
    let isHost = parts[0].contains(".") || parts.count == 2 || address.startIndex != word.startIndex
    guard isHost, parts[0].first?.isLetter == true || parts[0].first?.isNumber == true,
      parts.dropFirst().allSatisfy({ UInt16($0) != nil })
    else { return }
    throw PassFailure(
      .usage, code: "feed-not-understood",
      "\(ShellWord.quote(Redaction.value(word))) is no folder that is there, and a feed's URL begins with \(URLScheme.remotePrefixes.joined(separator: " or "))",
      hint:
        "tarn \(command) \(ShellWord.quote(Redaction.value("\(scheme.rawValue)://\(address)"))) \(ShellWord.quote(folder))"
    )
  }

  private func oddWords(_ words: [String], _ feed: String) -> PassFailure {
    let isSwapped = words.count == 2 && words[0] != feed
    let feed = Redaction.value(feed)
    let folder = isSwapped ? ShellWord.quote(words[0]) : "FOLDER"
    return PassFailure(
      .usage, code: "usage",
      words.count == 1
        ? "\(ShellWord.quote(feed)) is a feed, and its folder is missing"
        : "a feed goes with one folder, and before it",
      hint: "tarn \(command) \(ShellWord.quote(feed)) \(folder)")
  }
}

/// A FEED that is a path.
private enum FeedWord {
  /// Returns the checksum list in a directory, under one of the usual names; `nil` when there is none.
  static func list(in directory: String) -> String? {
    let place = directory.hasSuffix("/") ? directory : directory + "/"
    return ["SHA256SUMS", "sha256sum.txt", "SHA512SUMS", "SHA1SUMS", "MD5SUMS"].lazy.map { place + $0 }
      .first { access($0, R_OK) == 0 }
  }
}
