import Foundation
import TarnKit
import TarnKitTesting
import Testing

/// Packages of other people that use TarnKit: built anew, in folders of their own. They take a minute each.
@Suite(
  .serialized,
  .enabled(
    if: ProcessInfo.processInfo.environment["TARN_CONSUMER"] != nil,
    "takes minutes: only with TARN_CONSUMER=1, as packaging/test --all sets it"),
  .enabled(if: Tarn.obstacle == nil, "\(Tarn.obstacle ?? "")"))
struct ConsumerTests {
  /// A folder, `tarn` beside it, and an empty one for pkg-config.
  private let place: TemporaryDirectory
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  init() throws {
    place = try TemporaryDirectory()
    let files = FileManager.default
    for name in ["tarn", "none"] {
      try files.createDirectory(atPath: "\(place.path)/\(name)", withIntermediateDirectories: true)
    }
    for name in ["Package.swift", "Sources", "Examples", "Tests"] {
      try files.createSymbolicLink(
        atPath: "\(place.path)/tarn/\(name)",
        withDestinationPath: Self.root.appendingPathComponent(name).path)
    }
  }

  /// As on a machine without Tarn's libraries.
  private func run(_ program: String, _ words: [String], _ more: [String: String] = [:]) throws -> Outcome {
    var environment = ProcessInfo.processInfo.environment
    environment["CI"] = nil
    environment["PKG_CONFIG_LIBDIR"] = place.path + "/none"
    environment.merge(more) { $1 }
    let found = program.hasPrefix("/") ? program : Program.find(program)
    return try Program(
      try #require(found), words, environment: environment,
      in: place.url.appendingPathComponent("app")
    ).wait(limit: 1200)
  }

  /// - Returns: the packages that were fetched.
  private func build() throws -> [String] {
    let outcome = try run("swift", ["build"])
    try #require(outcome.status == 0, "\(outcome.output.suffix(3000))\n\(outcome.errors.suffix(3000))")
    let pins = try JSON.documents(try #require(place.text("app/Package.resolved"))).first?["pins"]
    return (pins as? [[String: Any]] ?? []).compactMap { $0["identity"] as? String }.sorted()
  }

  private func expectFewLibraries(_ program: String) throws {
    let outcome = try run("readelf", ["-d", ".build/debug/\(program)"])
    let needed = outcome.output.split(separator: "\n").filter { $0.contains("(NEEDED)") }
    #expect(outcome.status == 0 && !needed.isEmpty, "\(outcome)")
    for name in ["curl", "xml2", "sqlite", "inotifytools", "crypto", "ssl"] {
      #expect(!needed.contains { $0.contains("lib\(name)") }, "\(needed)")
    }
  }

  private static let few = ["swift-atomics", "swift-collections", "swift-nio", "swift-system"]

  /// Its product, and the kit for its tests.
  @Test func aProgramLinksAndFetchesWhatItNeedsAlone() throws {
    try place.write(
      """
      // swift-tools-version: 6.2
      import PackageDescription
      let package = Package(
        name: "app",
        dependencies: [.package(path: "../tarn", traits: [])],
        targets: [
          .executableTarget(
            name: "app",
            dependencies: [
              .product(name: "TarnKit", package: "tarn"), .product(name: "TarnKitTesting", package: "tarn"),
            ])
        ])

      """, to: "app/Package.swift")
    try place.write(
      """
      import TarnKit
      import TarnKitTesting

      let (agent, server) = (try TestAgent(), try await TestServer())
      try await agent.start()
      server.serve("a", [1, 2, 3])
      let session = try await BackgroundSession.open("app", agent: agent.agent).session
      let task = try await session.download(DownloadRequest(server.url("a"), to: agent.directory + "/"))
      print(try await task.ended().state)

      """, to: "app/Sources/app/main.swift")
    #expect(try build() == Self.few)
    try expectFewLibraries("app")
    let outcome = try run(place.path + "/app/.build/debug/app", [], ["TARN_PROGRAM": Tarn.path])
    #expect(outcome.status == 0 && outcome.output == "finished\n", "\(outcome)")
  }

  /// The blocks of code of the page, as they stand, in an empty folder.
  @Test func theTutorialRunsAsWritten() async throws {
    let page = try String(
      contentsOf: Self.root.appendingPathComponent("Sources/TarnKit/TarnKit.docc/FirstDownload.md"),
      encoding: .utf8)
    let blocks = page.components(separatedBy: "```swift\n").dropFirst().compactMap {
      $0.components(separatedBy: "```\n").first
    }
    try #require(blocks.count == 2)
    try place.write(blocks[0], to: "app/Package.swift")
    try place.write(blocks[1], to: "app/Sources/first/main.swift")
    #expect(try build() == Self.few)
    try expectFewLibraries("first")
    let (agent, server) = (try TestAgent(program: Tarn.path), try await TestServer())
    try await agent.start()
    server.serve("europe.map", Array("map".utf8))
    let socket = ["TARN_SOCKET": try #require(agent.agent.socket)]
    let program = place.path + "/app/.build/debug/first"
    let handed = try run(program, [server.url("europe.map"), place.path + "/"], socket)
    #expect(handed.status == 0 && handed.output == "handed over as task 1\n", "\(handed)")
    let collected = try run(program, [], socket)
    #expect(collected.output == "there: \(place.path)/europe.map\n", "\(collected)")
    #expect(place.text("europe.map") == "map")
  }
}
