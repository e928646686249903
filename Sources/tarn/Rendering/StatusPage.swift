/// The parts of a status. A screen shows as much of its lists as it has rows for.
struct StatusPage {
  /// A list under a title.
  struct Section {
    /// The title; empty for none.
    var title = ""
    var rows: [String] = []
    /// The number of rows that are left out already, and the command that shows them; empty for none.
    var more = 0
    var command = ""

    var isEmpty: Bool { rows.isEmpty && more == 0 }

    /// All lines.
    var lines: [String] { lines(atMost: .max) }

    /// The number of all lines.
    var count: Int {
      isEmpty ? 0 : (title.isEmpty ? 0 : 1) + rows.reduce(0) { $0 + Self.height($1) } + (more > 0 ? 1 : 0)
    }

    /// Returns at most a number of lines. When rows are left out, the last line tells how many.
    func lines(atMost most: Int) -> [String] {
      guard !isEmpty, most > 0 else { return [] }
      let head = title.isEmpty ? [] : [title]
      let isWhole = count <= most
      var shown: [String] = []
      var room = isWhole ? Int.max : most - head.count - 1
      for row in rows {
        guard room >= Self.height(row) else { break }
        shown.append(row)
        room -= Self.height(row)
      }
      let left = rows.count - shown.count + more
      // The title alone would tell nothing.
      if !isWhole, most <= head.count { return ["\(title) \(Numbers.grouped(left))"] }
      let hint = command.isEmpty ? "" : ": \(command)"
      return head + shown.flatMap { $0.split(separator: "\n").map(String.init) }
        + (left > 0 ? ["  and \(Numbers.grouped(left)) more\(hint)"] : [])
    }

    /// The lines of a row, which may have several.
    private static func height(_ row: String) -> Int { row.count { $0 == "\n" } + 1 }

    /// Wraps the rows, so that no line is wider.
    func folded(_ width: Int) -> Section {
      var section = self
      section.rows = rows.map { row in
        row.split(separator: "\n").flatMap { Columns.wrapped(String($0), width) }.joined(separator: "\n")
      }
      return section
    }
  }

  /// The lines that are always shown.
  var head: [String] = []
  /// The table of several mirrors.
  var mirrors = Section()
  var problems = Section()
  var transfers = Section()
  /// The commands to type next.
  var next: [String] = []

  /// Wraps all parts, so that no line is wider.
  func folded(_ width: Int) -> StatusPage {
    var page = self
    page.head = head.flatMap { Columns.wrapped($0, width) }
    page.next = next.flatMap { Columns.wrapped($0, width) }
    page.mirrors = mirrors.folded(width)
    page.problems = problems.folded(width)
    page.transfers = transfers.folded(width)
    return page
  }

  /// Returns the lines for a screen: problems come before transfers, and each list gets its share of the
  /// rows.
  func lines(rows: Int) -> [String] {
    let sections = [problems, mirrors, transfers]
    var shares = sections.map { _ in 0 }
    var left = rows - head.count - next.count
    while left > 0, let open = sections.indices.filter({ shares[$0] < sections[$0].count }).nonEmpty {
      for index in open where left > 0 {
        shares[index] += 1
        left -= 1
      }
    }
    return head + mirrors.lines(atMost: shares[1]) + problems.lines(atMost: shares[0])
      + transfers.lines(atMost: shares[2]) + next
  }
}

extension Array {
  fileprivate var nonEmpty: Self? { isEmpty ? nil : self }
}
