import Foundation
import Testing

/// The cases that nobody could simulate: what becomes of a program, of its downloads, and of the network and the agent beneath them.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
struct SessionFateTests {
  /// Of a program whose downloads are at work.
  enum Fate: CaseIterable {
    case running, stopped, killed
    /// Killed, and begun again while the server cannot be reached.
    case restarted

    var isDeath: Bool { self == .killed || self == .restarted }
  }

  /// Of a download.
  enum End: CaseIterable {
    case finishes, fails, asks

    var name: String {
      switch self {
      case .finishes: "a.txt"
      case .fails: "nothing"
      case .asks: "secret"
      }
    }
    var state: String {
      switch self {
      case .finishes: "finished"
      case .fails: "failed"
      case .asks: "waiting"
      }
    }
    /// Of the event that tells it.
    var code: String { self == .asks ? "needs-request" : state }
    /// Of the last event.
    var last: String { self == .asks ? "needs-request" : "all-delivered" }
  }

  private let house: SessionTests.House
  private let outage: Outage

  init() throws {
    outage = Outage.possible[0]
    house = try SessionTests.House.make(for: outage)
  }

  private func follow() throws -> Program { try house.begin("session", "events", "--follow", "--json", "s") }

  /// What a program has heard: the number of each event, what it is, and of which task.
  private func heard(_ program: Program) throws -> [String] {
    let text = program.outputSoFar
    return try lines(JSON.documents(String(text[..<(text.lastIndex(of: "\n") ?? text.startIndex)])))
  }

  private func lines(_ events: [[String: Any]]) -> [String] {
    events.map { "\($0["number"] ?? "") \($0["code"] ?? "") \($0["task"] ?? "")" }
  }

  /// A program that follows its session, and is connected: it has heard of a download, and has acknowledged that.
  private func beginProgram() throws -> Program {
    try house.openImpatient()
    let program = try follow()
    try house.hand(house.server.url("named"))
    try waitUntil("it follows") { try heard(program).last?.contains("all-delivered") == true }
    #expect(try house.tarn("session", "ack", "s", "\(Int64.max)").status == 0)
    return program
  }

  /// Hands a download over to a server that is held still.
  private func handOver(_ end: End) throws {
    house.server.pause()
    try house.hand(house.server.url(end.name))
    // On a slow machine a second may be over by now.
    try waitUntil("it is at work") { try ["running", "waiting"].contains(house.states().last) }
  }

  private func meet(_ fate: Fate, _ program: Program) throws {
    switch fate {
    case .running: break
    case .stopped:
      program.signal(SIGSTOP)
      try waitUntil("it stands still") { program.isStopped }
    case .killed, .restarted:
      program.signal(SIGKILL)
      _ = try program.wait()
    }
  }

  /// A program hands a download over, and is then left, stopped, killed, or killed and begun again while there is no network: it gets
  /// exactly what it missed, in order, until it acknowledges that; and the snapshot agrees.
  @Test(arguments: Fate.allCases, End.allCases)
  func everyProgramGetsWhatItMissed(fate: Fate, end: End) throws {
    try house.start()
    let program = try beginProgram()
    let before = try heard(program)
    try handOver(end)
    try meet(fate, program)
    var reader = program
    if fate == .restarted {
      try house.takeAway(outage)
      reader = try follow()
      try waitUntil("it hears that its download waits") {
        try heard(reader).contains { $0.contains("waiting") }
      }
      try house.bringBack(outage)
    }
    house.server.proceed()
    try house.wait(for: end.last)
    let missed = lines(try house.events())
    if fate == .stopped {
      #expect(try program.isStopped && heard(program) == before)
      program.signal(SIGCONT)
    }
    if fate == .killed { reader = try follow() }
    try waitUntil("the program has heard of all") { try heard(reader).last == missed.last }
    #expect(try heard(reader) == (fate.isDeath ? [] : before) + missed)
    try judge(end, missed)
    reader.signal(SIGINT)
    _ = try reader.wait()
    try acknowledge(missed)
  }

  /// What is told of a download that ended so, and what a snapshot shows.
  private func judge(_ end: End, _ missed: [String]) throws {
    let ends = missed.filter { !$0.contains("response") && !$0.contains("waiting") }
    let first = try #require(missed.first?.split(separator: " ").first.flatMap { Int($0) })
    #expect(missed.compactMap { Int($0.split(separator: " ")[0]) } == Array(first..<first + missed.count))
    #expect(
      ends.map { $0.drop { $0 != " " } } == [" \(end.code) 2"] + (end == .asks ? [] : [" all-delivered "]),
      "\(missed)")
    #expect(try house.states() == ["finished", end.state])
    #expect(try house.show().session["lastEvent"] as? Int == first + missed.count - 1)
    #expect(house.place.text("out/a.txt") == (end == .finishes ? "hello\n" : nil))
  }

  /// All of it comes again, to one that is killed and to the next, until it is acknowledged.
  private func acknowledge(_ missed: [String]) throws {
    let again = try follow()
    try waitUntil("it comes again") { try heard(again).last == missed.last }
    again.signal(SIGKILL)
    _ = try again.wait()
    #expect(try heard(again) == missed && lines(house.events()) == missed)
    let last = try #require(house.show().session["lastEvent"] as? Int)
    #expect(try house.tarn("session", "ack", "s", "\(last - 1)").status == 0)
    #expect(try lines(house.events()) == [missed.last])
    #expect(try house.tarn("session", "ack", "s", "\(last)").status == 0)
    #expect(try house.events().isEmpty && house.show().session["acknowledged"] as? Int == last)
  }

  /// The same with the agent killed while the download is at work, and begun again.
  @Test(arguments: Fate.allCases, End.allCases)
  func theAgentsDeathHidesNothing(fate: Fate, end: End) throws {
    let first = try house.start()
    let program = try beginProgram()
    let before = try heard(program)
    try handOver(end)
    try meet(fate, program)
    first.signal(SIGKILL)
    _ = try first.wait()
    // The program comes back while nobody answers.
    if fate == .restarted { #expect(try follow().wait().status == 69) }
    try house.start()
    house.server.proceed()
    try house.wait(for: end.last)
    let missed = lines(try house.events())
    program.signal(SIGCONT)
    let reader = fate.isDeath ? try follow() : program
    try waitUntil("the program has heard of all") { try heard(reader).last == missed.last }
    #expect(try heard(reader) == (fate.isDeath ? [] : before) + missed)
    try judge(end, missed)
    reader.signal(SIGINT)
    _ = try reader.wait()
    try acknowledge(missed)
  }
}
