import TarnCore
import Testing

@Suite struct ResumeLadderTests {
  static let url = "http://one/a"

  static func known(
    kept: UInt64 = 100, url: String = url, etag: String? = nil, lastModified: String? = nil,
    total: UInt64? = nil,
    digest: Bool = false
  ) -> ResumeLadder.Known {
    ResumeLadder.Known(
      kept: kept, url: url, etag: etag, lastModified: lastModified, total: total, digestDecides: digest)
  }

  @Test(
    arguments: [
      (nil, [.fromZero]), (known(kept: 0, etag: "\"e\"", lastModified: "d", digest: true), [.fromZero]),
      (known(), [.fromZero]), (known(etag: "\"e\""), [.etag, .fromZero]),
      (known(lastModified: "d"), [.lastModified, .fromZero]),
      (known(digest: true), [.digestAlone, .fromZero]),
      (
        known(etag: "\"e\"", lastModified: "d", digest: true),
        [.etag, .lastModified, .digestAlone, .fromZero]
      ),
      (known(etag: "\"e\"", digest: true), [.etag, .digestAlone, .fromZero]),
      // Validators of another URL say nothing; a digest does.
      (known(url: "http://two/a", etag: "\"e\"", lastModified: "d"), [.fromZero]),
      (
        known(url: "http://two/a", etag: "\"e\"", lastModified: "d", digest: true), [.digestAlone, .fromZero]
      ),
    ] as [(ResumeLadder.Known?, [ResumeLadder.Rung])])
  func rungs(_ known: ResumeLadder.Known?, _ expected: [ResumeLadder.Rung]) {
    var seen = [ResumeLadder.rung(known, url: Self.url)]
    while let last = seen.last, last != .fromZero, seen.count < 10 {
      seen.append(ResumeLadder.rung(known, url: Self.url, after: last))
    }
    #expect(seen == expected)
    #expect(ResumeLadder.rung(known, url: Self.url, after: .fromZero) == .fromZero)
  }

  struct Answer: Sendable, CustomTestStringConvertible {
    var status: Int
    var range: ContentRange?
    var etag: String?
    var known: ResumeLadder.Known?
    var rung: ResumeLadder.Rung
    var expected: ResumeLadder.Verdict
    var testDescription: String {
      let numbers = [range?.first, range?.last, range?.total].map { $0.map(String.init) ?? "*" }
      return "\(status) \(numbers.joined(separator: " ")) \(etag ?? "no ETag") on \(rung)"
    }

    init(
      _ status: Int, _ range: (UInt64?, UInt64?, UInt64?)? = nil, etag: String? = nil,
      known: ResumeLadder.Known? = ResumeLadderTests.known(etag: "\"e\"", total: 1000),
      on rung: ResumeLadder.Rung = .etag, gives expected: ResumeLadder.Verdict
    ) {
      self.status = status
      self.range = range.map { ContentRange(first: $0.0, last: $0.1, total: $0.2) }
      self.etag = etag
      self.known = known
      self.rung = rung
      self.expected = expected
    }
  }

  private static let free = known(lastModified: "d")

