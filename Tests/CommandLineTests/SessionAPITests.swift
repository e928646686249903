import Foundation
import TarnControl
import TarnCore
import Testing

/// The OpenAPI file has the routes of sessions as the table of routes has them.
@Suite(
  .enabled(
    if: Documents.hasPython,
    "python3 with yaml and jsonschema (python3-yaml, python3-jsonschema) is not installed"))
struct SessionAPITests {
  private struct Table: Decodable {
    struct Route: Decodable {
      var path: String
      var method: String
      var parameters: [String]
      var keys: [String]
    }
    var routes: [Route]
    var enums: [String: [String]]
    var properties: [String: [String]]
  }

  private let table: Table

  init() throws {
    let tool = Documents.root.appendingPathComponent("Tests/Tools/openapi.py").path
    let file = Documents.root.appendingPathComponent("packaging/openapi/tarn-session.yaml").path
    let result = try Documents.run("python3", ["-B", tool, "table", file])
    try #require(result.status == 0, "\(result.output)")
    table = try JSONDecoder().decode(Table.self, from: Data(result.output.utf8))
  }

  @Test func theRoutesAreThoseOfTheServer() {
    let routes = ControlRoute.allCases.filter(\.isOfSessions)
    #expect(Set(table.routes.map(\.path)) == Set(routes.map(\.rawValue)))
    for route in routes {
      let described = table.routes.filter { $0.path == route.rawValue }
      #expect(described.map(\.method).sorted() == route.methods.sorted(), "\(route)")
      #expect(Set(described.flatMap(\.parameters)).sorted() == route.parameters.sorted(), "\(route)")
      for one in described {
        #expect(one.keys == route.keys(of: one.method).sorted(), "\(route) \(one.method)")
      }
    }
  }

  @Test func theWordsAreThoseOfTheServer() {
    func same<Word: CaseIterable & RawRepresentable<String>>(_ name: String, _ type: Word.Type) {
      #expect(table.enums[name]?.sorted() == type.allCases.map(\.rawValue).sorted(), "\(name)")
    }
    same("TaskState", TaskState.self)
    same("EventCode", SessionEvent.Code.self)
    same("Priority", TaskPriority.self)
    same("Existing", TaskRequest.Existing.self)
    same("SessionOrder.verb", SessionOrder.Verb.self)
    same("ResponseRule.then", ResponseRule.Action.self)
    same("Failure.kind", ControlFailure.Kind.self)
  }

  @Test func theFieldsOfAnswersAreThoseOfTheServer() {
    let answers = [
      "Session": Documents.session, "Task": Documents.task, "Event": Documents.event,
      "Response": Documents.response, "Failure": Documents.failure,
      "Wake": Documents.fields(WakeDocument(failures: 0, last: Documents.time, message: "")),
      "Times": Documents.fields(TaskTimes(response: nil, total: 0)),
      "TaskPage": Documents.fields(TaskPage(asOf: 0, tasks: [], hasMore: false)),
      "EventPage": Documents.fields(SessionEventPage(events: [], hasMore: false)),
      "AddedTasks": Documents.fields(AddedTasks([])), "SessionList": Documents.fields(SessionList([])),
    ]
    for (name, fields) in answers { #expect(table.properties[name] == fields, "\(name)") }
  }
}

extension Documents {
  static let hasPython = (try? run("python3", ["-c", "import yaml, jsonschema"]))?.status == 0
}
