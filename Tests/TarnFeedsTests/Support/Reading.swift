import TarnCore

@testable import TarnFeeds

/// Hands out at most `step` bytes at a time.
struct SteppedSource: ByteSource {
  let bytes: [UInt8]
  var step = 1 << 20
  var position = 0

  init(_ bytes: [UInt8], step: Int = 1 << 20) {
    self.bytes = bytes
    self.step = step
  }

  mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(FeedFailure) -> Int {
    let count = min(step, buffer.count, bytes.count - position)
    buffer.copyBytes(from: bytes[position..<(position + count)])
    position += count
    return count
  }
}

/// What a parse gave.
struct Outcome: Equatable {
  var items: [FeedItem] = []
  var end: FeedEnd?
  var failure: FeedFailure?

  var entries: [Entry] {
    items.compactMap { if case .entry(let entry) = $0 { entry } else { nil } }
  }
  var refused: [Refusal] {
    items.compactMap { if case .refused(let refusal) = $0 { refusal } else { nil } }
  }
  var enclosures: [Enclosure] {
    items.compactMap { if case .enclosure(let enclosure) = $0 { enclosure } else { nil } }
  }
  var names: [String] { entries.map(\.path.printable) }
  var codes: [String] { refused.map(\.code) }
  var isComplete: Bool { end?.isComplete ?? false }
}

func parse(
  _ bytes: [UInt8], url: String = "https://example.org/pub/list", place: String? = nil, step: Int = 1 << 20,
  contentType: String? = nil
) -> Outcome {
  var outcome = Outcome()
  let place = place.map { RelativePath(trusted: Array($0.utf8)) }
  do {
    outcome.end = try FeedParser(hashing: TestHashing()).parse(
      SteppedSource(bytes, step: step), as: FeedDocument(url: url, contentType: contentType, place: place)
    ) { outcome.items.append($0) }
  } catch {
    outcome.failure = error as? FeedFailure
  }
  return outcome
}

func parse(
  _ text: String, url: String = "https://example.org/pub/list", place: String? = nil, step: Int = 1 << 20
) -> Outcome {
  parse(Array(text.utf8), url: url, place: place, step: step)
}

/// The parses of every proper prefix that claim to be whole and yet name fewer entries.
func cutsThatPassForWhole(_ text: String, url: String = "https://example.org/pub/list") -> [Int] {
  let bytes = Array(text.utf8)
  let whole = parse(bytes, url: url)
  return (0..<bytes.count).filter { count in
    let cut = parse(Array(bytes[..<count]), url: url)
    return cut.isComplete && cut.items != whole.items
  }
}
