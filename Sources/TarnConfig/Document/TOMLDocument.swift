import TOMLShim
import TarnCore

/// Parses bytes as TOML 1.0. No other file uses toml++.
enum TOMLDocument {
  /// The first fault of a document.
  struct Fault: Error, Equatable {
    var position: SettingPosition
    /// The text of toml++, safe to print.
    var message: String
  }

  static let longest = TARN_TOML_MAXIMUM

  /// - Returns: the root node, a table.
  static func parse(_ bytes: [UInt8]) throws(Fault) -> SettingNode {
    var fault = tarn_toml_fault()
    let parsed = bytes.withUnsafeBytes { buffer in
      // An empty array has no address.
      buffer.baseAddress.map {
        tarn_toml_parse($0.assumingMemoryBound(to: CChar.self), buffer.count, &fault)
      } ?? tarn_toml_parse("", 0, &fault)
    }
    guard let document = parsed else {
      if fault.line == 0 { fault.line = brokenLine(of: bytes) }
      throw Fault(fault)
    }
    defer { tarn_toml_free(document) }
    var count = 0
    let nodes = UnsafeBufferPointer(start: tarn_toml_nodes(document, &count), count: count)
    return node(0, of: nodes)
  }

  /// Finds the fault when toml++ gives no place: the first line that begins a table without naming one, or
  /// that holds `[}`.
  private static func brokenLine(of bytes: [UInt8]) -> UInt32 {
    func isName(_ byte: UInt8) -> Bool {
      byte.isASCIILetter || byte.isASCIIDigit || "-_\"'".utf8.contains(byte)
    }
    let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
    let index = lines.firstIndex { line in
      let text = line.drop { [0x20, 0x09, 0xEF, 0xBB, 0xBF].contains($0) }
      let isHeader = text.first == UInt8(ascii: "[")
      let name = text.first { $0 != UInt8(ascii: "[") && $0 != 0x20 }
      return isHeader && name.map(isName) != true
        || zip(line, line.dropFirst()).contains { $0 == (0x5B, 0x7D) }
    }
    return UInt32(clamping: (index ?? 0) + 1)
  }

  private static func node(_ index: Int, of nodes: UnsafeBufferPointer<tarn_toml_node>) -> SettingNode {
    let found = nodes[index]
    let position = SettingPosition(found.line, found.column)
    let value: SettingNode.Value
    switch found.kind {
    case TARN_TOML_TABLE:
      let members = children(of: index, in: nodes).map { child in
        let text = nodes[child]
        return SettingNode.Member(
          key: string(text.key, text.key_length),
          keyPosition: SettingPosition(text.key_line, text.key_column),
          node: node(child, of: nodes))
      }
      value = .table(members.sorted { ($0.keyPosition, $0.key) < ($1.keyPosition, $1.key) })
    case TARN_TOML_ARRAY: value = .array(children(of: index, in: nodes).map { node($0, of: nodes) })
    case TARN_TOML_STRING: value = .text(string(found.text, found.text_length))
    case TARN_TOML_INTEGER: value = .integer(found.integer)
    case TARN_TOML_FLOAT: value = .decimal(found.real)
    case TARN_TOML_BOOLEAN: value = .boolean(found.integer != 0)
    default: value = .date
    }
    return SettingNode(value: value, position: position)
  }

  private static func children(of index: Int, in nodes: UnsafeBufferPointer<tarn_toml_node>) -> [Int] {
    let end = index + Int(nodes[index].below)
    var children: [Int] = []
    var next = index + 1
    while next <= end {
      children.append(next)
      next += 1 + Int(nodes[next].below)
    }
    return children
  }

  private static func string(_ start: UnsafePointer<CChar>?, _ count: Int) -> String {
    String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
  }
}

extension SettingPosition {
  /// Takes a place of toml++, which is 0 when the place is unknown.
  fileprivate init(_ line: UInt32, _ column: UInt32) {
    self.init(line: max(1, Int(line)), column: max(1, Int(column)))
  }
}

extension TOMLDocument.Fault {
  fileprivate init(_ fault: tarn_toml_fault) {
    position = SettingPosition(fault.line, fault.column)
    let bytes = withUnsafeBytes(of: fault.text) { $0.prefix { $0 != 0 } }
    let said = String(decoding: bytes, as: UTF8.self)
    var text = said[...]
    let front = "Error while parsing "
    if text.hasPrefix(front), let colon = text.firstRange(of: ": ") { text = text[colon.upperBound...] }
    // Cuts off what only the authors of toml++ need.
    if let internals = text.firstRange(of: " (TOML_") { text = text[..<internals.lowerBound] }
    let plain = String(text).replacing("'\\n'", with: "the end of the line").replacing(
      "'\\r'", with: "the end of the line")
    // toml++ has escaped what it quotes.
    message = Printable.escape(plain).replacing("\\\\", with: "\\")
  }
}
