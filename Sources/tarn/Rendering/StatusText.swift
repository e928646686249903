import TarnAgent
import TarnCore
import TarnEngine

/// The state of mirrors at a glance, for people.
enum StatusText {
  /// Returns the status of one mirror.
  ///
  /// - Parameter isLong: true to show its options, and all of its known transfers.
  static func card(
    _ document: StatusDocument, now: Timestamp, style: Style, isLong: Bool = false
  ) -> [String] {
    var page = page(document, now: now, style: style)
    if isLong, let options = options(document) { page.head.append(row("options", options)) }
    page.transfers = isLong ? allTransfers(document) : transfers(document, most: mostTransfers)
    return page.head + page.transfers.lines + page.problems.lines + page.next
  }

  /// Returns the status of one mirror, in parts.
  private static func page(_ document: StatusDocument, now: Timestamp, style: Style) -> StatusPage {
    let state = word(document)
    let mirror = called(document)
    var rows =
      isUnread(document)
      ? [] : [("feed", feed(document)), ("last success", moment(document.lastSuccess, now: now))]
    // Both are RFC 3339 in UTC, so they sort as text.
    if let attempt = document.lastAttempt, attempt > document.lastSuccess ?? "" {
      rows.append(("last pass", moment(attempt, now: now)))
    }
    if let verified = document.verifiedAt { rows.append(("verified", moment(verified, now: now))) }
    if let next = nextRun(document, now: now) {
      rows.append(("next run", next))
    } else if document.awaitsReload == true {
      rows.append(("next run", awaitsReload))
    } else if hasName(document), !hasAgent(document), document.process == nil {
      rows.append(("next run", "by command or timer; no agent keeps it"))
    }
    if let until = wish(document) {
      rows.append(("server", "asked to be left alone until \(Printable.escape(until))"))
    }
    if !isUnread(document), document.feedBefore == nil { rows.append(("entries", entries(document))) }
    if let progress = progress(document) { rows.append(("progress", progress)) }
    if let watch = watch(document) { rows.append(("folder", watch)) }
    if let repair = document.lastRepair {
      rows.append(("last repair", "\(Message.safe(repair.changes)), \(moment(repair.ended, now: now))"))
    }
    if let last = document.lastRun, last.code == "planned" {
      rows.append(("plan", Message.safe(last.message)))
    }
    if document.leftSettings == true {
      rows.append(("settings", "no longer name it: passes and checks of all mirrors leave it out"))
    }
    if let failure = document.lastFailure { rows.append(("failure", Message.safe(failure))) }
    if let hint = hint(document) { rows.append(("hint", Message.safe(hint))) }
    if document.trashFiles > 0 {
      rows.append(
        ("trash", "\(Numbers.count(document.trashFiles, "file")), \(Units.show(document.trashBytes))"))
    }
    if let reason = document.incompleteReason, PassOptions(named: document.options ?? [:]).isOn(.delete) {
      rows.append(("deletions", "none: the list may not be whole: \(Message.safe(reason))"))
    }
    if let held = document.held {
      let why = held.reason.map { " (\(Message.safe($0)))" } ?? ""
      rows.append(("held", "\(Numbers.count(held.deletions, "deletion")) in plan \(held.plan)\(why)"))
    }
    // Other users are not told where the folder is: then it has the mirror's name, or a last name alone.
    let isTold = document.folder.hasPrefix("/") || document.folder != document.name
    let place = hasName(document) && isTold ? "\(Printable.escape(document.name)) in " : ""
    let head = "\(place)\(Printable.escape(document.folder)): \(style.paint(state.text, state.paint))"
    return StatusPage(
      head: [head] + rows.map(row),
      problems: problems(document, mirror: mirror, style: style), transfers: transfers(document),
      next: command(document, mirror: mirror).map { ["next: \($0)"] } ?? [])
  }

  private static let awaitsReload = "by command; the agent has not read these settings yet"

