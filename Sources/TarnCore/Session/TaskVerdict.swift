/// What becomes of a task that failed.
package enum TaskVerdict: Sendable, Equatable {
  /// It may be over in a while: tried again.
  case wait
  /// Trying again would not help.
  case end
  /// The program has to say how to go on: the server wants other credentials, or a signed URL has expired.
  case ask

  /// The table of failures: by the codes of downloads, of statuses (`http-404`) and of the folder.
  ///
  /// - Parameters:
  ///   - wrongContents: how often in a row it was not the file that was asked for.
  ///   - isRepeatable: the request may be sent again without harm; what is not is repeated only where somebody says so.
  package static func judge(
    _ code: String, wrongContents: Int = 0, isRepeatable: Bool = true
  ) -> TaskVerdict {
    let verdict = judge(code, wrongContents)
    return verdict == .wait && !isRepeatable ? .ask : verdict
  }

  private static func judge(_ code: String, _ wrongContents: Int) -> TaskVerdict {
    if code == TaskRecord.held || code == "credential-not-readable" { return .ask }
    if let status = HTTPStatus(name: code) {
      // Also those of proxies: 520 to 530.
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
    // Another file system: a disk that is not mounted now.
    case .noSpace, .quota, .tooManyFiles, .outOfMemory, .otherFileSystem: return .wait
    // Once may be a fault of the way; the second time it is another file.
    case .digestMismatch, .sizeMismatch, .pieceMismatch, .contentMismatch:
      return wrongContents < 2 ? .wait : .end
    default: return .end
    }
  }
}
