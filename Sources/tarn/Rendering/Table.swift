/// A table whose columns are as wide as their widest cells.
enum Table {
  struct Cell {
    var text: String
    var paint: Style.Paint?

    init(_ text: String, _ paint: Style.Paint? = nil) {
      self.text = text
      self.paint = paint
    }
  }

  /// - Parameter right: the indexes of right-aligned columns.
  static func lines(_ rows: [[Cell]], right: Set<Int> = [], style: Style) -> [String] {
    var widths: [Int] = []
    for row in rows {
      for (column, cell) in row.enumerated() {
        if column == widths.count { widths.append(0) }
        widths[column] = max(widths[column], Columns.width(cell.text))
      }
    }
    return rows.map { row in
      // Trailing blanks would only be noticed in copied text.
      let row = row.prefix((row.lastIndex { !$0.text.isEmpty } ?? -1) + 1)
      return row.enumerated().map { column, cell in
        let isLast = column == row.count - 1 && !right.contains(column)
        let text =
          isLast ? cell.text : Columns.padded(cell.text, widths[column], right: right.contains(column))
        return style.paint(text, cell.paint)
      }.joined(separator: "  ")
    }
  }
}