  static let answers: [Answer] = [
    Answer(206, (100, 999, 1000), gives: .askFromZero),
    Answer(206, (100, 999, 1000), etag: "\"e\"", gives: .append),
    Answer(206, (100, 999, 1000), etag: "\"f\"", gives: .askFromZero),
    // A weak ETag says nothing against it: If-Range asked with the strong one.
    Answer(206, (100, 999, 1000), etag: "W/\"e\"", gives: .askFromZero),
    // A part of the rest will do.
    Answer(206, (100, 100, 1000), etag: "\"e\"", gives: .append),
    Answer(206, (100, 500, 1000), etag: "\"e\"", gives: .append),
    Answer(206, nil, gives: .askFromZero), Answer(206, (0, 999, 1000), gives: .askFromZero),
    Answer(206, (99, 999, 1000), gives: .askFromZero),
    Answer(206, (101, 999, 1000), gives: .askFromZero), Answer(206, (100, 99, 1000), gives: .askFromZero),
    Answer(206, (100, 1000, 1000), gives: .askFromZero), Answer(206, (100, 999, 1001), gives: .askFromZero),
    Answer(206, (100, 999, nil), gives: .askFromZero), Answer(206, (100, nil, 1000), gives: .askFromZero),
    Answer(206, (nil, nil, 1000), gives: .askFromZero), Answer(206, (100, .max, 1000), gives: .askFromZero),
    Answer(206, (100, 999, 1000), known: nil, gives: .askFromZero),
    Answer(206, (100, 999, 1000), on: .fromZero, gives: .askFromZero),
    // All of it, although nobody asked for a part.
    Answer(206, (0, 999, 1000), on: .fromZero, gives: .takeFromZero),
    Answer(206, (0, 998, 1000), on: .fromZero, gives: .askFromZero),
    Answer(206, (0, 999, nil), on: .fromZero, gives: .askFromZero),
    Answer(206, (0, .max, 0), on: .fromZero, gives: .askFromZero),
    Answer(206, nil, on: .fromZero, gives: .askFromZero),
    Answer(203, known: nil, on: .fromZero, gives: .takeFromZero),
    Answer(203, etag: "\"e\"", gives: .nextRung),
    Answer(203, (100, 999, 1000), gives: .askFromZero),
    // The total is new: it has to hold what the range says (RFC 9110 14.4).
    Answer(206, (100, 999, 1000), known: free, on: .lastModified, gives: .askFromZero),
    Answer(206, (100, 999, nil), known: free, on: .lastModified, gives: .askFromZero),
    Answer(206, (100, 999, 999), known: free, on: .lastModified, gives: .askFromZero),
    Answer(206, (100, 999, 50), known: free, on: .lastModified, gives: .askFromZero),
    Answer(206, (100, 999, 0), known: free, on: .lastModified, gives: .askFromZero),
    // An ETag of another URL is not compared.
    Answer(
      206, (100, 999, 1000), etag: "\"f\"", known: known(url: "http://two/a", etag: "\"e\"", digest: true),
      on: .digestAlone, gives: .append),
    // Nor does it prove anything.
    Answer(
      206, (100, 999, 1000), etag: "\"e\"", known: known(url: "http://two/a", etag: "\"e\""),
      gives: .askFromZero),
    Answer(
      416, (nil, nil, 100), etag: "\"e\"", known: known(url: "http://two/a", etag: "\"e\""),
      gives: .askFromZero),
    // Two spellings of one letter are two ETags.
    Answer(
      206, (100, 999, 1000), etag: "\"e\u{301}\"", known: known(etag: "\"\u{E9}\""), gives: .askFromZero),
    Answer(200, etag: "\"e\u{301}\"", known: known(etag: "\"\u{E9}\""), gives: .takeFromZero),

    // Neither a length nor a version: it may be any part.
    Answer(200, gives: .askFromZero), Answer(200, on: .fromZero, gives: .takeFromZero),
    Answer(200, etag: "\"e\"", gives: .nextRung),
    Answer(200, etag: "\"f\"", gives: .takeFromZero),
    Answer(200, etag: "W/\"e\"", gives: .takeFromZero),
    Answer(200, etag: "\"e\"", on: .fromZero, gives: .passOver),
    Answer(200, etag: "\"e\"", known: nil, on: .fromZero, gives: .takeFromZero),
    Answer(200, known: nil, gives: .takeFromZero),
    Answer(
      200, etag: "\"e\"", known: known(url: "http://two/a", etag: "\"e\""), on: .digestAlone,
      gives: .takeFromZero),
    // A part that says 200, whatever was asked for; and the whole, which may say so, too.
    Answer(200, (100, 999, 1000), gives: .askFromZero), Answer(200, (0, 499, 1000), gives: .askFromZero),
    Answer(200, (0, 499, 1000), known: nil, on: .fromZero, gives: .askFromZero),
    Answer(200, (100, 999, nil), gives: .askFromZero), Answer(200, (0, 999, 1000), gives: .takeFromZero),
    Answer(200, (0, 999, nil), gives: .takeFromZero), Answer(200, (nil, nil, 1000), gives: .takeFromZero),

    Answer(416, (nil, nil, 100), known: known(etag: "\"e\"", total: 100), gives: .whole),
    // Nothing says that this is the end of the same version.
    Answer(416, (nil, nil, 100), known: known(etag: "\"e\""), gives: .askFromZero),
    Answer(416, (nil, nil, 100), etag: "\"e\"", known: known(etag: "\"e\""), gives: .whole),
    Answer(416, (nil, nil, 100), etag: "\"f\"", known: known(etag: "\"e\"", total: 100), gives: .askFromZero),
    Answer(416, (nil, nil, 100), known: known(etag: "\"e\"", total: 101), gives: .askFromZero),
    Answer(416, (nil, nil, 99), known: known(etag: "\"e\""), gives: .askFromZero),
    Answer(416, (nil, nil, 1000), gives: .askFromZero), Answer(416, (nil, nil, nil), gives: .askFromZero),
    Answer(416, gives: .askFromZero),
    Answer(416, (nil, nil, 100), known: nil, gives: .askFromZero),
    Answer(416, (nil, nil, 100), on: .fromZero, gives: .askFromZero),

    Answer(304, gives: .notModified), Answer(304, known: nil, on: .fromZero, gives: .notModified),
    Answer(404, gives: .status(HTTPStatus(404))), Answer(503, on: .fromZero, gives: .status(HTTPStatus(503))),
    Answer(204, gives: .status(HTTPStatus(204))), Answer(0, gives: .status(HTTPStatus(0))),
    Answer(-1, gives: .status(HTTPStatus(-1))),
    Answer(301, gives: .status(HTTPStatus(301))), Answer(207, gives: .status(HTTPStatus(207))),
  ]

