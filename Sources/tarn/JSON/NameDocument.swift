import TarnCore

/// A name in JSON: text that is safe to print, and the bytes themselves when they differ from it.
struct NameDocument {
  var path: String
  var pathBytes: String?

  init(_ bytes: [UInt8]) {
    path = Printable.escape(bytes)
    pathBytes = path.utf8.elementsEqual(bytes) ? nil : Base64.encode(bytes)
  }
}
