import Foundation
import Testing

/// Over HTTP/2 the transfers from a host are streams of one connection, and short ones share a place.
@Suite(
  .serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"),
  .enabled(if: Program.find("openssl") != nil, "openssl is not installed"))
struct StreamTests {
  /// From the first answer on, whether their sizes are known or not, also where there is only one. Larger files have one each.
  @Test(
    arguments: [
      (perHost: "6", total: "16", size: 12_000, files: 90, most: 20...90), ("6", "3", 12_000, 90, 20...90),
      ("2", "16", 12_000, 90, 20...90), ("1", "16", 12_000, 90, 20...90), ("6", "1", 12_000, 90, 20...90),
      ("2", "16", 65_537, 4, 2...2),
    ], [true, false])
  func shortOnesShareAPlace(
    _ row: (perHost: String, total: String, size: Int, files: Int, most: ClosedRange<Int>), isKnown: Bool
  ) throws {
    let house = try House()
    let files = try house.files(row.files, of: row.size, at: "held")
    let quick = try house.files(20, of: 10, at: "quick")
    let program = try house.begin(
      quick + files, isKnown: isKnown, "--connections-per-host", row.perHost, "--connections", row.total)
    defer { program.signal(SIGKILL) }
    // What is of unknown size is a stream at first.
    let most = isKnown || row.size < 60_000 ? row.most : row.files...row.files
    let turns = try house.letGoInTurns(program, most.lowerBound, of: files)
    let outcome = try program.wait()
    #expect(outcome.status == 0, "\(outcome)")
    #expect(files.allSatisfy { house.has($0) })
    let asked = try house.requests(at: "held")
    #expect(asked.count == files.count && asked.allSatisfy { $0.spoken == "HTTP/2.0" }, "\(asked)")
    #expect(Set(asked.map(\.connection)).count == 1, "\(asked)")
    #expect(most.contains(turns.max() ?? 0), "\(turns)")
  }

  /// nginx takes 128 streams on a connection: with more of them there is another one.
  @Test func theServersLimitIsKept() throws {
    let house = try House()
    let files = try house.files(400, of: 30_000, at: "held")
    let program = try house.begin(house.files(20, of: 10, at: "quick") + files)
    defer { program.signal(SIGKILL) }
    let turns = try house.letGoInTurns(program, 65, of: files)
    let outcome = try program.wait()
    #expect(outcome.status == 0, "\(outcome)")
    let asked = try house.requests(at: "held")
    #expect((65...200).contains(turns.max() ?? 0), "\(turns)")
    #expect(Set(asked.map(\.connection)).count <= 3, "\(asked)")
  }

  /// A slow host's streams take no more places than its connections would.
  @Test func anotherHostKeepsItsPlaces() throws {
    let house = try House()
    let slow = try house.files(40, of: 12_000, at: "held")
    let quick = try house.files(400, of: 10, at: "quick")
    let others = try house.files(10, of: 12_000, at: "tls-free")
    let program = try house.begin(
      quick + slow + others, "--connections-per-host", "2", "--connections", "3")
    defer { program.signal(SIGKILL) }
    // More than it may have connections.
    try house.held.wait(for: 10)
    try waitUntil("the other host's files are there") { others.allSatisfy { house.has($0) } }
    #expect(try house.requests(at: "held").isEmpty, "none has ended by then")
    house.held.open()
    let outcome = try program.wait()
    #expect(outcome.status == 0 && slow.allSatisfy { house.has($0) }, "\(outcome)")
  }

  /// 503 says that it is too much already, and so does who hangs up. Fewer are still more than there are connections.
  @Test(arguments: ["busy", "gone"]) func aHostInTroubleIsAskedForFewer(place: String) throws {
    let house = try House()
    // More than may be asked for at once, so that some are left when the answer is read.
    let slow = try house.files(400, of: 12_000, at: "held")
    let files = try house.files(1, of: 12_000, at: place) + slow
    let quick = try house.files(20, of: 10, at: "quick")
    let program = try house.begin(quick + files, "--connections-per-host", "6", "--retries", "0")
    defer { program.signal(SIGKILL) }
    try waitUntil("the host is in trouble") { try !house.requests(at: place).isEmpty }
    var turns: [Int] = []
    // Some may be asked for before the answer is read.
    for _ in 0..<3 {
      try house.waitForTurn(of: program, 7)
      turns.append(house.held.letGo())
    }
    house.held.open()
    let outcome = try program.wait()
    #expect(outcome.status == 3, "\(outcome)")
    #expect(slow.allSatisfy { house.has($0) })
    // Half of 64 and of what the quick ones added, and one more with each turn.
    #expect((7...50).contains(turns[2]), "\(turns)")
  }

