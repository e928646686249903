import TarnConfig
import TarnCore

/// Lines for a terminal of some width, which would break words by itself.
enum FittedLines {
  /// The programs whose commands are kept whole.
  static let programs = ["tarn", "sudo", "systemctl"]

  /// Breaks lines at blanks. In a line that is too long each command, which is to be copied, gets a line of its own, and is not
  /// broken.
  ///
  /// - Parameters:
  ///   - width: `nil` leaves the lines as they are, as for a file.
  ///   - programs: the programs whose commands are kept whole.
  static func of(_ lines: [String], _ width: Int?, programs: [String] = FittedLines.programs) -> [String] {
    guard let width else { return lines }
    return lines.flatMap { line -> [String] in
      guard Columns.styledWidth(line) > width, let command = command(in: line, programs) else {
        return wrapped(line, width)
      }
      let blanks = String(line.prefix { $0 == " " })
      let front = String(line[..<command.lowerBound].reversed().drop { $0 == " " }.reversed())
      let indent = front.isEmpty ? blanks : blanks + "  "
      let rest = String(line[command.upperBound...].drop { ",; ".contains($0) })
      return (front.isEmpty ? [] : wrapped(front, width)) + [indent + String(line[command])]
        + (rest.isEmpty ? [] : of([indent + rest], width, programs: programs))
    }
  }

  /// Wraps a line, and no command in quotes such as `'tarn sync iso'` that fits in one line.
  private static func wrapped(_ line: String, _ width: Int) -> [String] {
    // No line has this character, for it does not print.
    let glue = Character("\u{1F}")
    var (bound, isCommand) = ("", false)
    for index in line.indices {
      let character = line[index]
      if character == "'" {
        let rest = line[line.index(after: index)...]
        isCommand =
          !isCommand && programs.contains { rest.hasPrefix($0 + " ") }
          && rest.prefix { $0 != "'" }.count + 4 < width
      }
      bound.append(isCommand && character == " " ? glue : character)
    }
    return Columns.wrapped(bound, width).map { $0.replacing(String(glue), with: " ") }
  }

  /// Returns the first command of a line: behind a colon, or as the value of a row.
  fileprivate static func command(in line: String, _ programs: [String]) -> Range<String.Index>? {
    let starts = programs.flatMap { program in
      [": ", "  "].flatMap { front in
        line.ranges(of: "\(front)\(program) ").map { line.index($0.lowerBound, offsetBy: 2) }
      }
    }
    guard let start = starts.min() else { return nil }
    // What follows it in the sentence is no part of it; the text in quotes of its own is.
    var isQuoted = false
    let end = line.indices[start...].first { index in
      if line[index] == "'" { isQuoted.toggle() }
      return !isQuoted && [", ", "; ", " ("].contains { line[index...].hasPrefix($0) }
    }
    return start..<(end ?? line.endIndex)
  }
}

extension SettingsPaths {
  /// Adds `--config FILE` to the commands of lines that begin with `next: `, when that was given. A mirror of that name may stand in
  /// other settings, too.
  func completing(_ lines: [String]) -> [String] {
    lines.map { $0.hasPrefix("next: ") ? completing($0) : $0 }
  }

  /// The same for one line: to each command of Tarn at its beginning or behind a colon.
  func completing(_ line: String) -> String {
    guard let file else { return line }
    let option = " --config \(ShellWord.quote(file))"
    guard !line.contains(" --config ") else { return line }
    let front = ": "
    var (done, rest) = ("", front + line)
    while let command = FittedLines.command(in: rest, ["tarn"]) {
      done += rest[..<command.upperBound] + option
      rest = String(rest[command.upperBound...])
    }
    return String((done + rest).dropFirst(front.count))
  }
}