  @Test(arguments: answers) func verdicts(_ answer: Answer) {
    var head = ResponseHead(status: answer.status, url: "http://cdn/a")
    head.contentRange = answer.range
    head.etag = answer.etag
    let verdict = ResumeLadder.judge(head, rung: answer.rung, known: answer.known, url: Self.url)
    #expect(verdict == answer.expected)
  }

  /// Whoever asked for a part may have got any, under whatever ETag.
  @Test(arguments: [(ResumeLadder.Rung.etag, ResumeLadder.Verdict.askFromZero), (.fromZero, .takeFromZero)])
  func aRangeThatCannotBeReadMayBeAnyPart(_ rung: ResumeLadder.Rung, _ expected: ResumeLadder.Verdict) {
    var head = ResponseHead(status: 200, url: Self.url)
    head.hasUnreadableRange = true
    head.etag = "\"f\""
    let known = Self.known(etag: "\"e\"", total: 1000)
    #expect(ResumeLadder.judge(head, rung: rung, known: known, url: Self.url) == expected)
  }

  /// The same date, and fewer bytes: a tail that does not say so. More bytes, or another date, are another version.
  @Test(
    arguments: [
      (900, "d", .askFromZero), (800, "d", .askFromZero), (1000, "d", .takeFromZero),
      (899, "e", .takeFromZero),
      (nil, "d", .askFromZero), (nil, "e", .takeFromZero),
      (901, nil, .takeFromZero), (899, nil, .takeFromZero),
      // As long as the rest, whatever version it says.
      (900, nil, .askFromZero), (900, "e", .askFromZero),
    ]
      as [(UInt64?, String?, ResumeLadder.Verdict)])
  func aShorterAnswerOfTheSameVersionIsAPart(
    _ length: UInt64?, _ date: String?, _ expected: ResumeLadder.Verdict
  ) {
    var head = ResponseHead(status: 200, url: Self.url)
    head.contentLength = length
    head.lastModified = date
    let known = Self.known(lastModified: "d", total: 1000)
    #expect(ResumeLadder.judge(head, rung: .lastModified, known: known, url: Self.url) == expected)
  }

  /// Also where the whole was asked for: then there is no more to ask for.
  @Test(
    arguments: [
      (900, "\"e\"", .contradiction), (1000, "\"e\"", .takeFromZero), (900, "\"f\"", .takeFromZero),
    ]
      as [(UInt64, String, ResumeLadder.Verdict)])
  func theWholeOfTheSameVersionIsNotShorter(
    _ length: UInt64, _ etag: String, _ expected: ResumeLadder.Verdict
  ) {
    var head = ResponseHead(status: 200, url: Self.url)
    (head.contentLength, head.etag) = (length, etag)
    let known = Self.known(kept: 0, etag: "\"e\"", total: 1000)
    #expect(ResumeLadder.judge(head, rung: .fromZero, known: known, url: Self.url) == expected)
  }

