import TarnCore

/// The input file of aria2 (`aria2c -i`): the URLs of a file on one line, separated by tabs, and indented options below them.
/// `out`, `dir` and `checksum` are understood; others change nothing.
struct Aria2Input: FeedFormat {
  var name: String { "aria2 input file" }
  var kind: FeedKind { .list }

  /// Recognises URLs followed by an option somewhere; without options it is a `URLList`.
  func recognises(_ head: [UInt8]) -> Bool {
    var hasURL = false
    for line in head.split(separator: 0x0A) {
      let text = trimmed(line)
      if text.isEmpty || text.first == UInt8(ascii: "#") { continue }
      if !hasURL {
        let start = lowercased(text.prefix(8))
        let schemes = URLScheme.remotePrefixes + ["ftp://", "magnet:"]
        guard schemes.contains(where: { start.begins(with: $0) }) else { return false }
        hasURL = true
      } else if let first = line.first, isBlank(first), Self.option(text) != nil {
        return true
      }
    }
    return false
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    var reason: String?
    var download: Aria2Download?
    while let (line, isEnded) = try input.readLine() {
      let text = trimmed(line)
      if !isEnded { reason = reason ?? "line \(input.line), the last one, has no end: it may be cut" }
      guard let first = line.first, !text.isEmpty, text.first != UInt8(ascii: "#") else { continue }
      if !isBlank(first) {
        if let item = download?.item(in: context) { try sink(item) }
        download = Aria2Download(text)
        if download != nil { continue }
      } else if download != nil, let (name, value) = Self.option(text) {
        download?.set(name, value)
        if !isEnded { download?.noteCut(in: name, line: input.line) }
        continue
      } else if !isEnded {
        // The option that is missing may be the name.
        download = nil
      }
      try sink(
        URLList.malformed(
          text, line: input.line, reason: "line \(input.line) is not an absolute URL, and no option"))
      reason = reason ?? "line \(input.line) is not understood"
    }
    if let item = download?.item(in: context) { try sink(item) }
    reason = reason ?? context.doubt
    return FeedEnd(format: name, isComplete: reason == nil, incompleteReason: reason ?? "")
  }

  /// Reads `name=value`; `nil` for anything else.
  private static func option(_ text: [UInt8]) -> (name: String, value: [UInt8])? {
    let name = text.prefix { $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "-") }
    guard !name.isEmpty, name.endIndex < text.endIndex, text[name.endIndex] == UInt8(ascii: "=") else {
      return nil
    }
    return (String(decoding: name, as: UTF8.self), trimmed(text[(name.endIndex + 1)...]))
  }
}

/// A line of URLs with its options.
private struct Aria2Download {
  private let urls: [URLReference]
  private let shown: [UInt8]
  private var out: [UInt8] = []
  private var directory: [UInt8] = []
  private var digest: Digest?
  /// Why the checksum cannot be used.
  private var fault: (code: String, reason: String)?

  /// - Returns: `nil` when a part of the line is not an absolute URL.
  init?(_ line: [UInt8]) {
    let references = line.split(separator: 0x09).map { trimmed($0) }.filter { !$0.isEmpty }
    urls = references.map { URLReference($0) }
    shown = line
    guard !line.contains(0), urls.allSatisfy({ $0.scheme != nil }),
      !references.contains(where: { $0.contains(0x20) })
    else { return nil }
  }

  /// Sets an option; a later one of the same name replaces it.
  mutating func set(_ name: String, _ value: [UInt8]) {
    switch name {
    case "out": out = value
    case "dir": directory = value
    case "checksum": takeChecksum(value)
    default: break
    }
  }

  /// Refuses a name that a cut list may have shortened: it has not the ending that the URL has.
  mutating func noteCut(in name: String, line: Int) {
    guard name == "out", let file = urls.first?.path.split(separator: 0x2F).last,
      let dot = file.lastIndex(of: UInt8(ascii: "."))
    else { return }
    let ending = file[dot...]
    guard !out.suffix(ending.count).elementsEqual(ending) else { return }
    fault = ("line-malformed", "line \(line), the last one, has no end: its name may be cut")
  }

  /// Reads a checksum such as `sha-256=hex`.
  private mutating func takeChecksum(_ value: [UInt8]) {
    let parts = value.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
    digest = nil
    fault = ("digest-malformed", "the checksum is not 'type=digest'")
    guard parts.count == 2 else { return }
    guard let algorithm = parts[0].withUnsafeBytes({ DigestAlgorithm(name: $0) }) else {
      fault = ("digest-unsupported", Refusal.noCheck)
      return
    }
    digest = Digest(algorithm, hex: trimmed(parts[1]))
    if digest != nil { fault = nil }
  }

  func item(in context: FeedContext) -> FeedItem {
    URLList.item(
      urls, shown: shown, out: ListedFile.withoutDot(out), directory: below,
      digests: digest.map { [$0] } ?? [], fault: fault, in: context)
  }

  /// The directory without a leading `./` and trailing slashes.
  private var below: [UInt8] {
    var bytes = ListedFile.withoutDot(directory)
    while bytes.count > 1, bytes.last == 0x2F { bytes.removeLast() }
    return bytes.elementsEqual([0x2E]) ? [] : bytes
  }
}
