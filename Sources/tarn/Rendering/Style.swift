/// The colours of a text, or none.
struct Style: Sendable {
  enum Paint: String, Sendable {
    case good = "32"
    case warning = "33"
    case bad = "31"
    case strong = "1"
    case faint = "2"
  }
  var isOn: Bool

  func paint(_ text: String, _ paint: Paint?) -> String {
    guard isOn, let paint, !text.isEmpty else { return text }
    return "\u{1B}[\(paint.rawValue)m\(text)\u{1B}[0m"
  }
}
