import TarnCore
import Testing

/// Text of settings in messages.
@Suite struct TOMLTextTests {
  /// A person pastes the header from a hint.
  @Test(arguments: [
    ("iso-9_x", "[mirror.iso-9_x]"), ("it's", "[mirror.\"it's\"]"), ("a\"b", #"[mirror."a\"b"]"#),
    (#"a\b"#, #"[mirror."a\\b"]"#), ("café", "[mirror.\"café\"]"), ("a\u{1B}", #"[mirror."a\U0000001B"]"#),
    ("", "[mirror.\"\"]"),
  ])
  func aHeaderQuotesWhatIsNoBareKey(_ name: String, _ header: String) {
    #expect(TOMLText.mirror(name) == header)
  }
}
