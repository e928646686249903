/// The number of exchanges that one host gets at once as HTTP/2 streams. A value.
///
/// libcurl does not reveal the server's SETTINGS. With more streams than a connection accepts, it opens another one. So the limit
/// grows by one with each answer while all streams are taken, and stays as soon as another connection was opened.
struct StreamLimit: Sendable, Equatable {
  /// Trouble with an exchange.
  enum Trouble: Sendable {
    /// The server failed (5xx), perhaps for this exchange alone.
    case fault
    /// The server is overloaded or hangs up (429, 503, REFUSED_STREAM, GOAWAY), which concerns all exchanges. After REFUSED_STREAM
    /// libcurl first tries five new connections by itself.
    case overload
  }

  static let first = 64
  static let last = 256

  private(set) var most = first
  private var mayGrow = true
  /// Answers since a connection was opened.
  private var answers = 1
  /// Streams that have been running since before the last cut. Their trouble is already accounted for.
  private var earlier = 0

  /// Counts the answer of a stream.
  ///
  /// A server that ends its connections after fewer answers than there are streams gets the rest again and again.
  ///
  /// - Parameters:
  ///   - isNew: true when a connection was opened for it.
  ///   - running: the number of running streams, including this one.
  mutating func answered(isNew: Bool, running: Int) {
    guard isNew else {
      answers += 1
      if mayGrow, running >= most, most < Self.last { most += 1 }
      return
    }
    if answers < most { meet(.fault, running: running) }
    (answers, mayGrow) = (1, false)
  }

  /// - Parameter running: the number of running streams, including the one with the trouble.
  mutating func meet(_ trouble: Trouble, running: Int) {
    guard earlier == 0 else { return }
    most = trouble == .overload ? 0 : most / 2
    (mayGrow, earlier) = (false, running)
  }

  mutating func ended() { earlier = max(0, earlier - 1) }

  /// Resets the counts when no stream runs: the connection may end without consequences.
  mutating func rested() { (answers, earlier) = (Self.last, 0) }
}