  private static func row(_ title: String, _ text: String) -> String {
    "  \(Columns.padded(title, 12))  \(text)"
  }

  /// Returns `--delete --limit-rate 500KiB/s` and the origin of the options; `nil` when they are unknown.
  private static func options(_ document: StatusDocument) -> String? {
    guard let named = document.options else { return nil }
    let words = Message.safe(PassOptions(named: named).words.joined(separator: " "))
    if hasName(document) { return words.isEmpty ? "none in its settings" : "\(words) (of its settings)" }
    return words.isEmpty
      ? "none remembered"
      : "\(words) (remembered; to take one back: tarn config unset \(called(document)) OPTION)"
  }

  /// Returns the options of one mirror as a line, for a list of several.
  static func optionLines(_ document: StatusDocument) -> [String] {
    options(document).map { ["options of \(called(document)): \($0)"] } ?? []
  }

  /// Returns `43%, 610 MiB of 1.4 GiB, 12.3 MiB/s, ETA 0:42`; `nil` while no files are transferred.
  ///
  /// - Parameter isShort: true to leave out the bytes.
  private static func progress(_ document: StatusDocument, isShort: Bool = false) -> String? {
    guard document.process != nil, let progress = document.progress else { return nil }
    return ProgressText.share(progress, countsFiles: false, countsBytes: !isShort).joined(separator: ", ")
  }

  /// True when an agent has told the status, false when it is from the ledger.
  private static func hasAgent(_ document: StatusDocument) -> Bool { document.nextRunReason != nil }

  /// Returns how the folder is watched; `nil` without an agent.
  private static func watch(_ document: StatusDocument) -> String? {
    guard hasAgent(document) else { return nil }
    switch document.watch.mode {
    case "watching":
      let reason = document.watch.reason
      let isTold = !reason.isEmpty && reason != StatusAnswer.withheld
      return isTold ? "watched; \(Message.safe(reason))" : "watched"
    case "off": return "not watched: \(Message.safe(document.watch.reason))"
    default:
      return "not watched, and looked through every few minutes: \(Message.safe(document.watch.reason))"
    }
  }

  /// True when an agent keeps the mirror and cannot watch it.
  private static func isPolled(_ document: StatusDocument) -> Bool {
    hasAgent(document) && document.watch.mode == "polling"
      && document.watch.reason != WatchState.starting && document.lastAttempt != nil
  }

  /// Returns why a mirror is not watched, as one line for a list of several; `nil` when it is.
  private static func polling(_ document: StatusDocument) -> String? {
    guard isPolled(document), let watch = watch(document) else { return nil }
    return "  \(called(document)): \(watch)"
  }

  /// Returns one line for a list of several when the agent does not keep the mirror yet; otherwise `nil`.
  private static func unkept(_ document: StatusDocument) -> String? {
    document.awaitsReload == true ? "  \(called(document)): next run \(awaitsReload)" : nil
  }

  /// Returns the name of a configured mirror, or the folder of another one, as a word of a command.
  private static func called(_ document: StatusDocument) -> String {
    ShellWord.quote(hasName(document) ? document.name : document.folder)
  }

  /// Returns the name of a configured mirror, or the folder of another one, for a list of several.
  private static func title(_ document: StatusDocument, _ shared: Set<String>) -> String {
    Printable.escape(hasName(document) ? document.shownName(among: shared) : document.folder)
  }

  private static func hasName(_ document: StatusDocument) -> Bool {
    !document.name.isEmpty && !document.name.contains("/")
  }

  /// Returns the status of several mirrors.
  ///
  /// - Parameters:
  ///   - width: the columns of the terminal; `nil` when lines may have any length.
  ///   - names: the mirrors whose failures are explained elsewhere.
  static func table(
    _ documents: [StatusDocument], now: Timestamp, style: Style, width: Int? = nil,
    explained names: [String] = []
  ) -> [String] {
    let page = page(documents, now: now, style: style, width: width)
    let others = documents.filter { !names.contains($0.name) }
    let reasons = others.compactMap(reason)
    return page.mirrors.lines + (reasons.isEmpty ? [] : ["problems:"]) + reasons
      + others.compactMap(polling)
      + others.compactMap { document in leftOut(document).map { "  \(called(document)): \($0)" } }
      + documents.compactMap(unkept) + page.next
  }

