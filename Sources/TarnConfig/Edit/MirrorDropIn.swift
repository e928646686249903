package import TarnCore

/// The file of `conf.d` that `tarn add` writes for one mirror, and that `tarn remove` takes away.
package struct MirrorDropIn: Sendable, Equatable {
  package let name: String
  /// The absolute path: `DIRECTORY/conf.d/NAME.toml`.
  package let path: String

  /// - Parameter directory: the directory that holds `tarn.toml`.
  package init(name: String, directory: String) {
    self.name = name
    path = "\(directory)/conf.d/\(name).toml"
  }

  /// What `tarn add` was told about a mirror.
  package struct Contents: Sendable, Equatable {
    package var feed: String
    package var folder: String
    package var state: String?
    /// The setting `every` or `schedule`, and its value.
    package var rhythm: (name: String, text: String)?
    package var adopts = false
    package var options = PassOptions()

    package init(feed: String, folder: String) { (self.feed, self.folder) = (feed, folder) }

    package static func == (left: Contents, right: Contents) -> Bool {
      left.feed == right.feed && left.folder == right.folder && left.state == right.state
        && left.rhythm?.name == right.rhythm?.name && left.rhythm?.text == right.rhythm?.text
        && left.adopts == right.adopts && left.options == right.options
    }
  }

  /// Returns the text of the whole file.
  package func text(_ contents: Contents) -> String {
    var lines = header + [SettingsTable.mirror(name).header]
    let records = RememberedSettings.records(
      feed: contents.feed, folder: contents.folder, state: contents.state, options: contents.options)
    func line(_ name: String, _ toml: String) -> String { "\(name) = \(toml)" }
    let set = records.filter { $0.origin == .remembered }
    let places = ["feed", "folder", "state"]
    lines += set.filter { places.contains($0.name) }.map { line($0.name, $0.toml) }
    if let rhythm = contents.rhythm { lines.append(line(rhythm.name, TOMLText.quote(rhythm.text))) }
    if contents.adopts { lines.append(line("adopt", "true")) }
    lines += set.filter { !places.contains($0.name) }.map { line($0.name, $0.toml) }
    return lines.map { $0 + "\n" }.joined()
  }

  private static let mark = "# 'tarn add' wrote this file"

  private var header: [String] {
    let word = ShellWord.quote(name)
    return [
      "\(Self.mark), and 'tarn remove \(word)' takes it away.",
      "# Change values here, then: tarn reload. Comments of your own make it a file that tarn leaves alone.",
    ]
  }

  /// The reason why a file may not be removed.
  package struct Objection: Error, Sendable, Equatable {
    /// The line, from 1.
    package var line: Int
    /// The reason as a clause, safe to print.
    package var reason: String
  }

  /// Checks that the file holds only what `tarn add` writes, whatever the values are.
  ///
  /// - Throws: when the file holds anything else.
  package func requireOwn(_ bytes: [UInt8]) throws(Objection) {
    guard let text = String(validating: bytes, as: UTF8.self), text.hasPrefix(Self.mark) else {
      throw Objection(line: 1, reason: "'tarn add' did not write that file")
    }
    let root: SettingNode
    do throws(TOMLDocument.Fault) {
      root = try TOMLDocument.parse(bytes)
    } catch {
      throw Objection(line: error.position.line, reason: "that file is damaged: \(error.message)")
    }
    guard case .table(let tables) = root.value else { return }
    for table in tables {
      guard table.key == "mirror", case .table(let mirrors) = table.node.value else {
        throw Objection(line: table.keyPosition.line, reason: "that file holds more than this mirror")
      }
      if let other = mirrors.first(where: { !$0.key.utf8.elementsEqual(name.utf8) }) {
        throw Objection(line: other.keyPosition.line, reason: "that file holds more than this mirror")
      }
    }
    if let line = foreignLine(text) {
      throw Objection(line: line, reason: "somebody wrote a comment there, which would be lost")
    }
  }

  /// The first line that holds, or may hold, a comment that `tarn add` did not write.
  private func foreignLine(_ text: String) -> Int? {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let own = zip(lines, header).prefix { $0 == $1 }.count
    for (index, line) in lines.enumerated().dropFirst(own) where Self.holdsComment(line) {
      return index + 1
    }
    return nil
  }

  /// True when the line has a `#` outside of strings. A multiline string counts as well, for it may hide one.
  private static func holdsComment(_ line: Substring) -> Bool {
    if line.contains("\"\"\"") || line.contains("'''") { return true }
    var quote: Character?
    var isEscaped = false
    for character in line {
      if isEscaped {
        isEscaped = false
      } else if let open = quote {
        if character == "\\", open == "\"" { isEscaped = true }
        if character == open { quote = nil }
      } else if character == "#" {
        return true
      } else if character == "\"" || character == "'" {
        quote = character
      }
    }
    return false
  }
}

extension LoadedSettings {
  /// All files that set something for a mirror, each with its first such line, sorted by path.
  package func files(naming mirror: String) -> [(path: String, line: Int)] {
    var found: [String: Int] = [:]
    func note(_ origin: SettingOrigin) {
      guard case .file(let path, let position) = origin else { return }
      found[path] = min(found[path] ?? position.line, position.line)
    }
    for record in records where record.table == .mirror(mirror) {
      note(record.origin)
      for shadowed in record.shadowed { note(shadowed.origin) }
    }
    return found.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }
}
