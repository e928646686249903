import Foundation
import Testing

/// Over HTTP/2 the transfers from a host are streams of one connection, and short ones share a place.
@Suite(
  .serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"),
  .enabled(if: Program.find("openssl") != nil, "openssl is not installed"))
struct StreamTests {
  /// From the first answer on, whether their sizes are known or not; with one place, and for larger files, each has one.
  @Test(
    arguments: [
      (perHost: "6", total: "16", size: 12_000, files: 90, most: 20...90), ("6", "3", 12_000, 90, 20...90),
      ("2", "16", 12_000, 90, 20...90), ("1", "16", 12_000, 3, 1...1), ("6", "1", 12_000, 3, 1...1),
      ("2", "16", 65_537, 4, 2...2),
    ], [true, false])
  func shortOnesShareAPlace(
    _ row: (perHost: String, total: String, size: Int, files: Int, most: ClosedRange<Int>), isKnown: Bool
  ) throws {
    let house = try House()
    let files = try house.files(row.files, of: row.size, at: row.size > 60_000 ? "wide" : "slow")
    let quick = try house.files(20, of: 10, at: "quick")
    let outcome = try house.sync(
      quick + files, isKnown: isKnown, "--connections-per-host", row.perHost, "--connections", row.total)
    #expect(outcome.status == 0, "\(outcome)")
    #expect(files.allSatisfy { house.has($0) })
    let asked = try house.requests(at: files[0].place)
    #expect(asked.count == files.count && asked.allSatisfy { $0.spoken == "HTTP/2.0" }, "\(asked)")
    #expect(Set(asked.map(\.connection)).count == 1, "\(asked)")
    // What is of unknown size is a stream at first.
    let most = isKnown || row.most == 1...1 || row.size < 60_000 ? row.most : row.files...row.files
    #expect(most.contains(House.mostAtOnce(asked)), "\(House.mostAtOnce(asked)) \(asked)")
  }

  /// nginx takes 128 streams on a connection: with more of them there is another one.
  @Test func theServersLimitIsKept() throws {
    let house = try House()
    // Each takes five seconds, so that a busy machine gets to ask for many meanwhile.
    let files = try house.files(400, of: 30_000, at: "slow")
    let outcome = try house.sync(house.files(20, of: 10, at: "quick") + files)
    #expect(outcome.status == 0, "\(outcome)")
    let asked = try house.requests(at: "slow")
    let most = House.mostAtOnce(asked)
    #expect((65...200).contains(most) && Set(asked.map(\.connection)).count <= 3, "\(most) \(asked)")
  }

  /// A slow host's streams take no more places than its connections would.
  @Test func anotherHostKeepsItsPlaces() throws {
    let house = try House()
    let slow = try house.files(40, of: 12_000, at: "slow")
    let quick = try house.files(400, of: 10, at: "quick")
    let others = try house.files(10, of: 12_000, at: "tls-free")
    let outcome = try house.sync(quick + slow + others, "--connections-per-host", "2", "--connections", "3")
    #expect(outcome.status == 0, "\(outcome)")
    let ends = try house.requests(at: "slow").compactMap { Double($0.ended) }.sorted()
    let last = try #require(house.requests(at: "tls-free").compactMap { Double($0.ended) }.max())
    #expect(ends.count == 40 && last < ends[10], "\(last) \(ends)")
  }

  /// 503 says that it is too much already, and so does who hangs up.
  @Test(arguments: ["busy", "gone"]) func aHostInTroubleIsAskedForNoMoreThanConnections(place: String) throws
  {
    let house = try House()
    // More than may be asked for at once, so that some are left whenever the answer is read.
    let files = try house.files(1, of: 12_000, at: place) + house.files(40, of: 12_000, at: "slow")
    let quick = try house.files(400, of: 10, at: "quick")
    let outcome = try house.sync(quick + files, "--connections-per-host", "6", "--retries", "0")
    #expect(outcome.status == 3, "\(outcome)")
    #expect(files.count { house.has($0) } == 40)
    let trouble = try #require(house.requests(at: place).compactMap { Double($0.ended) }.max())
    let asked = try house.requests(at: "slow")
    // Some may be asked for before the answer is read.
    #expect((1...6).contains(House.mostAtOnce(asked, after: trouble + 0.5)), "\(trouble) \(asked)")
  }

  /// There they share one place, too, and other hosts of the mirror have theirs.
  @Test func underTheAgentShortOnesShareAPlace() throws {
    let house = try House()
    let slow = try house.files(90, of: 12_000, at: "slow")
    let quick = try house.files(20, of: 10, at: "quick")
    let others = try house.files(10, of: 12_000, at: "tls-free")
    let outcome = try house.syncByAgent(quick + slow + others, connectionsPerHost: 2, connections: 3)
    #expect(outcome.status == 0, "\(outcome)")
    #expect((slow + others).allSatisfy { house.has($0) })
    let most = try House.mostAtOnce(house.requests(at: "slow"))
    #expect((20...90).contains(most), "\(most)")
    let ends = try house.requests(at: "slow").compactMap { Double($0.ended) }.sorted()
    let last = try #require(house.requests(at: "tls-free").compactMap { Double($0.ended) }.max())
    #expect(ends.count == 90 && last < ends[80], "\(last) \(ends)")
  }
}

