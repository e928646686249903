import Foundation
import Testing

/// What a status costs is no matter of how many files there are.
@Suite(
  .serialized, .enabled(if: Tarn.obstacle == nil, "\(Tarn.obstacle ?? "")"),
  .enabled(if: Program.find("strace") != nil, "strace is not installed"))
struct StatusCostTests {
  private let place: TemporaryDirectory

  init() throws { place = try TemporaryDirectory() }

  /// How often `tarn status` reads from files, of a mirror of so many.
  private func reads(files count: Int) throws -> Int {
    let names = (0..<count).map { "source\(count)/f\($0)" }
    let files = try names.map { try place.write("the same\n", to: $0) }
    let digest = try Feeds.sha256(try #require(files.first))
    try place.write(names.map { "\(digest)  \($0)\n" }.joined(), to: "SHA256SUMS")
    let environment = ["HOME": place.path + "/home"]
    let folder = "m\(count)"
    let synced = try Tarn.run(
      ["sync", "-q", "./SHA256SUMS", folder], environment: environment, in: place.url)
    #expect(synced.status == 0, "\(synced)")
    let trace = place.path + "/trace\(count)"
    let arguments = ["-f", "-o", trace, "-e", "trace=pread64,read", Tarn.path, "status", folder]
    let strace = try #require(Program.find("strace"))
    let outcome = try Program(strace, arguments, environment: Tarn.environment(environment), in: place.url)
      .wait()
    #expect(outcome.status == 0 && outcome.output.contains("in sync"), "\(outcome)")
    return try String(contentsOfFile: trace, encoding: .utf8).split(separator: "\n").count
  }

  @Test func manyFilesCostNoMoreThanAFew() throws {
    let few = try reads(files: 10)
    let many = try reads(files: 3000)
    #expect(few > 0 && many < few + 50, "\(few) reads of 10 files, \(many) of 3,000")
  }
}
