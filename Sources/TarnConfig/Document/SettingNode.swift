/// A value of a document, and where it stands.
struct SettingNode: Sendable, Equatable {
  enum Value: Sendable, Equatable {
    /// The members of a table, in the order of the document.
    case table([Member])
    case array([SettingNode])
    case text(String)
    case integer(Int64)
    case decimal(Double)
    case boolean(Bool)
    /// A date, a time or both: no setting takes one.
    case date
  }

  struct Member: Sendable, Equatable {
    var key: String
    var keyPosition: SettingPosition
    var node: SettingNode
  }

  var value: Value
  var position: SettingPosition

  /// The kind of the value with its article, for messages.
  var kindName: String {
    switch value {
    case .table: "a table"
    case .array: "a list"
    case .text: "a string"
    case .integer: "a whole number"
    case .decimal: "a number with a fraction"
    case .boolean: "true or false"
    case .date: "a date or a time"
    }
  }
}

/// A place in a file: line and column count from 1, columns in code points.
package struct SettingPosition: Sendable, Equatable, Comparable {
  package var line: Int
  package var column: Int

  package init(line: Int, column: Int) {
    self.line = line
    self.column = column
  }

  package static func < (left: SettingPosition, right: SettingPosition) -> Bool {
    (left.line, left.column) < (right.line, right.column)
  }
}
