/// The number of exchanges that one host gets at once as HTTP/2 streams: a congestion window. A value.
///
/// It grows with the answers that come while all streams are taken, and trouble halves it. Streams that were let in before it was
/// halved tell of the same trouble, so each generation of streams halves it once.
///
/// libcurl does not reveal the server's SETTINGS. With more streams than a connection accepts, it opens another one. Other clients
/// use the same connections, so another one is no trouble. It only tells that this many streams suffice, and holds them there where
/// the client may have no more connections.
struct StreamLimit: Sendable, Equatable {
  /// How fast the number grows.
  private enum Growth {
    /// By one with each answer, until trouble or another connection.
    case withEachAnswer
    /// By one with as many answers as there are streams.
    case withEachRound
  }

  /// The answers without a new connection, up to the number of streams that were running at the first of them. All of these then had
  /// room.
  private struct Round: Sendable, Equatable {
    var streams = 0
    var answers = 0
  }

  static let first = 64
  static let last = 256

  private(set) var most = first
  /// The number that it does not outgrow.
  private var ceiling = last
  /// The number of times that trouble has halved it.
  private(set) var generation = 0
  private var growth = Growth.withEachAnswer
  /// The answers while all streams were taken, since the number changed or a connection was opened.
  private var answers = 0
  /// The most streams that were all answered without a new connection.
  private(set) var fitting = 0
  private var round = Round()

  /// Counts the answer of a stream.
  ///
  /// - Parameters:
  ///   - isNew: true when a connection was opened for it.
  ///   - running: the number of running streams, including this one.
  mutating func answered(isNew: Bool, running: Int) {
    if isNew { (growth, answers, round) = (Growth.withEachRound, 0, Round(streams: running)) }
    countRound(running)
    guard running >= most else { return }
    answers += 1
    if answers >= most { fitting = max(fitting, most) }
    guard most < ceiling else { return }
    guard growth == .withEachAnswer || answers >= most else { return }
    (most, answers) = (most + 1, 0)
  }

  private mutating func countRound(_ running: Int) {
    round.answers += 1
    guard round.answers >= round.streams else { return }
    fitting = max(fitting, round.streams)
    round = Round(streams: running)
  }

  /// Holds the number: with more streams the client would have more connections than it may.
  mutating func hold(at count: Int) {
    ceiling = min(ceiling, count)
    most = min(most, ceiling)
  }

  /// Halves the number after trouble: 429, 5xx, or no whole answer. After REFUSED_STREAM and GOAWAY libcurl first tries new
  /// connections by itself.
  ///
  /// - Parameters:
  ///   - generation: the generation in which the stream was let in.
  ///   - fewest: the number of connections that the host may get. So many streams are always allowed.
  mutating func meetTrouble(of generation: Int, fewest: Int) {
    guard generation == self.generation else { return }
    most = max(min(most, fewest), most / 2)
    (self.generation, growth, answers) = (generation + 1, Growth.withEachRound, 0)
    // Its connections may have ended.
    (fitting, round) = (0, Round())
  }
}