  @Test(arguments: [(nil, 1000), (900, 1000), (1004, 1004)] as [(UInt64?, UInt64)])
  func aLongerFileHasItsOwnLength(_ length: UInt64?, _ expected: UInt64) {
    var head = ResponseHead(status: 200, url: Self.url)
    (head.contentLength, head.etag) = (length, "\"e\"")
    let known = Self.known(kept: 0, etag: "\"e\"", total: 1000)
    #expect(ResumeLadder.total(head, known: known, url: Self.url) == expected)
  }

  /// Two files that a redirect leads to in turn may have one ETag. A digest tells them apart in the end.
  @Test(
    arguments: [
      (206, "http://cdn/v1", false, .append), (206, "http://cdn/v2", false, .askFromZero),
      (206, "http://mirror/v1", false, .append), (206, "http://mirror/v2", false, .askFromZero),
      (206, "http://mirror/v2", true, .append),
      (416, "http://cdn/v1", false, .whole), (416, "http://cdn/v2", false, .askFromZero),
      (200, "http://cdn/v1", false, .nextRung), (200, "http://cdn/v2", false, .takeFromZero),
      (200, "http://mirror/v1", true, .nextRung),
    ] as [(Int, String, Bool, ResumeLadder.Verdict)])
  func bytesAreContinuedFromTheURLThatSentThem(
    _ status: Int, _ answering: String, _ hasDigest: Bool, _ expected: ResumeLadder.Verdict
  ) {
    var known = Self.known(etag: "\"e\"", total: status == 416 ? 100 : 1000, digest: hasDigest)
    known.answered = "http://cdn/v1"
    var head = ResponseHead(status: status, url: answering)
    head.etag = "\"e\""
    if status == 200 { head.contentLength = 1000 }
    if status == 206 { head.contentRange = ContentRange(first: 100, last: 999, total: 1000) }
    if status == 416 { head.contentRange = ContentRange(first: nil, last: nil, total: 100) }
    #expect(ResumeLadder.judge(head, rung: .etag, known: known, url: Self.url) == expected)
  }

  /// A CDN may have a new folder in each redirect. There a strong ETag has to agree, and the size.
  @Test(
    arguments: [
      ("https://cdn/1/f", nil, 1000, .append), ("http://cdn/2/f", "\"e\"", 1000, .append),
      ("http://cdn/2/f", nil, 1000, .askFromZero), ("http://cdn/2/f", "W/\"e\"", 1000, .askFromZero),
      ("http://cdn/2/f", "\"e\"", nil, .askFromZero), ("http://cdn/2/g", "\"e\"", 1000, .askFromZero),
      ("http://mirror/2/f", nil, 1000, .append), ("http://mirror/2/f", "\"f\"", 1000, .askFromZero),
    ] as [(String, String?, UInt64?, ResumeLadder.Verdict)])
  func aFolderMayBeNewInEachRedirect(
    _ answering: String, _ etag: String?, _ total: UInt64?, _ expected: ResumeLadder.Verdict
  ) {
    var known = Self.known(etag: "\"e\"", lastModified: "d", total: total)
    known.answered = "http://cdn/1/f"
    var head = ResponseHead(status: 206, url: answering)
    (head.etag, head.lastModified) = (etag, "d")
    head.contentRange = ContentRange(first: 100, last: 999, total: 1000)
    #expect(ResumeLadder.judge(head, rung: .etag, known: known, url: Self.url) == expected)
  }

