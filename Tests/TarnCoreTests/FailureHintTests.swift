import TarnCore
import Testing

/// What went wrong in a folder or with a feed, and what a person can do.
@Suite struct FailureHintTests {
  @Test(arguments: [FolderFailure.Code.noSpace, .quota, .readOnly])
  func aFolderThatTakesNothingMoreHasAHint(_ code: FolderFailure.Code) {
    let failure = PassFailure(FolderFailure(code, "cannot write"))
    #expect(failure.kind == .inputOutput && failure.hint?.hasSuffix("and try again") == true)
  }

  @Test(arguments: ["feed-truncated", "feed-malformed", "feed-empty", "line-too-long", "feed-not-readable"])
  func aFeedThatCannotBeReadHasAHint(_ code: String) {
    let hint = PassFailure(FeedFailure(code: code, message: "x"), feed: "f").hint ?? ""
    #expect(hint.contains("try again later") || hint.hasPrefix("check its path"), "\(hint)")
    #expect((code == "feed-empty") == hint.contains("tarn forget"), "\(hint)")
    let piped = PassFailure(FeedFailure(code: code, message: "x"), feed: "-").hint ?? ""
    #expect((code == "feed-empty") == piped.contains("tarn sync - FOLDER < LIST"), "\(piped)")
    let own = PassFailure(FeedFailure(code: code, message: "x", hint: "do this"), feed: "f")
    #expect(own.hint == "do this")
  }

  /// The message goes to the log, into events and to everyone who may ask the agent.
  @Test(arguments: [
    ("https://h/f?token=ABC: it is gone", "https://h/f?token=***: it is gone"),
    (
      "'https://h/f?n=1&X-Amz-Signature=A%2F==&page=2#a' and http://i/?api_key=B.",
      "'https://h/f?n=1&X-Amz-Signature=***&page=2#a' and http://i/?api_key=***."
    ),
    ("https://h/f?Sig=A;auth=B", "https://h/f?Sig=***;auth=***"),
    ("https://h/f?token=", "https://h/f?token=***"),
    ("https://h/f?id=7&v=token", "https://h/f?id=7&v=token"), ("/srv/a?token=A", "/srv/a?token=A"),
    ("why?", "why?"),
  ])
  func aMessageHasNoTokenOfAnAddress(_ text: String, _ shown: String) {
    #expect(PassFailure(.feedUnreachable, code: "http-404", text).message == shown)
  }
}
