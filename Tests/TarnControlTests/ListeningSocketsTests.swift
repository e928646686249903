import TestSupport
import Testing

@testable import TarnControl

/// Whether somebody listens at a socket that may not be connected to.
@Suite struct ListeningSocketsTests {
  private let scratch = ScratchDirectory()

  @Test func aSocketThatIsLeftIsToldFromOneThatAnswers() throws {
    RawListener.leave(scratch.file("dead"))
    #expect(!ListeningSockets.areAny(beside: scratch.file("dead")))
    // Under another name in the same directory, as an agent makes it.
    let listener = try RawListener(scratch.file("made"))
    #expect(ListeningSockets.areAny(beside: scratch.file("tarn.sock")))
    withExtendedLifetime(listener) {}
    #expect(ListeningSockets.areAny(beside: scratch.file("x"), table: "/nonexistent"))
  }
}
