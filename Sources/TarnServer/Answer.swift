internal import HTTPTypes
internal import TarnControl
internal import TarnCore

/// A whole answer to a request.
struct Answer: Sendable {
  var status: HTTPResponse.Status
  var body: [UInt8]
  var contentType = "application/json"
  /// The allowed methods, for a 405.
  var allowed: [String] = []
  var closes = false

  init(body: [UInt8]) {
    status = .ok
    self.body = body
  }

  init(_ failure: ControlFailure) {
    status = HTTPResponse.Status(code: failure.kind.httpStatus)
    body = (try? ControlJSON.encode(failure)) ?? []
    closes = status == .contentTooLarge
  }

  /// - Parameter version: the version of Tarn.
  func head(version: String) -> HTTPResponse {
    var fields: HTTPFields = [
      .server: "tarn/\(version)", .contentType: contentType, .contentLength: String(body.count),
      .cacheControl: "no-store",
    ]
    if !allowed.isEmpty { fields[.allow] = allowed.joined(separator: ", ") }
    if status == .serviceUnavailable { fields[.retryAfter] = "1" }
    if status == .unauthorized { fields[.wwwAuthenticate] = "Bearer realm=\"tarn\"" }
    if closes { fields[.connection] = "close" }
    return HTTPResponse(status: status, headerFields: fields)
  }
}

extension ControlFailure.Kind {
  var httpStatus: Int {
    switch self {
    case .usage: 400
    case .permission: 403
    case .notFound: 404
    case .conflict: 409
    case .tooLarge: 413
    case .unavailable: 503
    case .defect: 500
    case .storage: 507
    }
  }
}
