import CXML
import TarnCore

/// Reads XML in UTF-8 element by element through libxml2, and continues after errors.
///
/// libxml2's text reader stops at the first error, so this uses its push parser. Its input has no DOCTYPE (`RepairedXML`), hence no
/// entities. Memory is bounded: one block and its events, and one tag (`TagBound.longestTag`).
final class XMLEvents {
  private static let blockSize = 16_384

  struct Element {
    /// The name as the vocabularies write it, whatever the document does: `pubDate` for `PUBDATE`.
    let name: String
    /// The prefix as it is written; empty when there is none.
    let prefix: String
    /// The namespace; empty when there is none, or when the prefix is not declared.
    let namespace: String
    let attributes: [(name: String, prefix: String, value: [UInt8])]

    /// Returns the value of an attribute by its local name, one without a prefix first.
    subscript(_ name: String) -> [UInt8]? {
      let found = attributes.filter { $0.name == name }
      return (found.first { $0.prefix.isEmpty } ?? found.first { $0.prefix != "xml" })?.value
    }

    var base: [UInt8]? { attributes.first { $0.name == "base" && $0.prefix == "xml" }?.value }
  }

  enum Event {
    case start(Element)
    /// A part of a text. In a CDATA section nothing was decoded.
    case text([UInt8], isVerbatim: Bool)
    case end
  }

  private var source: any ByteSource
  private var bound = TagBound()
  private let sink = EventQueue()
  private let parser: xmlParserCtxtPtr
  private var block = [UInt8](repeating: 0, count: blockSize)
  private var isAtEnd = false

  private static let isReady: Bool = {
    xmlInitParser()
    return true
  }()

  init(_ source: any ByteSource) throws(FeedFailure) {
    self.source = source
    var handler = EventQueue.handler
    // Safe because `sink` lives as long as this object, whose deinit frees the parser that holds the pointer.
    let context = Unmanaged.passUnretained(sink).toOpaque()
    guard Self.isReady, let parser = xmlCreatePushParserCtxt(&handler, context, nil, 0, nil) else {
      throw FeedFailure.malformed("libxml2 cannot start (out of memory?)")
    }
    self.parser = parser
    // Without NOENT, `&amp;` in an attribute comes as `&#38;`.
    let options = XML_PARSE_NONET.rawValue | XML_PARSE_RECOVER.rawValue | XML_PARSE_NOENT.rawValue
    xmlCtxtUseOptions(parser, Int32(options))
  }

  deinit {
    if let document = parser.pointee.myDoc { xmlFreeDoc(document) }
    parser.pointee.myDoc = nil
    xmlFreeParserCtxt(parser)
  }

  /// Returns a name of an element or attribute as the vocabularies of feeds write it. XML distinguishes upper and lower case, and
  /// some feeds do not.
  static func usual(_ name: String) -> String {
    let lower = name.lowercased()
    return mixed[lower] ?? lower
  }

  private static let mixed = Dictionary(
    uniqueKeysWithValues: [
      "RDF", "pubDate", "fileSize", "isDefault", "alternateEnclosure", "contentType", "updatePeriod",
      "updateFrequency", "xmlUrl", "htmlUrl",
    ].map { ($0.lowercased(), $0) })

  /// The first error that makes this invalid XML; `nil` while there is none.
  var fault: FeedFailure? { sink.fault }

  /// Returns the next event; `nil` at the end of the document, or where nothing more can be read.
  func next() throws(FeedFailure) -> Event? {
    while true {
      if let event = sink.next() { return event }
      guard !isAtEnd else { return nil }
      try feed()
    }
  }

  private func feed() throws(FeedFailure) {
    var failure: FeedFailure?
    let count = block.withUnsafeMutableBytes { bytes in
      do throws(FeedFailure) {
        let count = try source.read(into: bytes)
        try bound.follow(UnsafeRawBufferPointer(rebasing: bytes[..<max(count, 0)]))
        return count
      } catch {
        failure = error
        return 0
      }
    }
    if let failure { throw failure }
    let isLast: Int32 = count > 0 ? 0 : 1
    block.withUnsafeBytes { bytes in
      _ = xmlParseChunk(parser, bytes.bindMemory(to: CChar.self).baseAddress, Int32(count), isLast)
    }
    isAtEnd = isLast == 1 || parser.pointee.disableSAX != 0
  }
}

/// The queue that libxml2's callbacks fill. Used only on the parser's thread.
private final class EventQueue {
  private var events: [XMLEvents.Event] = []
  private var taken = 0
  private(set) var fault: FeedFailure?

  func next() -> XMLEvents.Event? {
    guard taken < events.count else {
      events.removeAll(keepingCapacity: true)
      taken = 0
      return nil
    }
    taken += 1
    return events[taken - 1]
  }

  // Safe because every pointer below is the one given in `XMLEvents.init`, whose object outlives the parser.
  private static func queue(_ context: UnsafeMutableRawPointer?) -> EventQueue? {
    context.map { Unmanaged<EventQueue>.fromOpaque($0).takeUnretainedValue() }
  }

  static var handler: xmlSAXHandler {
    var handler = xmlSAXHandler()
    handler.initialized = UInt32(XML_SAX2_MAGIC)
    handler.startElementNs = start
    handler.endElementNs = { context, _, _, _ in EventQueue.queue(context)?.events.append(.end) }
    handler.characters = { context, text, count in EventQueue.add(context, text, count, isVerbatim: false) }
    handler.ignorableWhitespace = handler.characters
    handler.cdataBlock = { context, text, count in EventQueue.add(context, text, count, isVerbatim: true) }
    handler.serror = noteError
    return handler
  }

  private static func add(
    _ context: UnsafeMutableRawPointer?, _ text: UnsafePointer<xmlChar>?, _ count: Int32, isVerbatim: Bool
  ) {
    guard let text, count > 0 else { return }
    let bytes = Array(UnsafeBufferPointer(start: text, count: Int(count)))
    queue(context)?.events.append(.text(bytes, isVerbatim: isVerbatim))
  }

  private static let start: startElementNsSAX2Func = {
    context, name, prefix, namespace, _, _, count, _, attributes in
    var found: [(name: String, prefix: String, value: [UInt8])] = []
    // Each attribute has five pointers: local name, prefix, namespace, and the two ends of the value.
    for index in 0..<Int(max(count, 0)) {
      guard let attributes, let begin = attributes[5 * index + 3], let end = attributes[5 * index + 4],
        end >= begin
      else { continue }
      let value = Array(UnsafeBufferPointer(start: begin, count: end - begin))
      found.append((XMLEvents.usual(text(attributes[5 * index])), text(attributes[5 * index + 1]), value))
    }
    let element = XMLEvents.Element(
      name: XMLEvents.usual(text(name)), prefix: text(prefix), namespace: text(namespace), attributes: found)
    queue(context)?.events.append(.start(element))
  }

  private static func text(_ text: UnsafePointer<xmlChar>?) -> String {
    guard let text else { return "" }
    return String(decoding: UnsafeBufferPointer(start: text, count: Int(xmlStrlen(text))), as: UTF8.self)
  }

  private static let noteError: xmlStructuredErrorFunc = { context, error in
    guard let queue = EventQueue.queue(context), let error, error.pointee.level == XML_ERR_FATAL,
      queue.fault == nil
    else { return }
    queue.fault = FeedFailure(xml: error.pointee)
  }
}