  /// A short ETag may count the versions of each file: where folder or query differ, only a longer one, or the date, tells the file.
  @Test(
    arguments: [
      ("http://h/1/f", "http://h/2/f", "\"1\"", nil, .askFromZero),
      ("http://h/1/f", "http://h/2/f", "\"12345\"", nil, .askFromZero),
      ("http://h/1/f", "http://h/2/f", "\"123456\"", nil, .append),
      ("http://h/1/f", "http://h/2/f", "\"1\"", "d", .append),
      ("http://h/1/f", "http://h/2/f", nil, "d", .askFromZero),
      ("http://h/1/", "http://h/2/", "\"123456\"", "d", .askFromZero),
      ("http://h/1/", "http://i/2/", "\"123456\"", "d", .askFromZero),
      ("http://h/1/", "http://h/1/", "\"1\"", nil, .append),
      ("http://h/f?v=1", "http://h/f?v=2", "\"1\"", nil, .askFromZero),
      ("http://h/f?v=1", "http://h/f?v=2", "\"123456\"", nil, .append),
      ("http://h/f?v=1", "http://h/f?v=2", "\"1\"", "d", .append),
      ("http://h/f?v=1", "http://h/f?v=2", nil, "d", .append),
      ("http://h/f?v=1", "http://i/f?v=2", "\"1\"", nil, .askFromZero),
      ("http://h/f?v=1", "https://h/f?v=1#top", "\"1\"", nil, .append),
      ("http://h/1/f", "http://i/2/f", "\"1\"", nil, .append),
      ("http://h/1/f", "http://i/2/f", nil, "d", .append),
    ] as [(String, String, String?, String?, ResumeLadder.Verdict)])
  func anETagThatMayCountTellsNoFileApart(
    _ before: String, _ now: String, _ etag: String?, _ date: String?, _ expected: ResumeLadder.Verdict
  ) {
    var known = Self.known(etag: etag, lastModified: date, total: 1000)
    known.answered = before
    var head = ResponseHead(status: 206, url: now)
    (head.etag, head.lastModified) = (etag, date)
    head.contentRange = ContentRange(first: 100, last: 999, total: 1000)
    let rung = ResumeLadder.rung(known, url: Self.url)
    #expect(ResumeLadder.judge(head, rung: rung, known: known, url: Self.url) == expected)
  }

  /// A body of another length than its own range says is none of them.
  @Test(
    arguments: [200, 203, 206],
    [(999, .askFromZero), (1000, .takeFromZero)] as [(UInt64, ResumeLadder.Verdict)])
  func aLengthFitsItsRange(_ status: Int, _ row: (length: UInt64, expected: ResumeLadder.Verdict)) {
    var head = ResponseHead(status: status, url: Self.url)
    head.contentRange = ContentRange(first: 0, last: 999, total: 1000)
    head.contentLength = row.length
    #expect(ResumeLadder.judge(head, rung: .fromZero, known: nil, url: Self.url) == row.expected)
  }

  /// A date is a validator as an ETag is.
  @Test(
    arguments: [("d", .append), ("e", .askFromZero), (nil, .askFromZero)] as [(String?, ResumeLadder.Verdict)]
  )
  func aDateTellsAVersion(_ said: String?, _ expected: ResumeLadder.Verdict) {
    var head = ResponseHead(status: 206, url: Self.url)
    head.contentRange = ContentRange(first: 100, last: 999, total: 1000)
    head.lastModified = said
    let known = Self.known(lastModified: "d")
    #expect(ResumeLadder.judge(head, rung: .lastModified, known: known, url: Self.url) == expected)
  }

  /// A whole answer that is asked for although bytes are at hand.
  @Test(
    arguments: [
      ("\"e\"", 1000, nil, .passOver), ("\"e\"", nil, nil, .passOver), ("\"e\"", 1001, nil, .takeFromZero),
      ("\"f\"", 1000, nil, .takeFromZero), (nil, 1000, nil, .takeFromZero),
      ("\"e\"", 1000, "gzip", .takeFromZero),
      ("\"e\"", 999, nil, .contradiction), ("\"e\"", 99, nil, .contradiction),
    ] as [(String?, UInt64?, String?, ResumeLadder.Verdict)]
  )
  func aWholeOfTheVersionAtHandIsPassedOver(
    _ etag: String?, _ length: UInt64?, _ coding: String?, _ expected: ResumeLadder.Verdict
  ) {
    var head = ResponseHead(status: 200, url: Self.url)
    (head.etag, head.contentLength, head.contentEncoding) = (etag, length, coding)
    let known = Self.known(etag: "\"e\"", total: 1000)
    #expect(ResumeLadder.judge(head, rung: .fromZero, known: known, url: Self.url) == expected)
    // Nothing told a total: there are at least the bytes at hand.
    if length == 99 {
      let open = Self.known(etag: "\"e\"")
      #expect(ResumeLadder.judge(head, rung: .fromZero, known: open, url: Self.url) == .contradiction)
    }
    head.isFramed = false
    #expect(ResumeLadder.judge(head, rung: .fromZero, known: known, url: Self.url) != .passOver)
    head.isFramed = true
    let none = Self.known(kept: 0, etag: "\"e\"", total: 1000)
    #expect(ResumeLadder.judge(head, rung: .fromZero, known: none, url: Self.url) != .passOver)
    let elsewhere = Self.known(url: "http://two/a", etag: "\"e\"", total: 1000, digest: true)
    #expect(ResumeLadder.judge(head, rung: .fromZero, known: elsewhere, url: Self.url) != .passOver)
  }

