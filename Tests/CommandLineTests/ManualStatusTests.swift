import Foundation
import TarnConfig
import TarnCore
import TarnEngine
import TarnSchedule
import Testing

@testable import tarn

/// tarn-status(5) has the words of the documents that Tarn prints, and no others.
@Suite struct ManualStatusTests {
  private let page: ManualPage

  init() throws { page = try ManualPage.named("tarn-status.5") }

  // MARK: - What the code says

  private static let sources: [String: String] = {
    let root = Documents.root.appendingPathComponent("Sources")
    var texts: [String: String] = [:]
    guard let walk = FileManager.default.enumerator(atPath: root.path) else { return texts }
    for case let path as String in walk where path.hasSuffix(".swift") {
      texts[path] = try? String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }
    return texts
  }()

  private static func source(_ path: String) throws -> String { try #require(sources[path], "\(path)") }

  /// What an expression captures, over all files whose paths begin so.
  private static func found(_ expression: Regex<(Substring, Substring)>, in place: String = "") -> Set<String>
  {
    var found: Set<String> = []
    for (path, text) in sources where path.hasPrefix(place) {
      found.formUnion(text.matches(of: expression).map { String($0.output.1) })
    }
    return found
  }

  // MARK: - States

  @Test func everyStateOfAMirrorIsThere() throws {
    var states = Set(PassEvent.Phase.allCases.map(\.rawValue))
    let query = try Self.source("TarnEngine/Commands/StatusQuery.swift")
    states.formUnion(query.matches(of: /(?:return|[?:]) "([a-z]+)"/).map { String($0.output.1) })
    states.formUnion(Self.found(/document\.state = "([a-z]+)"/))
    #expect(states.count > 10)
    #expect(Set(page.words("STATES", "State of a mirror")) == states)
  }

  @Test func everyStateOfAPathIsThere() {
    let place = "TarnEngine/Commands/"
    var states = Set(Problem.Kind.allCases.map(\.rawValue))
    states.formUnion(Self.found(/\(\s*"([a-z]+)",\s/, in: place + "PathContext"))
    states.formUnion(Self.found(/state: "([a-z]+)"/, in: place + "Explain"))
    #expect(states.count > 10)
    #expect(Set(page.words("STATES", "State of a path")) == states)
  }

  @Test func everyKindOfProblemIsThere() {
    #expect(page.words("STATES", "Kinds of problems") == Problem.Kind.allCases.map(\.rawValue).sorted())
  }

  @Test func everyVerdictOfACheckIsThere() throws {
    let status = try ManualPage.named("tarn-status.1")
    let verdicts = MirrorCheck.Verdict.allCases.map(\.rawValue)
    #expect(status.words("CHECKING").filter { !$0.contains(" ") } == verdicts.sorted())
    let text = try ManualPage.text("tarn-status.1")
    for verdict in MirrorCheck.Verdict.allCases {
      let nagios = NagiosStatus(verdict)
      #expect(
        text.contains(".It Cm \(verdict.rawValue) Ta \(nagios.word) (\(nagios.rawValue))\n"), "\(verdict)")
    }
  }

  // MARK: - Documents

  /// The names of all that a document has.
  private static func keys(_ document: Any) -> [String] {
    Documents.fields(document).map { $0.hasPrefix("_") ? String($0.dropFirst()) : $0 }.sorted()
  }

  /// The parts of the status by the headings of their keys, each with as few values as it can have.
  private static var documents: [(String, any Encodable)] {
    let mirror = StatusDocument(name: "", feed: "", folder: "", state: "")
    return [
      ("Keys of a mirror", mirror), ("Keys of entries", mirror.entries), ("Keys of bytes", mirror.bytes),
      (
        "Keys of progress",
        StatusDocument.Progress(
          filesDone: 0, filesTotal: 0, bytesDone: 0, bytesTotal: 0, unknownSizes: 0, rate: 0)
      ),
      ("Keys of feedTransfer", StatusDocument.FeedTransfer(received: 0, total: nil, rate: 0)),
      (
        "Keys of a transfer",
        StatusDocument.Transfer(path: "", received: 0, total: nil, rate: 0, source: "")
      ),
      ("Keys of watch", mirror.watch),
      ("Keys of lastRun", StatusDocument.LastRun(number: 0, code: "", message: "", exitStatus: 0)),
      ("Keys of lastRepair", StatusDocument.LastRepair(ended: "", changes: "")),
      ("Keys of held", StatusDocument.Held(plan: "", deletions: 0, since: "")),
      (
        "Keys of a problem",
        StatusDocument.ProblemLine(path: "", kind: "", code: "", message: "", since: "", attempts: 0)
      ),
      ("Keys of agent", AgentDocument(version: "", process: 0, started: "", settingsRead: "")),
      ("Keys of a resting host", AgentDocument.RestingHost(host: "", until: "")),
    ]
  }

  @Test func everyKeyOfTheStatusIsThere() {
    for (part, document) in Self.documents {
      #expect(page.words("STATUS DOCUMENT", part) == Self.keys(document), "\(part)")
    }
    #expect(Set(page.items("STATUS DOCUMENT").map(\.part)) == Set(Self.documents.map(\.0)))
    let event = EventDocument(number: 0, mirror: "", time: "", code: "", cursor: "")
    #expect(page.words("OTHER DOCUMENTS", "Events") == Self.keys(event))
  }

  /// A key without a value is null, unless the page says that it is missing.
  @Test func everyKeyThatMayBeMissingSaysSo() throws {
    for (part, document) in Self.documents {
      let text = try JSONEncoder().encode(document)
      let object = try JSONSerialization.jsonObject(with: text)
      let known = try #require(object as? [String: Any])
      for item in page.items("STATUS DOCUMENT", part) {
        for name in item.names {
          #expect((known[name] == nil) == item.text.contains("; missing "), "\(part): \(name)")
        }
      }
    }
  }

  @Test func everyWordOfTheStatusIsThere() {
    func text(_ part: String, _ name: String) -> String {
      page.items("STATUS DOCUMENT", part).first { $0.names.contains(name) }?.text ?? ""
    }
    for reason in RunSchedule.Reason.allCases {
      #expect(text("Keys of a mirror", "nextRunReason").contains(".Ql \(reason.rawValue) "), "\(reason)")
    }
    for word in ["in-sync", "partial", "held", "planned", "stopped"] {
      #expect(text("Keys of lastRun", "code").contains(".Ql \(word) "), "\(word)")
    }
    for mode in ["watching", "polling", "off"] {
      #expect(text("Keys of watch", "mode").contains(".Ql \(mode) "), "\(mode)")
    }
  }

  @Test func everyLineOfAPassIsThere() throws {
    let place = "tarn/"
    var types = Self.found(/type(?:: String)? = "([a-z]+)"/, in: place + "JSON/EventLine")
    types.formUnion(Self.found(/self\.init\(type: "([a-z]+)"\)/, in: place + "JSON/EventLine"))
    types.formUnion(Self.found(/[?:] "(summary|mirror|verified|accepted)"/, in: place))
    let part = page.items("OTHER DOCUMENTS", "Lines of a pass")
    #expect(types.count > 10)
    #expect(Set(part.flatMap(\.names)) == types)
    let action = part.first { $0.names == ["action"] }?.text ?? ""
    for kind in Action.Kind.allCases { #expect(action.contains(".Ql \(kind.rawValue) "), "\(kind)") }
  }

  @Test func everySchemaIsThere() {
    // That of the agent's own record is no document.
    let schemas = Self.found(/"(tarn-[a-z]+\/1)"/).subtracting(["tarn-agent/1"])
    let text = Set(page.quoted + page.words("OTHER DOCUMENTS", "Documents of other commands"))
    #expect(schemas.count > 15)
    #expect(schemas.subtracting(text).sorted() == [])
    #expect(Set(text.filter { $0.hasPrefix("tarn-") && $0.hasSuffix("/1") }) == schemas)
  }

  // MARK: - Codes

  @Test func everyEventIsThere() {
    // A plan has it, and no event.
    let done = Action.Kind.allCases.filter { $0 != .inspect }.flatMap {
      [$0.doneCode(isCopy: false), $0.doneCode(isCopy: true)]
    }
    var codes = Set(done + [ProblemNews.ended])
    codes.formUnion(Problem.Kind.allCases.filter { $0 != .held }.map(\.rawValue))
    codes.formUnion(Self.found(/[eE]vent\((?:[^"()]|\([^()]*\))*?code: "([a-z-]+)"/, in: "TarnEngine"))
    codes.formUnion(Self.found(/number: dropped, [^"]*code: "([a-z-]+)"/, in: "TarnEngine"))
    codes.formUnion(Self.found(/note\(\s*"([a-z-]+)"/, in: "TarnCore/Watch"))
    codes.formUnion(Self.found(/isWindow \? "([a-z]+)"/, in: "TarnEngine/Pass"))
    #expect(codes.count > 20)
    #expect(Set(page.words("EVENTS")) == codes)
  }

  /// Codes as the code writes them down.
  private static let codes: Set<String> = {
    var codes = found(/\b(?:code: |notice\(\s*|Refusal\.of\([^"]*code: )"([a-z]+(?:-[a-z0-9]+)*)"/)
    codes.formUnion(FolderFailure.Code.allCases.map(\.rawValue))
    codes.formUnion(DownloadFailure.Code.allCases.map(\.rawValue))
    codes.formUnion(LedgerFailure.Code.allCases.map(\.rawValue))
    codes.formUnion(PathRefusal.allCases.map(\.rawValue))
    codes.formUnion(SettingsProblem.Code.allCases.map(\.rawValue))
    codes.formUnion(WatchBlindness.Code.allCases.map(\.rawValue))
    return codes
  }()

  @Test func everyCodeIsThere() throws {
    #expect(Self.codes.count > 200)
    let sessions = try ManualPage.named("tarn-session.7").items.flatMap(\.names)
    let known = Set(page.words("CODES") + page.words("EVENTS") + sessions)
    #expect(Self.codes.subtracting(known).sorted() == [])
  }

  @Test func noCodeIsThereThatNobodyTells() {
    // Raw values and constants, too.
    let literals = Self.found(/"([a-z]+(?:-[a-z0-9]+)*)"/).union(Self.found(/case ([a-z]+)(?:,|\n)/))
    let unknown = Set(page.words("CODES")).subtracting(literals).subtracting(Self.codes)
    #expect(unknown.sorted() == ["http-STATUS"])
    let all = page.words("CODES")
    let twice = Dictionary(grouping: all, by: { $0 }).filter { $0.value.count > 1 }.keys
    #expect(twice.sorted() == [])
  }

  @Test func everyReasonForPollingIsThere() {
    #expect(
      page.words("CODES", "Reasons for polling") == WatchBlindness.Code.allCases.map(\.rawValue).sorted())
  }
}
