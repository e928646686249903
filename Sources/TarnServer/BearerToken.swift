internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import TarnCore

/// The bearer token of a request (RFC 6750, 2.1).
enum BearerToken {
  /// - Returns: the token; `nil` when the header has none.
  static func given(_ header: String?) -> [UInt8]? {
    guard let header, let blank = header.firstIndex(of: " "), header[..<blank].lowercased() == "bearer" else {
      return nil
    }
    return Array(header[header.index(after: blank)...].utf8.drop { $0 == 0x20 })
  }

  /// Compares two tokens in a time that does not depend on which byte differs. An empty token matches nothing.
  static func isSame(_ given: [UInt8], _ wanted: [UInt8]) -> Bool {
    guard !wanted.isEmpty, given.count == wanted.count else { return false }
    return zip(given, wanted).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
  }
}

extension Responder {
  func hasToken(
    _ request: Request, _ token: @escaping @Sendable () throws(ControlFailure) -> [UInt8],
    _ connection: Connection
  ) async throws(ControlFailure) -> Bool {
    guard let given = BearerToken.given(request.headers[.authorization]) else { return false }
    let wanted = try await calls.run(on: connection.channel.eventLoop) { () throws(ControlFailure) in
      try token()
    }
    return BearerToken.isSame(given, wanted)
  }

  /// The answer to a wrong token. It reveals nothing about the agent.
  static var wrongToken: Answer {
    var answer = Answer(
      ControlFailure(
        .permission, code: "token-wrong", "the request has no token, or another one",
        hint: "send it as 'Authorization: Bearer TOKEN'"))
    answer.status = .unauthorized
    answer.closes = true
    return answer
  }
}