  /// Returns a live screen. For several mirrors it has their table, and the transfers and problems of all of
  /// them.
  static func live(
    _ documents: [StatusDocument], now: Timestamp, style: Style, width: Int? = nil
  ) -> StatusPage {
    if documents.count == 1 { return page(documents[0], now: now, style: style) }
    return documents.isEmpty ? StatusPage() : page(documents, now: now, style: style, width: width)
  }

  private static func page(
    _ documents: [StatusDocument], now: Timestamp, style: Style, width: Int?
  ) -> StatusPage {
    // First what only a person can resolve: other problems may resolve themselves.
    let urgent = documents.filter { $0.held != nil } + documents.filter { $0.held == nil }
    var next: [String] = []
    for document in urgent {
      // One reload serves all mirrors.
      guard let command = command(document, mirror: called(document)), !next.contains("next: \(command)")
      else { continue }
      next.append("next: \(command)")
    }
    var page = beside(documents, style: style)
    page.mirrors = mirrors(documents, now: now, style: style)
    if let width,
      ([page.mirrors.title] + page.mirrors.rows).contains(where: { Columns.styledWidth($0) > width })
    {
      let shared = documents.sharedNames
      page.mirrors = StatusPage.Section(
        rows: documents.map { paragraph($0, shared, now: now, style: style) })
    }
    page.next = Array(next.prefix(mostNext))
    let more = next.count - page.next.count
    if more > 0 {
      page.next.append(
        "\(Numbers.grouped(more)) more of them have a next step, which the status of each says")
    }
    return page
  }

  private static let mostNext = 3

  /// Returns a mirror in two lines, when the terminal is too narrow for a table.
  private static func paragraph(
    _ document: StatusDocument, _ shared: Set<String>, now: Timestamp, style: Style
  ) -> String {
    let state = word(document)
    let name = title(document, shared)
    let progress = progress(document).map { ", \($0)" } ?? ""
    let success = isUnread(document) ? "unknown" : age(document.lastSuccess, now: now)
    let next = nextRun(document, now: now).map { ", next run \($0)" } ?? ""
    return "\(name): \(style.paint(state.text, state.paint))\(progress)\n"
      + "  \(Numbers.grouped(document.entries.current))/\(Numbers.grouped(document.entries.wanted)) entries, "
      + "\(Units.show(document.bytes.current)), last success \(success)\(next)"
  }

  private static func mirrors(
    _ documents: [StatusDocument], now: Timestamp, style: Style
  ) -> StatusPage.Section {
    let isPlanned = documents.contains { $0.nextRunReason != nil }
    let isMoving = documents.contains { progress($0) != nil }
    let last = [isMoving ? "PROGRESS" : nil, isPlanned ? "NEXT RUN" : nil].compactMap { $0 }
    let titles =
      ["MIRROR", "STATE", "ENTRIES", "SIZE", "LAST SUCCESS"]
      + (last.isEmpty ? [] : [last.joined(separator: ", ")])
    let head = titles.map { Table.Cell($0, .faint) }
    let shared = documents.sharedNames
    let rows = documents.map { document -> [Table.Cell] in
      let state = word(document)
      return [
        Table.Cell(title(document, shared)),
        Table.Cell(
          state.text + (isPolled(document) ? ", not watched" : "")
            + (document.leftSettings == true ? ", left out" : ""), state.paint),
        Table.Cell(
          "\(Numbers.grouped(document.entries.current))/\(Numbers.grouped(document.entries.wanted))"),
        Table.Cell(Units.show(document.bytes.current)),
        Table.Cell(isUnread(document) ? "unknown" : age(document.lastSuccess, now: now)),
      ]
        + (last.isEmpty
          ? [] : [Table.Cell(progress(document, isShort: true) ?? nextRun(document, now: now) ?? "")])
    }
    let table = Table.lines([head] + rows, right: [2, 3], style: style)
    return StatusPage.Section(title: table[0], rows: Array(table.dropFirst()))
  }

