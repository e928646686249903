import Foundation
import TarnKit
import TarnKitTesting
import Testing

/// The program of Tests/Examples/Fetcher, as it was built with the tests.
@Suite(.enabled(if: Tarn.obstacle == nil, "\(Tarn.obstacle ?? "")"))
struct FetcherTests {
  private static let path = URL(
    fileURLWithPath: (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
      ?? CommandLine.arguments[0]
  ).deletingLastPathComponent().appendingPathComponent("Fetcher").path

  /// Killed with one file there and another one on its way; started again, it tells the rest once.
  @Test func itIsKilledAndCollectsTheRest() async throws {
    let (agent, server) = (try TestAgent(program: Tarn.path), try await TestServer())
    let place = try TemporaryDirectory()
    try await agent.start()
    server.serve("a.bin", [1])
    server.serve("b.bin", [2], .hangs)
    let environment = ["TARN_SOCKET": try #require(agent.agent.socket), "PATH": "/usr/bin:/bin"]
    let folder = place.path + "/out"
    func fetcher(_ urls: [String] = []) throws -> Program {
      try Program(Self.path, [folder] + urls, environment: environment)
    }
    let first = try fetcher([server.url("a.bin"), server.url("b.bin"), server.url("c.bin")])
    try waitUntil("the first file is told") { place.exists("out/a.bin") }
    try waitUntil("the second one is asked for") { server.requests.contains { $0.target == "/b.bin" } }
    first.signal(SIGKILL)
    let killed = try first.wait()
    #expect(killed.wasKilled)
    server.change("b.bin", to: .finishes)
    let second = try fetcher().wait()
    #expect(second.status == 0, "\(second)")
    #expect(second.output.contains("tasks: 3, "), "\(second)")
    let told = killed.output + second.output
    for line in ["finished: \(folder)/a.bin\n", "finished: \(folder)/b.bin\n", "c.bin (http-404)\n"] {
      #expect(told.contains(line), "\(line): \(told)")
    }
    #expect(second.output.components(separatedBy: "b.bin\n").count == 2, "\(second)")
    // All is acknowledged: a third one has nothing to tell.
    let third = try fetcher().wait()
    #expect(third.status == 0 && third.output == "tasks: 3, unfinished: 0\n", "\(third)")
  }
}
