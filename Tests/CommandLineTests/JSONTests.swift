import Foundation
import TarnAgent
import TarnCore
import TarnRuntime
import Testing

@testable import TarnEngine
@testable import tarn

@Suite struct JSONTests {
  private func object(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  @Test func namesKeepTheirBytes() {
    #expect(NameDocument(Array("a/b".utf8)).pathBytes == nil)
    #expect(NameDocument([0x61, 0xFF]).path == "a\\xff")
    #expect(NameDocument([0x61, 0xFF]).pathBytes == "Yf8=")
    #expect(NameDocument(Array("a\\b".utf8)).pathBytes == "YVxi")
  }

  @Test func eventLines() {
    var problem = EventLine(Samples.problem(.failed, "a/b", "http-404", "no such file"))
    problem.schema = "tarn-sync/1"
    #expect(
      JSONText.line(problem) == #"{"code":"http-404","kind":"failed","message":"no such file","path":"a/b","#
        + #""schema":"tarn-sync/1","type":"problem"}"#)
    let done = PassEvent.done(code: "fetched", path: Samples.path("a"), bytes: 5)
    #expect(EventLine(done, isVerbose: false) == nil)
    #expect(EventLine(done, isVerbose: true)?.type == "done")
    #expect(EventLine(.phase(.reading), isVerbose: false)?.phase == "reading")
  }

  @Test func summaryOfOne() throws {
    let line = SummaryLine(Samples.report(), schema: "tarn-sync/1", type: "summary", status: .inSync)
    let text = JSONText.line(line)
    #expect(!text.contains("\n"))
    #expect(!text.contains("\\/"))
    let object = try object(text)
    #expect(object["schema"] as? String == "tarn-sync/1")
    #expect(object["type"] as? String == "summary")
    #expect(object["inSync"] as? Bool == true)
    #expect(object["exitStatus"] as? Int == 0)
    #expect(object["folder"] as? String == "/srv/iso")
    let counts = try #require(object["counts"] as? [String: Int])
    #expect(counts["wanted"] == 5)
    #expect(counts["inPlace"] == 5)
  }

  /// Beside something to do a plan is not in sync; a pass is, once it has done it.
  @Test func summaryOfAPlan() throws {
    var report = Samples.report()
    report.counts.planned.all = 4
    func isInSync() throws -> Bool? {
      let line = SummaryLine(report, schema: "tarn-plan/1", type: "summary", status: .inSync)
      return try object(JSONText.line(line))["inSync"] as? Bool
    }
    #expect(try isInSync() == true)
    report.isPlan = true
    #expect(try isInSync() == false)
    report.counts.planned.all = 0
    #expect(try isInSync() == true)
    report.counts.held = 1
    #expect(try isInSync() == false)
    var line = EventLine(Action(.delete, path: Samples.path("old")))
    line.held = true
    #expect(JSONText.line(line).contains(#""held":true"#))
  }

  @Test func summaryOfSeveral() throws {
    let line = SummaryLine(
      [PassEnd(Samples.report()), PassEnd(Samples.report())], schema: "tarn-sync/1", mirrors: 3,
      status: .failed(.feedUnreachable))
    let object = try object(JSONText.line(line))
    #expect(object["mirrors"] as? Int == 3)
    #expect(object["failures"] as? Int == 1)
    #expect(object["inSync"] as? Bool == false)
    #expect((object["counts"] as? [String: Int])?["wanted"] == 10)
  }

  /// A pass of the agent's counts as one that was made here.
  @Test func summaryOfSeveralWithAnAgent() throws {
    var last = StatusDocument.LastRun(number: 1, code: "in-sync", message: "in sync", exitStatus: 0)
    last.counts = Samples.report().counts.named
    last.bytes = ["wanted": 7]
    let both = [try #require(PassEnd(last)), PassEnd(Samples.report())]
    let line = SummaryLine(both, schema: "tarn-sync/1", mirrors: 2, status: .inSync)
    #expect(line.inSync && line.failures == 0 && line.counts["wanted"] == 10)
    #expect(line.bytes["wanted"] == Samples.report().bytes.wanted + 7)
    last.code = "partial"
    last.exitStatus = 3
    #expect(PassEnd(last)?.isInSync == false)
    #expect(PassEnd(.init(number: 2, code: "http-404", message: "gone", exitStatus: 66)) == nil)
  }

  /// Programs rely on these keys.
  @Test func statusDocument() throws {
    let object = try object(JSONText.document(StatusAnswer(mirrors: [Samples.status()])))
    #expect(object["schema"] as? String == "tarn-status/1")
    let mirror = try #require((object["mirrors"] as? [[String: Any]])?.first)
    for key in [
      "name", "feed", "folder", "state", "lastSuccess", "lastAttempt", "entries", "bytes", "transfers",
      "watch", "problems",
    ] {
      #expect(mirror[key] != nil, "\(key)")
    }
  }

  @Test func explainHasItsSchemaAmongTheFields() throws {
    let answer = Explanation(path: "a", state: "unknown", summary: "nobody knows it")
    let object = try object(JSONText.line(ExplainReport(answer: answer, pathBytes: "YQ==")))
    #expect(object["schema"] as? String == "tarn-explain/1")
    #expect(object["state"] as? String == "unknown")
    #expect(object["pathBytes"] as? String == "YQ==")
  }
}
