import TarnCore

extension ResponseHead {
  /// True when the host works, whatever it says about this request.
  var isLife: Bool { status < 500 && status != 429 }
}

extension DownloadOutcome {
  /// The failure for people; `nil` for an answer of a working host.
  var cause: String? {
    switch self {
    case .complete(let head): head.isLife ? nil : HTTPStatus(head.status).message
    case .failed(let failure): failure.message
    }
  }
}

extension CircuitBreaker.Outcome {
  /// Makes the outcome for the host that was asked last from the end of an exchange.
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
      case .resolve, .connect, .timeout, .tooSlow: self = .transportFailed
      case .reset, .truncated, .protocolError: self = .connectionLost
      // Another client may trust a certificate that this one does not.
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
