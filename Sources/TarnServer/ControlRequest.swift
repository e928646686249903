internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import TarnControl
internal import TarnCore

/// A request, parsed by the table of routes.
struct ControlRequest: Sendable {
  let route: ControlRoute
  let method: HTTPRequest.Method
  /// The id of the last event that the reader of a stream got on its previous connection.
  let lastEventID: String?
  /// The `Accept` field, which selects the form of the answer.
  let accept: String?
  private let values: [String: [String]]

  /// - Throws: `ControlFailure` for 404 and 400. The caller answers a wrong method, because it knows the header for that.
  init(_ request: Request) throws(ControlFailure) {
    guard let route = ControlRoute(rawValue: request.uri.path) else {
      let known = ControlRoute.allCases.map(\.rawValue).joined(separator: ", ")
      throw ControlFailure(
        .notFound, code: "no-such-route", "nothing is at \(Printable.escape(request.uri.path))",
        hint: "there are: \(known)")
    }
    self.route = route
    method = request.method
    accept = request.headers[.accept]
    lastEventID = request.headers.first { $0.name.canonicalName == "last-event-id" }?.value
    var values: [String: [String]] = [:]
    for (key, value) in request.uri.queryParameters {
      let key = String(key)
      guard route.parameters.contains(key) else {
        let taken = route.parameters.isEmpty ? "none" : route.parameters.joined(separator: ", ")
        throw ControlFailure(
          .usage, code: "parameter-unknown", "no parameter \(Printable.escape(key)) is known here",
          hint: "taken are: \(taken)")
      }
      values[key, default: []].append(String(value))
      guard ControlRoute.lists.contains(key) || values[key]?.count == 1 else {
        throw ControlFailure(.usage, code: "parameter-twice", "the parameter \(key) is there twice")
      }
    }
    self.values = values
  }

  var mirrors: [String] { values["mirror"] ?? [] }
  var cursor: String? { values["after"]?.first }
  var isUpdate: Bool { values["update"]?.first == "1" }

  /// Returns the session that the request is about.
  func session() throws(ControlFailure) -> String {
    guard let id = values["session"]?.first else {
      throw ControlFailure(.usage, code: "session-missing", "\(route.rawValue) wants the parameter session")
    }
    return id
  }

  /// Returns the sessions to read, and the place in each.
  func places() throws(ControlFailure) -> [SessionPlace] {
    var places: [SessionPlace] = []
    for text in values["from"] ?? [] {
      guard let place = SessionPlace(text), !places.contains(where: { $0.session == place.session }) else {
        throw ControlFailure(
          .usage, code: "parameter-malformed",
          "the parameter from is ID:NUMBER, one for each session, not \(Printable.escape(text))")
      }
      places.append(place)
    }
    guard !places.isEmpty else {
      throw ControlFailure(.usage, code: "session-missing", "\(route.rawValue) wants the parameter from")
    }
    return places
  }

  func states() throws(ControlFailure) -> [TaskState] {
    var states: [TaskState] = []
    for text in values["state"] ?? [] {
      guard let state = TaskState(rawValue: text) else {
        let all = TaskState.allCases.map(\.rawValue).joined(separator: ", ")
        throw ControlFailure(
          .usage, code: "parameter-malformed", "no state is called \(Printable.escape(text))",
          hint: "states are: \(all)")
      }
      states.append(state)
    }
    return states
  }

  /// Parses the number of a task or an event.
  ///
  /// - Parameter text: the number; `nil` for the beginning.
  static func place(_ text: String?) throws(ControlFailure) -> Int64 {
    guard let text else { return 0 }
    guard let number = Int64(text), number >= 0 else {
      throw ControlFailure(
        .usage, code: "parameter-malformed", "the parameter after is a number, not \(Printable.escape(text))")
    }
    return number
  }

  func number(_ name: String, usual: Int, range: ClosedRange<Int>) throws(ControlFailure) -> Int {
    guard let text = values[name]?.first else { return usual }
    guard let number = Int(text), range.contains(number) else {
      throw ControlFailure(
        .usage, code: "parameter-malformed",
        "the parameter \(name) is a number from \(range.lowerBound) to \(range.upperBound), not \(Printable.escape(text))"
      )
    }
    return number
  }

  /// Reads the whole body. A body that is too long is read on for up to 1 MiB, so that a client that writes before it reads gets
  /// its answer.
  ///
  /// - Throws: `ControlFailure`, or the error that ended the connection.
  static func body(_ request: Request, most: Int) async throws -> [UInt8] {
    var bytes: [UInt8] = []
    var count = 0
    for try await part in request.body {
      count += part.readableBytes
      if count <= most { bytes += part.readableBytesView }
      if count > most + (1 << 20) { break }
    }
    guard count <= most else {
      throw ControlFailure(.tooLarge, code: "body-too-large", "the body is longer than \(most) bytes")
    }
    return bytes
  }
}
