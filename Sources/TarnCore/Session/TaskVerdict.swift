/// What happens to a task that failed.
package enum TaskVerdict: Sendable, Equatable {
  /// The failure may be temporary: try again.
  case wait
  /// Trying again would not help: fail.
  case end
  /// The program must say how to go on: the server wants other credentials, or a signed URL has expired.
  case ask
  /// The session's quota has no room: go on when there is some.
  case room

  /// Judges a failure by its code: that of a download, of a status (`http-404`) or of the folder.
  ///
  /// - Parameters:
  ///   - wrongContents: how often in a row the contents were not those of the requested file.
  ///   - isRepeatable: true when the request may be sent again without harm. Others are repeated only when somebody orders it.
  package static func judge(
    _ code: String, wrongContents: Int = 0, isRepeatable: Bool = true
  ) -> TaskVerdict {
    let verdict = judge(code, wrongContents)
    return verdict == .wait && !isRepeatable ? .ask : verdict
  }

  private static func judge(_ code: String, _ wrongContents: Int) -> TaskVerdict {
    // Codes of the engine: the server's version changes, or hardly any of it comes.
    if ["unstable-source", "range-too-short"].contains(code) { return .wait }
    if code == TaskRecord.held || code == "credential-not-readable" { return .ask }
    if let status = HTTPStatus(name: code) {
      // These include the statuses of proxies, 520 to 530.
      return status.isTransient || status.code >= 500
        ? .wait : [401, 403].contains(status.code) ? .ask : .end
    }
    if let failure = DownloadFailure.Code(rawValue: code) {
      switch failure {
      case .resolve, .connect, .timeout, .tooSlow, .reset, .truncated, .protocolError, .hostResting, .gaveWay,
        .outOfMemory, .tooManyOpenFiles, .cancelled, .flooded:
        return .wait
      case .tls, .lengthUnknown, .tooLarge, .headersTooLarge, .tooManyRedirects, .redirectRefused,
        .addressRefused,
        .urlRefused, .contentEncoding, .fileNotReadable, .refusedByReceiver:
        return .end
      }
    }
    switch FolderFailure.Code(rawValue: code) {
    // Another file system means that a disk is not mounted now.
    case .noSpace, .quota, .tooManyFiles, .outOfMemory, .otherFileSystem: return .wait
    // The first time may be a fault on the way; the second time it is another file.
    case .digestMismatch, .sizeMismatch, .pieceMismatch, .contentMismatch:
      return wrongContents < 2 ? .wait : .end
    default: return .end
    }
  }
}
