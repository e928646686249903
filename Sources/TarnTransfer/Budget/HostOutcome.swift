import TarnCore

extension ResponseHead {
  /// The host works, whatever it says of this request.
  var isLife: Bool { status < 500 && status != 429 }
}

extension DownloadOutcome {
  /// What failed, for a person; nil for an answer that is life.
  var cause: String? {
    switch self {
    case .complete(let head): head.isLife ? nil : HTTPStatus(head.status).message
    case .failed(let failure): failure.message
    }
  }
}

extension CircuitBreaker.Outcome {
  /// What the end of an exchange says about the host that was asked last.
  init(_ outcome: DownloadOutcome) {
    switch outcome {
    case .complete(let head):
      switch (head.status, head.retryAfter) {
      case (429, let seconds?), (503, let seconds?): self = .asked(retryAfter: seconds)
      case (500..., _): self = .transportFailed
      default: self = .answered
      }
    case .failed(let failure):
      switch failure.code {
      case .flooded: self = .harmed
      case .resolve, .connect, .timeout, .tooSlow, .reset, .truncated, .protocolError: self = .transportFailed
      // A certificate that this client does not trust may be right for another.
      case .tls: self = failure.isTransient ? .transportFailed : .cancelled
      case .lengthUnknown, .tooLarge, .headersTooLarge, .tooManyRedirects, .redirectRefused, .contentEncoding,
        .refusedByReceiver:
        self = .answered
      case .addressRefused, .urlRefused, .fileNotReadable, .cancelled, .outOfMemory, .tooManyOpenFiles,
        .hostResting, .gaveWay:
        self = .cancelled
      }
    }
  }
}
