import TarnCore

/// Reads the elements of one item of RSS or Atom that name files.
struct WindowItemReading {
  var item: WindowItem
  /// The depth of the item's own element; 0 when no item is open.
  let depth: Int
  private var group: (depth: Int, value: WindowItem.Group)?
  /// The open media:content: its depth, its file, and whether it is the default one.
  private var content: (depth: Int, value: WindowItem.File, isDefault: Bool)?
  private var rendition: (depth: Int, value: WindowItem.Rendition)?

  init(position: Int = 0, depth: Int = 0) {
    item = WindowItem(position: position)
    self.depth = depth
  }

  var isOpen: Bool { depth > 0 }

  mutating func start(_ element: XMLEvents.Element, _ names: WindowNames, depth: Int, base: URLReference) {
    switch (names, element.name) {
    case (.rss, "enclosure"):
      enclosure(element, url: element["url"] ?? element["href"], base)
    case (.enclosure, "enclosure"):
      enclosure(element, url: element["resource"] ?? element["url"], base)
    case (.atom, "link") where depth == self.depth + 1:
      let relation = lowercased(trimmed(element["rel"] ?? []))
      guard relation.elementsEqual("enclosure".utf8) || relation.suffix(10).elementsEqual("/enclosure".utf8)
      else { return }
      enclosure(element, url: element["href"], base)
    case (.atom, "content") where depth == self.depth + 1: outside(element, base)
    case (.media, "group"): group = (depth, WindowItem.Group())
    case (.media, "content"):
      guard let file = Self.file(element["url"], element["fileSize"], element["type"], base), item.admits()
      else { return }
      let isDefault = lowercased(trimmed(element["isDefault"] ?? [])).elementsEqual("true".utf8)
      content = (depth, file, isDefault)
    case (.podcast, "alternateEnclosure"):
      var found = WindowItem.Rendition()
      found.length = WindowValue.length(element["length"])
      found.mediaType = WindowValue.mediaType(element["type"])
      found.isDefault = lowercased(trimmed(element["default"] ?? [])).elementsEqual("true".utf8)
      rendition = (depth, found)
    case (.podcast, "source"): source(element, base)
    case (.podcast, "integrity"):
      if lowercased(trimmed(element["type"] ?? [])).elementsEqual("sri".utf8) {
        rendition?.value.digest = element["value"].flatMap { WindowValue.integrity($0) }
      }
    default: break
    }
  }

  /// Ends the element at that depth.
  mutating func end(at depth: Int) {
    if let ended = content, ended.depth == depth {
      content = nil
      var target = group?.value ?? WindowItem.Group()
      if ended.isDefault, target.defaultIndex == nil { target.defaultIndex = target.files.count }
      target.files.append(ended.value)
      if group == nil { item.groups.append(target) } else { group?.value = target }
    }
    if let ended = group, ended.depth == depth {
      group = nil
      if !ended.value.files.isEmpty { item.groups.append(ended.value) }
    }
    if let ended = rendition, ended.depth == depth {
      rendition = nil
      finish(ended.value)
    }
  }

  /// Adds a media:hash to what is open.
  mutating func add(_ digest: Digest?) {
    guard let digest else { return }
    if var open = content {
      open.value.digest = open.value.digest ?? digest
      content = open
    } else if group != nil {
      group?.value.digest = digest
    } else {
      item.digest = digest
    }
  }

  // MARK: Files

  private mutating func enclosure(_ element: XMLEvents.Element, url: [UInt8]?, _ base: URLReference) {
    guard let file = Self.file(url, element["length"], element["type"], base) else {
      item.nameless += 1
      return
    }
    if item.admits() { item.files.append(file) }
  }

  /// Adds content that lies elsewhere (RFC 4287 4.1.3.2) and is not a page to read.
  private mutating func outside(_ element: XMLEvents.Element, _ base: URLReference) {
    guard let file = Self.file(element["src"], nil, element["type"], base), let type = file.mediaType,
      !type.begins(with: "text/"), !type.holds("html"), item.admits()
    else { return }
    item.groups.append(WindowItem.Group(files: [file]))
  }

  private mutating func source(_ element: XMLEvents.Element, _ base: URLReference) {
    let type = WindowValue.mediaType(element["contentType"])
    guard let rendition, type == nil || rendition.value.mediaType == nil || type == rendition.value.mediaType,
      let reference = WindowValue.reference(element["uri"]), rendition.value.sources.count < 32
    else { return }
    self.rendition?.value.sources.append(base.resolve(URLReference(reference)))
  }

  private mutating func finish(_ rendition: WindowItem.Rendition) {
    guard let first = rendition.sources.first, item.admits() else { return }
    var found = rendition
    found.file = WindowItem.File(
      url: first, shown: first.bytes, length: rendition.length, mediaType: rendition.mediaType,
      digest: rendition.digest)
    item.renditions.append(found)
  }

  private static func file(
    _ url: [UInt8]?, _ length: [UInt8]?, _ type: [UInt8]?, _ base: URLReference
  ) -> WindowItem.File? {
    guard let reference = WindowValue.reference(url) else { return nil }
    return WindowItem.File(
      url: base.resolve(URLReference(reference)), shown: reference, length: WindowValue.length(length),
      mediaType: WindowValue.mediaType(type))
  }
}
