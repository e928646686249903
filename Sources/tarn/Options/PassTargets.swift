import Glibc
import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine

/// Which mirrors the words of a command mean.
struct PassTargets {
  let session: Session

  /// `FEED FOLDER`, mirrors, or none for the mirror of the working directory or else all known ones.
  ///
  /// - Parameter remembers: the mirrors remember the options for later passes.
  /// - Throws: `PassFailure` when the words make no sense together.
  func requests(
    _ words: [String], flags: PassFlags, remembers: Bool = true, isOnce: Bool = false
  ) throws(PassFailure) -> [SyncRequest] {
    var requests = try requests(words, flags)
    if words.isEmpty, !isInMirror { requests.removeAll(where: hasLeftSettings) }
    if remembers, words.isEmpty { try refuseOptions(flags, forAll: requests) }
    if words.isEmpty, requests.count > 1 { requests.removeAll(where: isOfStandardInput) }
    for index in requests.indices {
      // A mirror of the settings remembers nothing.
      let isOfSettings = requests[index].ownOptions.map { $0 != requests[index].options } ?? false
      requests[index].isOnce = isOnce || isOfSettings
    }
    return requests
  }

  private func requests(_ words: [String], _ flags: PassFlags) throws(PassFailure) -> [SyncRequest] {
    session.warn(ofRate: flags.network.limitRate)
    var words = words
    if words.count == 2 { words[0] = try StandardInput.resolve(words[0]) }
    let feeds = words.filter { session.tarn.meaning(of: $0) == .feed }
    if feeds.isEmpty {
      let here = session.tarn.mirrorFolder(containing: session.tarn.workingDirectory)
      try session.refuseFaultySettings(words.isEmpty ? here.map { [$0] } ?? [] : words)
    }
    if let feed = feeds.first {
      // A file in the folder's place is no second feed: that it is no folder is said later.
      let isFolder = words.last.map { session.tarn.meaning(of: $0) != .feed || FeedWord.isPath($0) } ?? false
      guard words.count == 2, words[0] == feed, isFolder else {
        throw Self.oddWords(words, feed)
      }
      let folder = session.tarn.absolute(words[1])
      try session.refuseFaultySettings([folder])
      if flags.folder.changeFeed, let name = session.configured((words[1], folder, nil))?.name {
        throw Self.namesItsFeed(name)
      }
      // What is said of it later is said in words of commands that take mirrors.
      var request = request(feed: feed, folder: session.tarn.word(ofFolder: words[1]), flags)
      request.mayBeTheAgents = true
      request.isDryRun = session.onlyPlans(session.tarn.absolute(words[1]))
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
    let settings = session.sources.checked().settings
    let requests = try places.map { place throws(PassFailure) in
      guard let mirror = settings?.mirror(place.name) else { return request(place, flags) }
      return try request(mirror, flags)
    }
    return requests.map { request in
      var request = request
      // A folder is taken once, and for that the settings need not say it for ever.
      request.mayBeTheAgents = request.name == nil || !flags.onlyAdopts
      return request
    }
  }

  /// A pass of one mirror by the word that names it, without options of its own.
  func request(of word: String, state: String?) -> SyncRequest {
    var request: SyncRequest
    if session.tarn.place(of: word) != nil, let settings = session.configured(word) {
      request = SyncRequest(settings, credentials: session.sources.paths.credentials)
    } else {
      request = SyncRequest(feed: nil, folder: word)
      request.isDryRun = session.onlyPlans(word)
    }
    request.state = state ?? request.state
    return request
  }

  /// The given mirrors, or else the one that the working directory lies in, or else all that are known.
  func mirrors(_ words: [String]) throws(PassFailure) -> [String] {
    if !words.isEmpty { return words }
    if let here = session.tarn.mirrorFolder(containing: session.tarn.workingDirectory) { return [here] }
    let known = session.tarn.knownFolders()
    guard known.isEmpty else { return known }
    throw PassFailure(
      .usage, code: "no-mirror", "this directory is in no mirror, and no mirror is known yet",
      hint: "make one with 'tarn sync FEED FOLDER'")
  }

  /// The same, with what they are called: a mirror of the settings or the agent by its name, others by their folder.
  func places(_ words: [String]) throws(PassFailure) -> [Tarn.Place] {
    let configured = words.isEmpty ? session.sources.checked().settings?.mirrors ?? [] : []
    if words.isEmpty, !isInMirror, !configured.isEmpty {
      // Those that are followed without settings as well.
      return distinct(
        configured.map { ($0.name, $0.folder, $0.state) } + session.tarn.knownFolders().map { ($0, $0, nil) })
    }
    return try distinct(
      mirrors(words).map { word in
        if let place = session.tarn.place(of: word) { return (word, place.folder, place.state) }
        return (word, word, nil)
      })
  }

  /// Each folder once, by the first word for it.
  private func distinct(_ places: [Tarn.Place]) -> [Tarn.Place] {
    var seen: Set<[UInt8]> = []
    return places.filter { seen.insert(session.tarn.realPlace($0.folder)).inserted }
  }

  /// The same where the settings have errors: the mirrors that they name all the same are looked at in their records.
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

  /// The command is given in the folder of a mirror, which is meant where nobody names any.
  private var isInMirror: Bool {
    session.tarn.mirrorFolder(containing: session.tarn.workingDirectory) != nil
  }

  /// One that was taken out of the settings goes on only by a word for it; as long as an agent has it still, it is the agent's.
  private func hasLeftSettings(_ request: SyncRequest) -> Bool {
    guard request.name == nil,
      session.tarn.hasLeftSettings(folder: request.folder, state: request.state),
      AgentLink(session.sources).name(of: request.folder, session) == nil
    else { return false }
    session.say(
      "\(ShellWord.quote(request.folder)) is left out: the settings name it no more; "
        + Tarn.stepsIfLeft(request.folder))
    return true
  }

  /// What stands on standard input is for one mirror, and is not meant for it where nobody names it.
  private func isOfStandardInput(_ request: SyncRequest) -> Bool {
    guard request.name == nil,
      (try? session.tarn.remembered(folder: request.folder, state: request.state))?.feed == "-"
    else { return false }
    let folder = ShellWord.quote(request.folder)
    session.say("\(folder) is left out: its feed comes by standard input ('tarn sync - \(folder) < FILE')")
    return true
  }

  /// Those that are to be synced when nobody names any: a paused mirror is not.
  func withoutPaused(_ requests: [SyncRequest]) -> [SyncRequest] {
    guard requests.count > 1 else { return requests }
    let answer = try? AgentLink(session.sources).status(problemLimit: 0)
    let paused = Set(
      (answer?.mirrors ?? requests.compactMap(record)).filter { $0.state == "paused" }.map(\.name))
    return requests.filter { request in
      guard let name = request.name, paused.contains(name) else { return true }
      session.say(
        "\(ShellWord.quote(name)) is left out: it is paused until 'tarn resume \(ShellWord.quote(name))'")
      return false
    }
  }

  /// What the last agent wrote down of a mirror of the settings.
  private func record(_ request: SyncRequest) -> StatusDocument? {
    guard let settings = request.name.flatMap({ session.configured($0) }) else { return nil }
    return try? session.tarn.status(
      of: settings, among: session.configuredNames, record: session.sources.paths.state, now: session.now,
      problemLimit: 0)
  }

  /// Mirrors that the settings do not name remember options: those of a command that names no mirror would change the ways of
  /// all of these.
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

  /// Of a configured mirror: what is given now goes before the settings, for this pass.
  private func request(_ settings: MirrorSettings, _ flags: PassFlags) throws(PassFailure) -> SyncRequest {
    guard !flags.folder.changeFeed else { throw Self.namesItsFeed(settings.name) }
    var request = SyncRequest(settings, credentials: session.sources.paths.credentials)
    request.options = flags.options(workingDirectory: session.tarn.workingDirectory).over(request.options)
    request.state = flags.folder.state ?? request.state
    request.adopt = request.adopt || flags.folder.adopt
    request.recreate = flags.folder.recreate
    request.given = SyncRequest.CommandOverrides(self.request(feed: nil, folder: settings.folder, flags))
    return request
  }

  private static func namesItsFeed(_ name: String) -> PassFailure {
    let name = Printable.escape(name)
    return PassFailure(
      .usage, code: "of-the-settings",
      "'\(name)' is a mirror of the settings, and follows the feed that they name",
      hint: "change feed below [mirror.\(name)]")
  }

  /// Of a mirror that goes by its folder: where the settings have that folder, and only plan there, so does this pass.
  private func request(_ place: Tarn.Place, _ flags: PassFlags) -> SyncRequest {
    var request = request(feed: nil, folder: place.folder, flags)
    request.isDryRun = session.onlyPlans(place.folder)
    return request
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

  /// `tarn sync ./SHA256SUM iso` with a slip in the name would else complain of a mirror, and so would a file written
  /// as a mirror, or a directory where the list in it was meant.
  private func refuseMissingFeed(_ word: String, folder: String) throws(PassFailure) {
    guard !word.isEmpty else {
      throw PassFailure(
        .usage, code: "empty-name", "the feed's address is empty", hint: "is a variable not set?")
    }
    guard session.tarn.place(of: word) == nil else { return }
    let (quoted, path) = (ShellWord.quote(word), FeedWord.isPath(word) ? word : "./" + word)
    switch session.tarn.meaning(of: word) {
    case .file:
      throw PassFailure(
        .usage, code: "feed-not-understood", "\(quoted) is a file, and a feed's path begins with / ./ or ../",
        hint: "tarn sync \(ShellWord.quote(path)) \(ShellWord.quote(folder))")
    case .directory where word != folder:
      throw PassFailure(
        .usage, code: "feed-not-a-file", "\(quoted) is a directory: neither a feed nor a mirror",
        hint: FeedWord.list(in: path).map {
          "as a feed, give the list that is in it: tarn sync \(ShellWord.quote($0)) \(ShellWord.quote(folder))"
        } ?? "as a feed, give a list of its files; to make one there: sha256sum * > SHA256SUMS")
    case .feed, .directory, .other: break
    }
    guard FeedWord.isPath(word), access(word, F_OK) != 0, errno == ENOENT else { return }
    throw PassFailure(
      .feedUnreachable, code: "feed-not-there",
      "cannot read the feed \(ShellWord.quote(word)): there is no such file",
      hint: "check its path, and whether this user may read it")
  }

  /// As addresses are copied from a browser: `example.org/iso/SHA256SUMS`, `localhost:8000/list`, `http:/host/list`.
  private func refuseMissingScheme(_ word: String, folder: String) throws(PassFailure) {
    var address = word[...]
    var scheme = "https"
    for written in ["https", "http"] where address.lowercased().hasPrefix(written + ":") {
      scheme = written
      address = address.dropFirst(written.count + 1).drop { $0 == "/" }
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
      "\(ShellWord.quote(Redaction.value(word))) is no folder that is there, and a feed's URL begins with http:// or https://",
      hint:
        "tarn sync \(ShellWord.quote(Redaction.value("\(scheme)://\(address)"))) \(ShellWord.quote(folder))")
  }

  private static func oddWords(_ words: [String], _ feed: String) -> PassFailure {
    let isSwapped = words.count == 2 && words[0] != feed
    let feed = Redaction.value(feed)
    let folder = isSwapped ? ShellWord.quote(words[0]) : "FOLDER"
    return PassFailure(
      .usage, code: "usage",
      words.count == 1
        ? "\(ShellWord.quote(feed)) is a feed, and its folder is missing"
        : "a feed goes with one folder, and before it",
      hint: "tarn sync \(ShellWord.quote(feed)) \(folder)")
  }
}

/// A FEED that is a path.
private enum FeedWord {
  static func isPath(_ word: String) -> Bool {
    word.hasPrefix("/") || word.hasPrefix("./") || word.hasPrefix("../")
  }

  /// The checksum list that lies in a directory, under one of the usual names; nil where none does.
  static func list(in directory: String) -> String? {
    let place = directory.hasSuffix("/") ? directory : directory + "/"
    return ["SHA256SUMS", "sha256sum.txt", "SHA512SUMS", "SHA1SUMS", "MD5SUMS"].lazy.map { place + $0 }
      .first { access($0, R_OK) == 0 }
  }
}