  /// Returns what a live screen shows below the table of several mirrors: transfers and problems of all of
  /// them.
  private static func beside(_ documents: [StatusDocument], style: Style) -> StatusPage {
    var all = StatusDocument(name: "", feed: "", folder: "", state: "idle")
    for document in documents {
      let mirror = hasName(document) ? document.name : document.folder
      all.transfers += listed(document).map { transfer in
        var transfer = transfer
        transfer.path = "\(Printable.escape(mirror)): \(transfer.path)"
        return transfer
      }
      all.waitingTransfers = (all.waitingTransfers ?? 0) + waiting(document)
      all.moreProblems += max(0, document.problems.count - 5) + document.moreProblems
      all.problems += document.problems.prefix(5).map { problem in
        var problem = problem
        problem.path = "\(Printable.escape(mirror)): \(problem.path)"
        return problem
      }
    }
    let failures = documents.filter { $0.lastFailure != nil }.compactMap(reason)
    var problems = problems(all, mirror: "", style: style)
    problems.rows = failures + problems.rows
    if !failures.isEmpty { problems.title = "problems:" }
    return StatusPage(problems: problems, transfers: transfers(all))
  }

  /// Returns why a mirror is failing, as one line for a list of several; `nil` when it is not failing.
  private static func reason(_ document: StatusDocument) -> String? {
    if let failure = document.lastFailure {
      let mend = hint(document).map { "; \(Message.safe($0))" } ?? ""
      return "  \(called(document)): \(Brief.text(failure))\(mend)"
    }
    guard document.state == "failing", let first = document.problems.first else { return nil }
    let others = document.problems.count - 1 + document.moreProblems
    return
      "  \(called(document)): \(Message.safe(first.path)): \(Brief.text(first.message)) [\(first.code)]"
      + (others > 0 ? ", and \(Numbers.count(others, "more problem"))" : "")
  }

  // MARK: Parts

  static func word(_ document: StatusDocument) -> (text: String, paint: Style.Paint) {
    switch document.state {
    case "idle" where document.dryRun == true: ("dry run", .warning)
    case "idle": document.lastSuccess == nil ? ("never synced", .warning) : ("in sync", .good)
    case "held", "interrupted", "paused": (document.state, .warning)
    case "failing": ("failing", .bad)
    // The lines about the agent show its process.
    case _ where document.run != nil: (document.state, .strong)
    default: (document.process.map { "\(document.state), process \($0)" } ?? document.state, .strong)
    }
  }

  /// True when nothing is known of the mirror but the reason why.
  private static func isUnread(_ document: StatusDocument) -> Bool {
    document.feed.isEmpty && document.lastFailure != nil && document.lastSuccess == nil
      && document.lastAttempt == nil
  }

  /// Returns `in 5 minutes`, `now` or `in 2 minutes (after a failure)`; `nil` when nothing is planned.
  private static func nextRun(_ document: StatusDocument, now: Timestamp) -> String? {
    guard let reason = document.nextRunReason else { return nil }
    guard let at = document.nextRun.flatMap({ Timestamp(rfc3339: $0) }) else {
      return reason == "paused" ? "paused" : document.process == nil ? "by command only" : nil
    }
    let seconds = at.seconds - now.seconds
    let when = seconds < 1 ? "now" : "in \(Durations.span(seconds))"
    // A pass whose time is still to come is not overdue.
    if reason == "catching-up", document.lastAttempt == nil || seconds >= 1 { return when }
    let why =
      ["backing-off": " (after a failure)", "catching-up": " (overdue)", "asked": " (as the server asked)"][
        reason]
    return when + (why ?? "")
  }

