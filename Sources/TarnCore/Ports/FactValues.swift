// The meaning of the texts of facts in the ledger.

/// The fact that names the current catalog: its ID, and a digest of the settings it was made with.
package enum CatalogFact {
  package static func value(id: String, settings: String) -> String { "\(id) \(settings)" }

  package static func id(of value: String) -> String { String(value.prefix { $0 != " " }) }
}

extension StatusDocument.FeedTransfer {
  /// The text that the ledger stores.
  package var encoded: String { "\(received) \(rate) \(total.map { String($0) } ?? "-")" }

  package init?(encoded: String) {
    let parts = encoded.split(separator: " ")
    guard parts.count == 3, let received = UInt64(parts[0]), let rate = UInt64(parts[1]) else { return nil }
    self.init(received: received, total: UInt64(parts[2]), rate: rate)
  }
}

extension StatusDocument.Progress {
  /// The text that the ledger stores.
  package var encoded: String {
    "\(filesDone) \(filesTotal) \(bytesDone) \(bytesTotal) \(unknownSizes) \(rate)"
  }

  package init?(encoded: String) {
    let parts = encoded.split(separator: " ")
    guard parts.count == 6, let filesDone = Int(parts[0]), let filesTotal = Int(parts[1]),
      let bytesDone = UInt64(parts[2]), let bytesTotal = UInt64(parts[3]), let unknown = Int(parts[4]),
      let rate = UInt64(parts[5])
    else { return nil }
    self.init(
      filesDone: filesDone, filesTotal: filesTotal, bytesDone: bytesDone, bytesTotal: bytesTotal,
      unknownSizes: unknown, rate: rate)
  }
}