/// A server of HTTP/2 and files that are there; a Metalink says their sizes.
private final class House {
  struct File {
    let name: String
    let place: String
    let size: Int
  }

  private let directory: TemporaryDirectory
  private let server: Nginx
  private let port: UInt16

  init() throws {
    directory = try TemporaryDirectory()
    let (certificate, key) = (directory.path + "/ca.pem", directory.path + "/key.pem")
    let openssl = try #require(Program.find("openssl"))
    let made = try Program(
      openssl,
      [
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
        "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate,
      ]
    ).wait()
    try #require(made.status == 0, "\(made)")
    port = try Loopback.freePort()
    // A body takes three seconds where it is slow, and more than one where it is wide: a busy machine begins many at once, too.
    server = try Nginx(
      locations: """
        listen 127.0.0.1:\(port) ssl http2;
        ssl_certificate \(certificate);
        ssl_certificate_key \(key);
        location /slow/ { alias \(directory.path)/files/; limit_rate 4k; }
        location /wide/ { alias \(directory.path)/files/; limit_rate 50k; }
        location /quick/ { alias \(directory.path)/files/; }
        location /busy/ { return 503; }
        location /gone/ { return 444; }
        """)
  }

  func files(_ count: Int, of size: Int, at place: String) throws -> [File] {
    try (0..<count).map { number in
      let file = File(name: "\(place)-\(1000 + number)", place: place, size: size)
      try directory.write(
        String(repeating: file.name + "\n", count: size).prefix(size).description, to: "files/\(file.name)")
      return file
    }
  }

  /// Those of the other place come by plain HTTP, from another host.
  private func url(of file: File) -> String {
    file.place == "tls-free"
      ? "http://127.0.0.1:\(server.port)/quick/\(file.name)"
      : "https://127.0.0.1:\(port)/\(file.place)/\(file.name)"
  }

  private func document(_ files: [File], isKnown: Bool = true) -> String {
    let entries = files.map {
      let size = isKnown ? "<size>\($0.size)</size>" : ""
      return "<file name=\"\($0.name)\">\(size)<url>\(url(of: $0))</url></file>\n"
    }
    return "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\n\(entries.joined())</metalink>\n"
  }

  /// - Parameter isKnown: the feed says their sizes.
  func sync(_ files: [File], isKnown: Bool = true, _ options: String...) throws -> Outcome {
    let feed = try directory.write(document(files, isKnown: isKnown), to: "feed.meta4")
    return try Tarn.run(
      ["sync", "--no-input", feed.path, directory.path + "/mirror", "--cacert", directory.path + "/ca.pem"]
        + options)
  }

  /// The same by an agent that is asked for it.
  func syncByAgent(_ files: [File], connectionsPerHost: Int, connections: Int) throws -> Outcome {
    try directory.write(document(files), to: "feed.meta4")
    let settings = try directory.write(
      """
      [limits]
      connections-per-host = \(connectionsPerHost)
      connections = \(connections)

      [mirror.files]
      feed = "\(directory.path)/feed.meta4"
      folder = "\(directory.path)/mirror"
      cacert = "\(directory.path)/ca.pem"

      """, to: "tarn.toml")
    let home = [
      "HOME": directory.path, "STATE_DIRECTORY": directory.path + "/state",
      "RUNTIME_DIRECTORY": directory.path + "/run",
    ]
    let config = ["--config", settings.path]
    let agent = try Tarn.start(["agent"] + config, environment: home, in: directory.url)
    defer { agent.signal(SIGKILL) }
    try waitUntil("it answers") { agent.errorsSoFar.contains("answers at") }
    return try Tarn.run(["sync", "files"] + config, environment: home, in: directory.url)
  }

  func has(_ file: File) -> Bool {
    guard let text = directory.text("mirror/\(file.name)") else { return false }
    return text == directory.text("files/\(file.name)")
  }

  func requests(at place: String) throws -> [Nginx.Request] {
    try server.requests().filter { $0.uri.contains("/\(place)-") }
  }

  /// - Parameter time: counted when one begins that begins later.
  static func mostAtOnce(_ requests: [Nginx.Request], after time: Double = 0) -> Int {
    let spans = requests.compactMap { request -> ClosedRange<Double>? in
      guard let end = Double(request.ended), let took = Double(request.took) else { return nil }
      return (end - took)...end
    }
    // The log's times are of milliseconds: who ends and who begins then are not at once.
    return spans.filter { $0.lowerBound > time }.map { span in
      spans.count { $0.lowerBound <= span.lowerBound + 0.005 && span.lowerBound + 0.005 < $0.upperBound }
    }.max() ?? 0
  }
}