  /// True when the agent has just begun to keep the mirror, and its first pass is still to come.
  private static func isYetToBegin(_ document: StatusDocument) -> Bool {
    document.nextRunReason == "catching-up" && document.lastAttempt == nil && document.lastFailure == nil
  }

  private static func feed(_ document: StatusDocument) -> String {
    if let before = document.feedBefore {
      let folder = "the folder is of \(Printable.escape(before))"
      return "\(Printable.escape(document.feed)); this feed was not read yet, and \(folder)"
    }
    let format = document.format.flatMap { $0.isEmpty ? nil : " (\(Message.safe($0)))" } ?? ""
    return Printable.escape(document.feed) + format
  }

  private static func entries(_ document: StatusDocument) -> String {
    let counts = document.entries
    let named: [(Int, String)] = [
      (counts.pending, "pending"), (counts.failed, "failed"), (counts.refused, "refused"),
      (counts.conflict, "in conflict"), (counts.kept, "left as changed here (--local-changes keep)"),
      (document.bytes.unknownSizes, "of unknown size"),
    ]
    if let leftOut = leftOut(document) { return "none: \(leftOut)" }
    let current = "\(Numbers.grouped(counts.current)) of \(Numbers.grouped(counts.wanted)) current"
    let size = document.bytes.current > 0 ? [Units.show(document.bytes.current)] : []
    let others = named.filter { $0.0 > 0 }.map { "\(Numbers.grouped($0.0)) \($0.1)" }
    return ([current] + size + others).joined(separator: ", ")
  }

  /// Tells that the feed names nothing, or that nothing it names is wanted; otherwise `nil`.
  private static func leftOut(_ document: StatusDocument) -> String? {
    // No pass has read the feed.
    guard document.format != nil else { return nil }
    // Without the options each of them may be the reason.
    let age = document.options == nil ? "" : document.options?[PassOptions.Name.maxAge.rawValue]?.last
    let patterns = [PassOptions.Name.include, .exclude].flatMap { document.options?[$0.rawValue] ?? [] }
    return PassWords.leftOut(
      wanted: document.entries.wanted, excluded: document.entries.excluded ?? 0,
      hasPatterns: document.options == nil || !patterns.allSatisfy(\.isEmpty), maxAge: age)
  }

  static func age(_ text: String?, now: Timestamp) -> String {
    guard let text else { return "never" }
    return Timestamp(rfc3339: text).map { Durations.ago($0, now: now) } ?? Printable.escape(text)
  }

  private static func moment(_ text: String?, now: Timestamp) -> String {
    guard let text else { return "never" }
    return "\(age(text, now: now)) (\(Printable.escape(text)))"
  }

  /// The transfers shown for one mirror outside of a live screen, at most.
  static let mostTransfers = 10

  private static func waiting(_ document: StatusDocument) -> Int {
    document.waitingTransfers ?? document.transfers.count { $0.isWaiting }
  }

  /// Returns the transfers, with the feed as one of them.
  private static func listed(_ document: StatusDocument) -> [StatusDocument.Transfer] {
    guard let feed = document.feedTransfer else { return document.transfers }
    let first = StatusDocument.Transfer(
      path: "the feed", received: feed.received, total: feed.total, rate: feed.rate, source: document.feed)
    return [first] + document.transfers
  }

  /// Returns the running transfers, and the number of those that wait.
  static func transfers(_ document: StatusDocument, most: Int = .max) -> StatusPage.Section {
    let running = listed(document).filter { !$0.isWaiting }
    let waiting = waiting(document)
    let sentence = "\(Numbers.grouped(waiting)) waiting for a connection"
    guard !running.isEmpty else {
      return waiting > 0
        ? StatusPage.Section(title: "transfers:", rows: ["  \(sentence)"]) : StatusPage.Section()
    }
    let telling = running.filter { ProgressText.isTelling(received: $0.received, total: $0.total) }
    let title = waiting > 0 ? "transfers (\(sentence)):" : "transfers:"
    guard !telling.isEmpty else {
      return StatusPage.Section(
        title: title, rows: ["  \(Numbers.count(running.count, "file")), small or just begun"])
    }
    return StatusPage.Section(
      title: title, rows: rows(telling.prefix(most)), more: running.count - min(telling.count, most))
  }