  /// There they share one place, too, and other hosts of the mirror have theirs.
  @Test func underTheAgentShortOnesShareAPlace() throws {
    let house = try House()
    let slow = try house.files(90, of: 12_000, at: "held")
    let quick = try house.files(20, of: 10, at: "quick")
    let others = try house.files(10, of: 12_000, at: "tls-free")
    let agent = try house.agent(quick + slow + others, connectionsPerHost: 2, connections: 3)
    defer { agent.signal(SIGKILL) }
    let sync = try house.begin(by: agent)
    defer { sync.signal(SIGKILL) }
    try waitUntil("the other host's files are there") { others.allSatisfy { house.has($0) } }
    #expect(try house.requests(at: "held").isEmpty, "none has ended by then")
    let turns = try house.letGoInTurns(sync, 20, of: slow)
    let outcome = try sync.wait()
    #expect(outcome.status == 0, "\(outcome)")
    #expect((slow + others).allSatisfy { house.has($0) })
    #expect((20...90).contains(turns.max() ?? 0), "\(turns)")
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
  /// Has the files of the place `held`.
  let held: HeldServer

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
    held = try HeldServer(.answers)
    server = try Nginx(
      locations: """
        listen 127.0.0.1:\(port) ssl http2;
        ssl_certificate \(certificate);
        ssl_certificate_key \(key);
        location /held/ { alias \(directory.path)/files/; \(held.location) }
        location /quick/ { alias \(directory.path)/files/; }
        location /busy/ { return 503; }
        location /gone/ { return 444; }
        """)
  }

  func files(_ count: Int, of size: Int, at place: String) throws -> [File] {
    try (0..<count).map { number in
      // Files come in the order of their names. The first answers, which tell that it is HTTP/2, are not held.
      let prefix = place == "quick" ? "a-" : "b-"
      let file = File(name: "\(prefix)\(place)-\(1000 + number)", place: place, size: size)
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
  func begin(_ files: [File], isKnown: Bool = true, _ options: String...) throws -> Program {
    let feed = try directory.write(document(files, isKnown: isKnown), to: "feed.meta4")
    return try Tarn.start(
      ["sync", "--no-input", feed.path, directory.path + "/mirror", "--cacert", directory.path + "/ca.pem"]
        + options)
  }

  /// Waits until so many are held and no more come, or the pass has ended.
  ///
  /// Silence that lasts longer than 30 s ends transfers, so that it takes 20 s at most. Where fewer come, the caller sees it.
  func waitForTurn(of pass: Program, _ count: Int) throws {
    try waitUntil("some are held, or it ends") { self.held.count > 0 || !pass.isRunning }
    let deadline = Date().addingTimeInterval(20)
    while self.held.count < count, pass.isRunning, Date() < deadline { _ = poll(nil, 0, 5) }
    if pass.isRunning { held.settle() }
  }

  /// Lets go of what is held, turn by turn, until the pass has ended.
  ///
  /// - Parameters:
  ///   - count: as many are waited for in each turn, or all that are left. A turn that a busy machine cuts short is not the only one.
  ///   - files: all that are held in the end.
  /// - Returns: how many were held at once, each time.
  func letGoInTurns(_ pass: Program, _ count: Int, of files: [File]) throws -> [Int] {
    var turns: [Int] = []
    var left = files.count
    while true {
      try waitForTurn(of: pass, min(count, left))
      guard pass.isRunning else { return turns }
      turns.append(held.letGo())
      left -= turns[turns.count - 1]
    }
  }

  private var home: [String: String] {
    [
      "HOME": directory.path, "STATE_DIRECTORY": directory.path + "/state",
      "RUNTIME_DIRECTORY": directory.path + "/run",
    ]
  }
  private var config: [String] { ["--config", directory.path + "/tarn.toml"] }

  /// An agent with a mirror of these files.
  func agent(_ files: [File], connectionsPerHost: Int, connections: Int) throws -> Program {
    try directory.write(document(files), to: "feed.meta4")
    try directory.write(
      """
      [limits]
      connections-per-host = \(connectionsPerHost)
      connections = \(connections)

      [mirror.files]
      feed = "\(directory.path)/feed.meta4"
      folder = "\(directory.path)/mirror"
      cacert = "\(directory.path)/ca.pem"

      """, to: "tarn.toml")
    return try Tarn.start(["agent"] + config, environment: home, in: directory.url)
  }

  func begin(by agent: Program) throws -> Program {
    try waitUntil("it answers") { agent.errorsSoFar.contains("answers at") }
    return try Tarn.start(["sync", "files"] + config, environment: home, in: directory.url)
  }

  func has(_ file: File) -> Bool {
    guard let text = directory.text("mirror/\(file.name)") else { return false }
    return text == directory.text("files/\(file.name)")
  }

  func requests(at place: String) throws -> [Nginx.Request] {
    try server.requests().filter { $0.uri.contains("/\(place)/") }
  }
}
