import TarnCore

/// Reading a window: RSS, Atom, JSON Feed.
extension Pass {
  func readWindow(
    _ document: FeedReader.Document, _ reader: FeedReader, _ planner: FeedPlanner
  ) throws -> PlannedFeed {
    let before = try ports.ledger.fact(.feed)
    let catalog = WindowCatalog(
      ports: ports, policy: request.policy, isAnotherFeed: before != nil && before != request.feed.text,
      stop: stop)
    var others: [FeedItem] = []
    // Positions count from the first page on.
    var (pageStart, position) = (0, 0)
    let walk = ListingWalk(reader: reader) { item in
      if stop.isSet { throw PassFailure(.stopped, code: "stopped", "ended on request") }
      if case .enclosure(var enclosure) = item {
        enclosure.position += pageStart
        position = max(position, enclosure.position + 1)
        try catalog.add(enclosure)
      } else if others.count < WindowCatalog.most {
        others.append(item)
      }
    }
    var end = try walk.root(document) { end in
      pageStart = position
      return try catalog.wantsMore(title: end.title)
    }
    // Where all that is wanted stands on the first page, that one says all.
    if walk.pages == 0 { end.next = nil }
    if position > 0, end.notice?.code == .withoutFiles { end.notice = nil }
    if catalog.hasGivenUp {
      observer.pass(
        .notice(
          code: "pages-without-files",
          message: "the last pages of the feed named no further file, and the pages behind them are not read")
      )
    }
    try check(end)
    let resolution = try catalog.resolve(title: end.title)
    try planner.beginWindow(
      expired: resolution.expired, newest: resolution.newest, tooOld: resolution.tooOld)
    for item in others + resolution.refused.map({ .refused($0) }) { planner.refuse(item) }
    for entry in resolution.entries { try planner.take(.entry(entry)) }
    enter(.planning)
    try planner.finish()
    var feed = PlannedFeed(planner, end, walk: walk)
    feed.plan.feed.learned = resolution.names.map { .name($0) }
    feed.plan.feed.learned.append(.fact(.windowDoubts, try tell(resolution.doubts)))
    return feed
  }

  /// Says which items are taken for files that are there, unless the last pass said the same.
  ///
  /// - Returns: what tells these items from others, for the ledger.
  private func tell(_ doubts: [WindowCatalog.Doubt]) throws -> String? {
    guard !doubts.isEmpty else { return nil }
    let text = doubts.flatMap { doubt -> [UInt8] in doubt.path.bytes + [0] + doubt.title + [0] }
    let digest = ports.hashing.digest(.sha256, of: text).hex
    guard try ports.ledger.fact(.windowDoubts) != digest else { return digest }
    let shown = doubts.prefix(WindowCatalog.Doubt.mostShown).map { doubt in
      "'\(Printable.escape(doubt.title))' is taken for \(doubt.path.printable)"
    }
    let more = doubts.count - shown.count
    observer.pass(
      .notice(
        code: "taken-for-known",
        message:
          "by guid or address some items are taken for files that are here already, although their title, date or address is another: "
          + shown.joined(separator: ", ") + (more > 0 ? ", and \(more) more" : "")))
    return digest
  }
}