  /// Returns all transfers, with the names of those that wait.
  private static func allTransfers(_ document: StatusDocument) -> StatusPage.Section {
    let listed = listed(document)
    guard !listed.isEmpty else { return transfers(document) }
    let unnamed = waiting(document) - document.transfers.count { $0.isWaiting }
    return StatusPage.Section(
      title: "transfers:", rows: rows(listed[...]), more: max(0, unnamed))
  }

  private static func rows(_ transfers: ArraySlice<StatusDocument.Transfer>) -> [String] {
    let rows = transfers.map { transfer -> [Table.Cell] in
      if transfer.isWaiting {
        return ["", "waiting", "", "", Message.safe(transfer.path)].map { Table.Cell($0) }
      }
      let amount =
        transfer.total.map { Numbers.part(transfer.received, of: $0) } ?? Units.show(transfer.received)
      let percent = transfer.total.flatMap { Numbers.percent(transfer.received, of: $0) } ?? ""
      return [percent, amount, Numbers.rate(transfer.rate), left(transfer), Message.safe(transfer.path)].map {
        Table.Cell($0)
      }
    }
    return Table.lines(rows, right: [0, 1, 2, 3], style: Style(isOn: false)).map { "  \($0)" }
  }

  /// Returns the time that is left at this rate; empty when it is unknown.
  private static func left(_ transfer: StatusDocument.Transfer) -> String {
    guard let total = transfer.total, total > transfer.received, transfer.rate > 0 else { return "" }
    return Durations.clock(Double(total - transfer.received) / Double(transfer.rate))
  }

  /// - Parameter mirror: the mirror for the command that shows all problems; empty for none.
  private static func problems(
    _ document: StatusDocument, mirror: String, style: Style
  ) -> StatusPage.Section {
    guard !document.problems.isEmpty else { return StatusPage.Section() }
    let width = document.problems.map(\.kind.count).max() ?? 0
    let groups = ProblemGroup.groups(of: document.problems) {
      SharedCause.of(code: $0.code, message: $0.message)
    }
    let rows = groups.map { group in
      let problem = group.first
      let attempts = problem.attempts > 1 ? ", \(Numbers.grouped(problem.attempts)) passes" : ""
      let text = group.text(name: Message.safe(problem.path), message: problem.message)
      return
        "  \(style.paint(Columns.padded(problem.kind, width), .bad))  \(text) [\(problem.code)\(attempts)]"
    }
    // With -v no more problems are listed than that.
    let isAll = mirror.isEmpty || document.problems.count >= PassReport.mostProblems
    return StatusPage.Section(
      title: "problems:", rows: rows, more: document.moreProblems,
      command: isAll ? "" : "tarn status -v \(mirror)")
  }

  /// Returns how to correct the failure of the last pass, when another pass alone would fail again.
  static func hint(_ document: StatusDocument) -> String? {
    guard document.process == nil else { return nil }
    return document.hint ?? failedRun(document)?.hint
  }

  /// Returns the agent's last pass when it is the reason why the mirror is failing.
  private static func failedRun(_ document: StatusDocument) -> StatusDocument.LastRun? {
    document.lastRun.flatMap { $0.message == document.lastFailure ? $0 : nil }
  }

  /// True when the failure is about permission or the folder itself: a sync by hand fails in the same way.
  private static func isFutile(_ document: StatusDocument) -> Bool {
    [PassFailure.Kind.permission, .folderUnusable].contains {
      $0.exitStatus == failedRun(document)?.exitStatus
    }
  }

  /// The time until which the server wants to be left alone; `nil` when it does not. Also `nil` when all is
  /// well, for a feed may ask to be read seldom.
  private static func wish(_ document: StatusDocument) -> String? {
    document.state == "failing" ? document.askedUntil : nil
  }

