import Foundation

/// A terminal of 80 by 24 that nobody looks at, for programs that draw on one.
final class PseudoTerminal {
  /// What a program opens.
  let path: String
  private let master: Int32
  private let slave: Int32
  private var bytes: [UInt8] = []

  init() throws {
    var (master, slave): (Int32, Int32) = (-1, -1)
    var size = winsize(ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0)
    guard openpty(&master, &slave, nil, nil, &size) == 0 else {
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }
    var name = [CChar](repeating: 0, count: 64)
    ttyname_r(slave, &name, name.count)
    for descriptor in [master, slave] { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    path = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
    // Both ends stay open here: what a program leaves behind can be looked at when it is gone.
    (self.master, self.slave) = (master, slave)
  }

  deinit {
    close(master)
    close(slave)
  }

  /// All that was written to it so far.
  var shown: String {
    var ready = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
    var part = [UInt8](repeating: 0, count: 4096)
    while poll(&ready, 1, 0) > 0 {
      let count = read(master, &part, part.count)
      guard count > 0 else { break }
      bytes += part[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The lines that stand on it, as long as they are, without colours and without empty ones at the end.
  var lines: [String] {
    var (lines, row, column) = ([[Character]()], 0, 0)
    var rest = Array(shown.unicodeScalars.map { Character($0) })[...]
    while let next = rest.popFirst() {
      switch next {
      case "\r": column = 0
      case "\n":
        row += 1
        if row == lines.count { lines.append([]) }
      case "\u{1B}":
        let body = rest.dropFirst().prefix { !$0.isLetter }
        let end = rest.dropFirst(1 + body.count).first
        rest = rest.dropFirst(2 + body.count)
        if end == "A" { row = max(0, row - (Int(String(body)) ?? 1)) }
        if end == "J" {
          lines.removeSubrange((row + 1)...)
          lines[row].removeSubrange(min(column, lines[row].count)...)
        }
      default:
        while lines[row].count <= column { lines[row].append(" ") }
        lines[row][column] = next
        column += 1
      }
    }
    while lines.count > 1, lines.last?.isEmpty == true { lines.removeLast() }
    return lines.map { String($0) }
  }

  func type(_ text: String) { _ = write(master, text, text.utf8.count) }

  /// How it treats what is typed and written: flags, then the characters that mean something.
  var modes: [UInt32] {
    var modes = termios()
    tcgetattr(slave, &modes)
    let flags = [modes.c_iflag, modes.c_oflag, modes.c_cflag, modes.c_lflag]
    return flags + withUnsafeBytes(of: modes.c_cc) { $0.map(UInt32.init) }
  }

  var isEchoing: Bool { modes[3] & UInt32(ECHO) != 0 }
}
