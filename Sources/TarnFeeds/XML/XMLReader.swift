import CXML
import TarnCore

/// Reads XML in UTF-8 node by node through libxml2, without network, external entities or a DOCTYPE.
final class XMLReader {
  static let maximumDepth = 32

  enum Node: Equatable {
    /// The start of an element. `namespace` is empty when there is none. An empty element has no `end`.
    case start(name: String, namespace: String, isEmpty: Bool)
    case text([UInt8])
    case end
  }

  private let feed: XMLFeed
  private let reader: xmlTextReaderPtr
  private var names = KnownNames()
  private var namespaces = KnownNames()

  /// libxml2 must be initialised before any thread uses it; a static is made only once.
  private static let isReady: Bool = {
    xmlInitParser()
    return true
  }()

  init(_ input: FeedInput) throws(FeedFailure) {
    feed = XMLFeed(input)
    // Safe because `feed` lives as long as this object, whose deinit frees the reader that holds the pointer.
    let context = Unmanaged.passUnretained(feed).toOpaque()
    // The encoding that the document declares is none that `TagBound` reads.
    let options = Int32(XML_PARSE_NONET.rawValue | XML_PARSE_IGNORE_ENC.rawValue)
    guard Self.isReady, let reader = xmlReaderForIO(XMLFeed.read, XMLFeed.close, context, nil, nil, options)
    else {
      throw FeedFailure.malformed("libxml2 cannot start (out of memory?)")
    }
    self.reader = reader
    xmlTextReaderSetStructuredErrorHandler(reader, XMLFeed.noteError, context)
  }

  deinit {
    xmlFreeTextReader(reader)
  }

  /// The number of elements that enclose the node read last.
  var depth: Int { Int(xmlTextReaderDepth(reader)) }

  /// Returns the next element, end of an element or text; `nil` at the end of a well-formed document.
  func next() throws(FeedFailure) -> Node? {
    while true {
      let result = xmlTextReaderRead(reader)
      try feed.check()
      guard result == 1 else {
        if result == 0 { return nil }
        throw FeedFailure.malformed("the XML cannot be read")
      }
      guard depth <= Self.maximumDepth else {
        throw failure("nested deeper than \(Self.maximumDepth) levels")
      }
      switch xmlReaderTypes(UInt32(bitPattern: xmlTextReaderNodeType(reader))) {
      case XML_READER_TYPE_ELEMENT:
        return .start(
          name: names.text(at: xmlTextReaderConstLocalName(reader)),
          namespace: namespaces.text(at: xmlTextReaderConstNamespaceUri(reader)),
          isEmpty: xmlTextReaderIsEmptyElement(reader) == 1)
      case XML_READER_TYPE_END_ELEMENT: return .end
      case XML_READER_TYPE_TEXT, XML_READER_TYPE_CDATA, XML_READER_TYPE_SIGNIFICANT_WHITESPACE:
        return .text(bytes(xmlTextReaderConstValue(reader)))
      case XML_READER_TYPE_DOCUMENT_TYPE: throw Self.doctypeRefused
      case XML_READER_TYPE_ENTITY_REFERENCE: throw failure("an entity that is not defined")
      default: continue
      }
    }
  }

  /// Returns an attribute of the element read last.
  func attribute(_ name: StaticString) -> [UInt8]? {
    guard xmlTextReaderHasAttributes(reader) == 1, xmlTextReaderMoveToAttribute(reader, name.utf8Start) == 1
    else { return nil }
    defer { xmlTextReaderMoveToElement(reader) }
    return bytes(xmlTextReaderConstValue(reader))
  }

  func failure(_ message: String, code: String = "feed-malformed") -> FeedFailure {
    FeedFailure(code: code, message: message, line: Int(xmlTextReaderGetParserLineNumber(reader)))
  }

  static let doctypeRefused = FeedFailure(
    code: "doctype-refused",
    message: "the feed has a DOCTYPE, which can define harmful entities; no feed needs one")

  private func bytes(_ text: UnsafePointer<xmlChar>?) -> [UInt8] {
    guard let text else { return [] }
    return Array(UnsafeBufferPointer(start: text, count: Int(xmlStrlen(text))))
  }
}

/// The names of elements, or of namespaces, that came before. libxml2 keeps each name once for the life of the reader, so the same
/// address is the same name.
private struct KnownNames {
  private static let most = 16
  private var known: [(place: UnsafePointer<xmlChar>, text: String)] = []

  mutating func text(at place: UnsafePointer<xmlChar>?) -> String {
    guard let place else { return "" }
    for name in known where name.place == place { return name.text }
    let text = String(
      decoding: UnsafeBufferPointer(start: place, count: Int(xmlStrlen(place))), as: UTF8.self)
    if known.count < Self.most { known.append((place, text)) }
    return text
  }
}

/// The object that libxml2's callbacks reach: the input, and the first error. Used only on the reader's thread.
private final class XMLFeed {
  private let input: FeedInput
  private var bound = TagBound()
  private var failure: FeedFailure?

  init(_ input: FeedInput) {
    self.input = input
  }

  /// - Throws: the first error of a callback.
  func check() throws(FeedFailure) {
    if let failure { throw failure }
  }

  // Safe because every pointer below is the one given in `XMLReader.init`, whose object outlives the reader.

  static let read: xmlInputReadCallback = { context, buffer, length in
    guard let context, let buffer, length > 0 else { return -1 }
    let feed = Unmanaged<XMLFeed>.fromOpaque(context).takeUnretainedValue()
    do throws(FeedFailure) {
      let target = UnsafeMutableRawBufferPointer(start: buffer, count: Int(length))
      let count = try feed.input.read(into: target)
      try feed.bound.follow(UnsafeRawBufferPointer(rebasing: target[..<max(count, 0)]))
      return Int32(count)
    } catch {
      feed.failure = feed.failure ?? error
      return -1
    }
  }

  static let close: xmlInputCloseCallback = { _ in 0 }

  static let noteError: xmlStructuredErrorFunc = { context, error in
    guard let context, let error, error.pointee.level == XML_ERR_FATAL else { return }
    let feed = Unmanaged<XMLFeed>.fromOpaque(context).takeUnretainedValue()
    guard feed.failure == nil else { return }
    feed.failure = FeedFailure(xml: error.pointee)
  }
}

extension FeedFailure {
  /// Makes a failure from libxml2's error about a document.
  init(xml error: xmlError) {
    let text = error.message.map { String(cString: $0) } ?? "no message"
    let ends = [XML_ERR_DOCUMENT_END, XML_ERR_DOCUMENT_EMPTY, XML_ERR_TAG_NOT_FINISHED]
    let isCut = ends.contains { $0.rawValue == UInt32(bitPattern: error.code) }
    self.init(
      code: isCut ? "feed-truncated" : "feed-malformed",
      message: "the XML is not well-formed: \(Printable.escape(trimmed(text.utf8)))",
      line: Int(error.line))
  }
}
