import Foundation
import TarnControl
import TarnCore
import TestSupport
import Testing

/// tarn-session(7) names all that the wire takes and gives, and nothing else.
@Suite struct SessionPageTests {
  private static let file = Documents.root.appendingPathComponent("packaging/man/tarn-session.7")

  /// The lists of the page by their headings, each with the names of its items.
  private let lists: [String: [[String]]]
  /// Requests, as the first list of them has them.
  private let requests: [String]

  init() throws {
    let text = try String(contentsOf: Self.file, encoding: .utf8)
    var (lists, requests, heading): ([String: [[String]]], [String], String) = ([:], [], "")
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 1)
      let rest = words.count > 1 ? String(words[1]) : ""
      switch words.first {
      case ".Sh", ".Ss": heading = rest
      case ".Bl": lists[heading, default: []].append([])
      case ".It" where rest.hasPrefix("Ic "):
        // The line may break where the escape stands.
        requests.append(rest.dropFirst(3).replacingOccurrences(of: "\\:", with: ""))
      case ".It" where rest.hasPrefix("Cm "):
        let names = rest.dropFirst(3).split(separator: " ").filter { $0 != "," }.map(String.init)
        let last = lists[heading]?.popLast() ?? []
        lists[heading, default: []].append(last + names)
      default: break
      }
    }
    (self.lists, self.requests) = (lists, requests)
  }

  private func names(_ heading: String, _ index: Int = 0) -> [String] {
    let all = lists[heading] ?? []
    return all.indices.contains(index) ? all[index].sorted() : []
  }

  @Test func everyRequestIsThere() throws {
    var found: [String: (methods: Set<String>, parameters: Set<String>)] = [:]
    for request in requests {
      let parts = request.split(separator: " ", maxSplits: 1).map(String.init)
      let path = String(parts[1].prefix { $0 != "?" })
      found[path, default: ([], [])].methods.insert(parts[0])
      found[path]?.parameters.formUnion(parts[1].matches(of: /[?&](\w+)=/).map { String($0.output.1) })
    }
    let routes = ControlRoute.allCases.filter(\.isOfSessions)
    #expect(Set(found.keys) == Set(routes.map(\.rawValue)))
    for route in routes {
      #expect(found[route.rawValue]?.methods == Set(route.methods).subtracting(["HEAD"]), "\(route)")
      #expect(found[route.rawValue]?.parameters == Set(route.parameters), "\(route)")
    }
  }

  @Test func everyFieldThatIsTakenIsThere() {
    func keys(_ route: ControlRoute, _ method: String, below prefix: String? = nil) -> [String] {
      route.keys(of: method).compactMap { key in
        guard let prefix else { return key.contains(".") ? nil : key }
        return key.hasPrefix(prefix + ".") ? String(key.dropFirst(prefix.count + 1)) : nil
      }.sorted()
    }
    #expect(names("Fields of a task request") == keys(.tasks, "POST"))
    #expect(names("Fields of a task request", 1) == keys(.tasks, "POST", below: "resuming"))
    #expect(names("SETTINGS") == keys(.session, "PUT"))
    #expect(names("Fields of an order") == keys(.sessionOrder, "POST"))
    for (heading, prefix) in [
      ("Time limits", "limits"), ("Hosts", "hosts"), ("Quotas", "quota"), ("RULES", "rules"),
    ] {
      #expect(names(heading) == keys(.session, "PUT", below: prefix) && !names(heading).isEmpty, "\(heading)")
    }
  }

  @Test func everyWordThatIsTakenIsThere() throws {
    #expect(names("States") == TaskState.allCases.map(\.rawValue).sorted())
    #expect(names("Codes") == SessionEvent.Code.allCases.map(\.rawValue).sorted())
    #expect(names("Verbs") == SessionOrder.Verb.allCases.map(\.rawValue).sorted())
    #expect(names("Actions") == ResponseRule.Action.allCases.map(\.rawValue).sorted())
    let text = try String(contentsOf: Self.file, encoding: .utf8)
    let others =
      TaskRequest.Existing.allCases.map(\.rawValue) + TaskPriority.allCases.map(\.rawValue)
      + ControlFailure.Kind.allCases.map(\.rawValue)
    for word in others { #expect(text.contains("\n.Ql \(word)"), "\(word)") }
  }

  @Test func everyFieldThatIsGivenIsThere() {
    #expect(names("SESSIONS") == Documents.session)
    #expect(names("Fields of a task") == Documents.fields(TaskDocument(Documents.record)))
    #expect(names("Fields of a task", 1) == Documents.task)
    #expect(names("Fields of an event") == Documents.event)
    #expect(names("Fields of an event", 1) == Documents.response)
    #expect(names("Errors") == Documents.failure)
  }

  /// Codes that no session meets: they are of mirrors, or of an end from outside.
  private static let others = ["gave-way", "cancelled", "receiver-gave-up", "marker-missing", "stopped"]

  @Test func everyFailureIsWhereItBelongs() {
    let (wait, ask, end) = (names("Those that wait"), names("Those that ask"), names("Those that end"))
    let codes =
      DownloadFailure.Code.allCases.map(\.rawValue) + FolderFailure.Code.allCases.map(\.rawValue)
      + ["http-401", "http-403", "unstable-source", "range-too-short", "is-a-directory"]
      + (400..<600).map { "http-\($0)" }.filter { TaskVerdict.judge($0) == .wait && !$0.hasPrefix("http-5") }
    for code in Set(codes).subtracting(Self.others) {
      #expect((wait + ask + end).contains(code), "\(code)")
    }
    for code in wait where code != TaskRecord.delayed {
      #expect(TaskVerdict.judge(code, wrongContents: 1) == .wait, "\(code)")
    }
    for code in ask where ![TaskRecord.stale, "interrupted"].contains(code) {
      #expect(TaskVerdict.judge(code) == .ask, "\(code)")
    }
    for code in end { #expect(TaskVerdict.judge(code, wrongContents: 2) == .end, "\(code)") }
    #expect(end.contains(TaskRecord.timeOver.code) && !end.contains { $0.hasPrefix("http-") })
  }

  /// Standards and limits, as the page writes them.
  @Test func everyNumberIsThere() throws {
    let text = try String(contentsOf: Self.file, encoding: .utf8)
    func grouped(_ number: Int) -> String {
      var digits = String(number)
      var index = digits.endIndex
      while digits.distance(from: digits.startIndex, to: index) > 3 {
        index = digits.index(index, offsetBy: -3)
        digits.insert(",", at: index)
      }
      return digits
    }
    for number in [
      TaskLimits.standardIdle, TaskLimits.standardWhole, TaskLimits.standardStall, TaskRequest.mostText,
      ControlRoute.mostTasks, ControlRoute.usualEvents, SessionSettings.standardTransfers,
      SessionQuota.standardTasks, SessionQuota.standardKeptFor,
    ] {
      #expect(text.contains(" \(grouped(number))"), "\(grouped(number))")
    }
    #expect(text.contains("after \(TaskRecord.answerTime) seconds"))
  }

  @Test(.enabled(if: Documents.has("groff"), "groff is not installed")) func groffHasNoWarning() throws {
    let result = try Documents.run("groff", ["-mandoc", "-Tutf8", "-ww", "-z", Self.file.path])
    #expect(result.status == 0 && result.output == "", "\(result.output)")
  }

  @Test(.enabled(if: Documents.has("man"), "man is not installed")) func manHasNoWarning() throws {
    let result = try Documents.run(
      "sh", ["-c", "MANWIDTH=80 LC_ALL=C.UTF-8 man --warnings -l \"$0\"", Self.file.path])
    #expect(result.status == 0 && !result.output.contains("warning"), "\(result.output.prefix(500))")
    #expect(result.output.contains("downloads that outlive the program that asked for them"))
  }
}

/// What stands in the documents of the wire, and the files that describe them.
enum Documents {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  static let time = Timestamp(rfc3339: "2026-11-28T16:44:03Z") ?? .distantFuture
  static let record = TaskRecord(
    number: 1, state: .queued, request: TaskRequest(url: "http://h/a", to: "/a"), added: time)

  /// Names of all that a document may have.
  static func fields(_ document: Any) -> [String] {
    Mirror(reflecting: document).children.compactMap(\.label).sorted()
  }

  static let session = fields(
    SessionDocument(
      id: "s", settings: SessionSettings(), isClosed: false, tasks: [:], lastEvent: 0, acknowledged: 0))
  static let event = fields(SessionEvent(.finished, time: time))
  static let response = fields(TaskResponse(ResponseHead(status: 200, url: "http://h/a")))
  static let failure = fields(ControlFailure(.usage, code: "", ""))
  /// Not all that a record has goes over the wire.
  static let task: [String] = {
    var task = record
    (task.path, task.bytes, task.digest, task.code, task.message) = ("/a", 1, "sha256:0", "c", "m")
    (task.nextAttempt, task.ended) = (time, time)
    let encoded = (try? ControlJSON.encode(task)) ?? []
    let object = try? JSONSerialization.jsonObject(with: Data(encoded)) as? [String: Any]
    return (object ?? [:]).keys.sorted()
  }()

  /// Both streams of a program that is looked for in PATH.
  static func run(_ program: String, _ arguments: [String]) throws -> (status: Int32, output: String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [program] + arguments
    let pipe = Pipe()
    process.standardInput = FileHandle.nullDevice
    (process.standardOutput, process.standardError) = (pipe, pipe)
    try process.run()
    process.killWhenLate()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: output, as: UTF8.self))
  }

  static func has(_ program: String) -> Bool {
    (try? run("sh", ["-c", "command -v \"$0\"", program]))?.status == 0
  }
}
