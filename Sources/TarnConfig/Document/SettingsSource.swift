import TarnCore

/// A file of settings as it was read, to quote from.
final class SettingsSource: Sendable {
  let path: String
  private let lines: [ArraySlice<UInt8>]

  init(path: String, bytes: [UInt8]) {
    self.path = path
    lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
  }

  /// Returns the position itself, or the end of the line or the file when it lies beyond that.
  func clamped(_ position: SettingPosition) -> SettingPosition {
    guard position.line <= lines.count else {
      return SettingPosition(line: lines.count, column: line(lines.count).unicodeScalars.count + 1)
    }
    let end = line(position.line).unicodeScalars.count + 1
    return SettingPosition(line: position.line, column: min(position.column, end))
  }

  /// - Returns: the line without its line end; empty when the file has no such line.
  func line(_ number: Int) -> String {
    guard lines.indices.contains(number - 1) else { return "" }
    let line = lines[number - 1]
    return String(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
  }

  /// The lines above a line.
  func text(above number: Int) -> [UInt8] { text(lines.prefix(max(0, number - 1))) }

  /// A line and all behind it.
  func text(from number: Int) -> [UInt8] { text(lines.dropFirst(max(0, number - 1))) }

  private func text(_ lines: ArraySlice<ArraySlice<UInt8>>) -> [UInt8] {
    Array(lines.joined(separator: [UInt8(ascii: "\n")]))
  }
}

/// Something to point at: a key or a value of a file.
struct SettingPlace: Sendable {
  var source: SettingsSource
  var position: SettingPosition

  var origin: SettingOrigin { .file(source.path, position) }
}