  /// A date that was not strong is no validator. With the same ETag, another date shows another version.
  @Test(
    arguments: [
      ("\"e\"", "d", .append), ("\"e\"", nil, .append), ("\"e\"", "later", .askFromZero),
      (nil, "d", .askFromZero),
      // Some servers date each answer anew.
      ("\"of-the-bytes\"", "later", .append),
    ] as [(String?, String?, ResumeLadder.Verdict)]
  )
  func aWeakDateOnlyDisproves(_ etag: String?, _ said: String?, _ expected: ResumeLadder.Verdict) {
    var head = ResponseHead(status: 206, url: Self.url)
    head.contentRange = ContentRange(first: 100, last: 999, total: 1000)
    (head.etag, head.lastModified) = (etag, said)
    var known = Self.known(etag: etag ?? "\"e\"")
    known.weakDate = "d"
    #expect(ResumeLadder.judge(head, rung: .etag, known: known, url: Self.url) == expected)
    #expect(ResumeLadder.rung(known, url: Self.url, after: .etag) == .fromZero)
  }

  /// Whatever comes: bytes are only appended where it is proved that they belong there.
  @Test func appendsOnlyWhatFits() {
    let numbers: [UInt64?] = [nil, 0, 1, 99, 100, 101, 999, 1000, 1001, .max - 1, .max]
    let etags: [String?] = [nil, "\"e\"", "\"f\"", "W/\"e\"", "\"", "", "e"]
    var appended = 0
    for status in [200, 206, 416] {
      for first in numbers {
        for last in numbers {
          for total in numbers {
            for etag in etags {
              var head = ResponseHead(status: status, url: Self.url)
              head.contentRange = ContentRange(first: first, last: last, total: total)
              head.etag = etag
              for known in [
                Self.known(etag: "\"e\"", total: 1000), Self.known(kept: .max, etag: "\"e\""), Self.known(),
              ] {
                for rung in ResumeLadder.Rung.allCases {
                  guard ResumeLadder.judge(head, rung: rung, known: known, url: Self.url) == .append else {
                    continue
                  }
                  appended += 1
                  let fits =
                    status == 206 && rung != .fromZero && first == known.kept
                    && last.map { $0 >= known.kept } == true
                    && (total.map { total in last.map { $0 < total } == true } ?? true)
                    && (known.total == nil || known.total == total)
                    && !(known.etag != nil && etag == "\"f\"")
                  if !fits { Issue.record("appended: \(head) to \(known)") }
                }
              }
            }
          }
        }
      }
    }
    #expect(appended > 0)
  }

  @Test(
    arguments: [
      ("\"e\"", "\"e\""), ("\"\"", "\"\""), ("W/\"e\"", nil), ("w/\"e\"", nil), ("e", nil), ("\"", nil),
      ("\"e", nil),
      ("e\"", nil), ("", nil), (nil, nil),
    ] as [(String?, String?)]) func strongETags(_ etag: String?, _ strong: String?)
  {
    var head = ResponseHead(status: 200, url: Self.url)
    head.etag = etag
    #expect(head.strongETag == strong)
  }

  @Test(
    arguments: [
      (0, 60, true), (0, 59, false), (0, 0, false), (100, 0, false), (0, 86_400, true),
      (-9_223_372_036, 9_223_372_036, true),
      (9_223_372_036, -9_223_372_036, false), (nil, 60, false), (0, nil, false),
    ] as [(Int64?, Int64?, Bool)]) func strongDates(modified: Int64?, sent: Int64?, isStrong: Bool)
  {
    var head = ResponseHead(status: 200, url: Self.url)
    head.lastModified = "as it was sent"
    head.modified = modified.map(moment)
    head.sent = sent.map(moment)
    #expect((head.strongLastModified != nil) == isStrong)
    head.lastModified = nil
    #expect(head.strongLastModified == nil)
  }
}
