import TarnCore

/// Reads a window: RSS, Atom or JSON Feed.
extension Pass {
  func readWindow(
    _ document: FeedReader.Document, _ reader: FeedReader, _ planner: FeedPlanner
  ) throws -> PlannedFeed {
    let before = try ports.ledger.fact(.feed)
    let catalog = WindowCatalog(self, isAnotherFeed: before != nil && before != request.feed.text)
    var refused: [Refusal] = []
    // Positions count from the first page on.
    var (pageStart, position) = (0, 0)
    let walk = ListingWalk(reader: reader) { item in
      try stop.throwIfSet()
      if case .enclosure(var enclosure) = item {
        enclosure.position += pageStart
        position = max(position, enclosure.position + 1)
        try catalog.add(enclosure)
      } else if case .refused(let refusal) = item, refused.count < WindowCatalog.most {
        refused.append(refusal)
      }
    }
    var end = try walk.root(document) { end in
      pageStart = position
      return try catalog.wantsMore(title: end.title)
    }
    // When all wanted files are on the first page, that page is sufficient.
    if walk.pages == 0 { end.next = nil }
    if position > 0, end.notice?.code == .withoutFiles { end.notice = nil }
    if catalog.hasGivenUp {
      observer.notice(
        "pages-without-files",
        "the last pages of the feed named no further file, so the pages after them are not read")
    }
    try check(end)
    if before == request.feed.text { try refuseOtherKind(end) }
    let resolution = try catalog.resolve(title: end.title)
    try planner.begin(resolution)
    for refusal in refused + resolution.refused { planner.refuse(refusal) }
    for entry in resolution.entries { try planner.add(.entry(entry)) }
    enter(.planning)
    try planner.finish()
    planner.writer.plan.feed.learned =
      resolution.names.map { .name($0) } + [.fact(.windowDoubts, try tell(resolution.doubts))]
    return PlannedFeed(planner: planner, end: end, walk: walk)
  }

  /// Refuses a feed that named all of its files and is suddenly a window. Followed as a window, it would be in sync with the little
  /// that it names. No deletion could be held then, so the whole pass is refused. A list that merely stood in the window's place for a
  /// while was never accepted, and forbids nothing.
  private func refuseOtherKind(_ end: FeedEnd) throws {
    guard request.policy.format != .rss, try ports.ledger.fact(.complete) == "yes",
      let known = try ports.ledger.fact(.format), try ports.ledger.rowCount() > 0,
      try ports.ledger.fact(.deletingFormat) != end.format
    else { return }
    throw PassFailure(
      .feedMalformed, code: "feed-of-another-kind",
      "the feed was a \(known) that named all of its files, and is \(end.format) now, which names the newest only; nothing was changed",
      hint:
        "look at its address; to follow it as it is now: tarn sync --format rss \(ShellWord.quote(request.folderName)), or "
        + "format = \"rss\" in its settings")
  }

  /// Reports which items are taken for files of others, unless the last pass reported the same.
  ///
  /// - Returns: a digest of these items, for the ledger; `nil` when there are none.
  private func tell(_ doubts: [WindowCatalog.Doubt]) throws -> String? {
    guard !doubts.isEmpty else { return nil }
    let text = doubts.flatMap { doubt -> [UInt8] in
      doubt.path.bytes + [0] + doubt.title + [0] + doubt.item + [0]
    }
    let digest = ports.hashing.digest(.sha256, of: text).hex
    guard try ports.ledger.fact(.windowDoubts) != digest else { return digest }
    let shown = doubts.prefix(WindowCatalog.Doubt.mostShown).map { doubt in
      "'\(Printable.escape(doubt.title))' is taken for \(doubt.path.printable)"
    }
    let more = doubts.count - shown.count
    observer.notice(
      "taken-for-known",
      "by guid or address some items are taken for files that are known already, although their title, date or address is another: "
        + shown.joined(separator: ", ") + (more > 0 ? ", and \(more) more" : ""))
    return digest
  }
}
