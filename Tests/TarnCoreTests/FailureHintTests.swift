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
    #expect((code == "feed-empty") == hint.contains("tarn forget FOLDER"), "\(hint)")
    let own = PassFailure(FeedFailure(code: code, message: "x", hint: "do this"), feed: "f")
    #expect(own.hint == "do this")
  }
}
