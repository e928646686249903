import TarnCore
import TestSupport

@testable import TarnFeeds

func parse(
  _ bytes: [UInt8], url: String = "https://example.org/pub/list", place: String? = nil, step: Int = 1 << 20,
  contentType: String? = nil
) -> Outcome {
  let place = place.map { RelativePath(trusted: Array($0.utf8)) }
  return Outcome.of(
    bytes, FeedDocument(url: url, contentType: contentType, place: place), hashing: TestHashing(), step: step)
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
  // Everywhere at both ends; between them where something begins or ends, and at some other places.
  let cuts = stride(from: 0, to: bytes.count, by: Sanitizer.takesShare ? 37 : 1).filter { count in
    count < 400 || count > bytes.count - 400 || count % 17 == 0 || "<>\"'\n&".utf8.contains(bytes[count - 1])
  }
  return cuts.filter { count in
    let cut = parse(Array(bytes[..<count]), url: url)
    return cut.isComplete && cut.items != whole.items
  }
}