  /// Returns the command to type next; `nil` when there is nothing to do.
  private static func command(_ document: StatusDocument, mirror: String) -> String? {
    if document.process != nil || isYetToBegin(document) { return nil }
    // Who is not told where the folder is may give no orders either.
    guard document.folder.hasPrefix("/") else { return nil }
    if document.leftSettings == true {
      return "tarn forget \(mirror); or, to keep what the settings no longer name: tarn sync \(mirror)"
    }
    if document.awaitsReload == true { return "tarn reload" }
    if lacksSpace(document) { return "tarn trash empty \(mirror)" }
    if document.state == "paused" {
      let command = "tarn resume \(mirror)"
      guard hasAgent(document) else { return "start an agent (\(AgentText.start)), then: \(command)" }
      return hint(document) == nil ? command : "follow the hint, then: \(command)"
    }
    // With dry-run there is nothing to approve.
    // What stops passes comes first, and the set may not be held by the next one.
    if let held = document.held, document.lastFailure == nil, document.state != "interrupted",
      document.dryRun != true
    {
      // The files of the list have to arrive before the old ones are deleted.
      if let paused = pausedPath(document) { return "tarn resume \(mirror):\(paused)" }
      let isMissing = document.entries.failed + document.entries.conflict > 0
      let step = isMissing ? explainFirst(document, mirror: mirror) : nil
      return step ?? "tarn approve \(mirror) \(held.plan)"
    }
    if hint(document) != nil || isFutile(document) { return nil }
    if document.dryRun == true { return "tarn plan \(mirror)" }
    guard document.state != "idle" || document.lastSuccess == nil, wish(document) == nil else { return nil }
    if let paused = pausedPath(document) { return "tarn resume \(mirror):\(paused)" }
    if !document.problems.isEmpty, needsPerson(document) {
      return explainFirst(document, mirror: mirror)
    }
    // A new ledger, in place of a damaged or lost one, remembers no feed.
    return document.feed.isEmpty && !hasName(document) ? "tarn sync FEED \(mirror)" : "tarn sync \(mirror)"
  }

  private static func explainFirst(_ document: StatusDocument, mirror: String) -> String? {
    document.problems.lazy.compactMap { SyncSummary.explain($0.name, mirror: mirror) }.first
  }

  /// True when everything left is in conflict, refused or gone from its server: another pass would find the
  /// same.
  private static func needsPerson(_ document: StatusDocument) -> Bool {
    let counts = document.entries
    guard document.state == "failing", document.lastFailure == nil, counts.pending == 0,
      counts.conflict + counts.refused + counts.failed > 0
    else { return false }
    let failed = document.problems.filter { $0.kind == Problem.Kind.failed.rawValue }
    return failed.count >= counts.failed
      && failed.allSatisfy { ProblemAdvice.isLasting($0.code) || $0.attempts >= ProblemAdvice.repeated }
  }

  /// True when a file found no space, and the trash could give some back.
  private static func lacksSpace(_ document: StatusDocument) -> Bool {
    document.trashBytes > 0 && document.problems.contains { ProblemAdvice.isLackOfSpace($0.code) }
  }

  /// Returns the first path, as part of a word, when only paused transfers are left: no pass begins them.
  private static func pausedPath(_ document: StatusDocument) -> String? {
    guard hasAgent(document), hasName(document), document.lastFailure == nil, document.moreProblems == 0,
      document.problems.allSatisfy({ $0.code == "paused" }),
      document.entries.pending <= document.problems.count
    else { return nil }
    return document.problems.first.map { ShellWord.quote(bytes: $0.name) }
  }

  /// True when the mirror needs neither a pass nor a person; `--quiet` leaves it out.
  static func isCalm(_ document: StatusDocument) -> Bool {
    document.process != nil
      || document.state == "idle" && document.lastSuccess != nil && document.leftSettings != true
        && document.awaitsReload != true
  }
}
