/// The formats of a feed's own document and of the listings below it, which servers behind one address may write in different ways.
///
/// The ledger keeps them as text: that of the document, then the others in order, separated by commas.
struct ListFormats: Equatable {
  private let first: String
  private let others: Set<String>

  /// - Parameter below: the formats of the listings below the document.
  init(_ first: String, below: Set<String> = []) {
    (self.first, others) = (first, below.subtracting([first]))
  }

  init(text: String) {
    let names = text.split(separator: ",").map { $0.drop { $0 == " " } }.map(String.init)
    self.init(names.first ?? text, below: Set(names.dropFirst()))
  }

  var text: String { ([first] + others.sorted()).joined(separator: ", ") }

  /// True when a list of these formats has none that is new: the document has the same, and the listings below it have no other.
  func areKnown(from earlier: ListFormats) -> Bool {
    first == earlier.first && others.isSubset(of: earlier.others)
  }
}
