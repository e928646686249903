/// How many exchanges one host is sent at once by streams of HTTP/2. A value.
///
/// libcurl keeps the server's SETTINGS to itself. With more streams than a connection takes it opens another one. So the limit grows
/// by one with each answer while all streams are taken, and stays where it is once another connection came to be.
struct StreamLimit: Sendable, Equatable {
  /// What went wrong with an exchange.
  enum Trouble: Sendable {
    /// Of this exchange alone, perhaps: the server failed (5xx).
    case fault
    /// Of all: the server is asked for too much, or hangs up (429, 503, REFUSED_STREAM, GOAWAY).
    case overload
  }

  static let first = 64
  static let last = 256

  private(set) var most = first
  private var mayGrow = true
  /// Since a connection was opened.
  private var answers = 1
  /// Streams that run since before the last cut: what they meet is known.
  private var earlier = 0

  /// A stream has its answer.
  ///
  /// A server that ends its connections after fewer answers than there are streams has them asked for again and again.
  ///
  /// - Parameters:
  ///   - isNew: a connection was opened for it.
  ///   - running: streams, this one included.
  mutating func answered(isNew: Bool, running: Int) {
    guard isNew else {
      answers += 1
      if mayGrow, running >= most, most < Self.last { most += 1 }
      return
    }
    if answers < most { meet(.fault, running: running) }
    (answers, mayGrow) = (1, false)
  }

  /// - Parameter running: streams, the one that met it included.
  mutating func meet(_ trouble: Trouble, running: Int) {
    guard earlier == 0 else { return }
    most = trouble == .overload ? 0 : most / 2
    (mayGrow, earlier) = (false, running)
  }

  mutating func ended() { earlier = max(0, earlier - 1) }

  /// Nobody runs: the connection may end as it likes.
  mutating func rested() { (answers, earlier) = (Self.last, 0) }
}
