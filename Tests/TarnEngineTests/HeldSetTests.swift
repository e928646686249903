import TarnCore
import TestSupport
import Testing

@testable import TarnEngine

/// What lets a set of deletions wait on, or lets a list of another format delete.
@Suite struct HeldSetTests: NumberedFiles {
  /// By then the new files count, and the rest would be fewer than half.
  @Test(arguments: ["back", "lost", "excluded", "more"]) func whatIsLeftOfAHeldSetStaysHeld(by what: String)
    throws
  {
    let world = try filled(8)
    world.policy.deleteLimit = .off
    unlist(0..<8, world)
    for number in 100..<108 { world.want(name(number), "text \(number)") }
    #expect(try world.run().held?.count == 8)
    switch what {
    case "back": world.want(name(0), "text 0")
    case "lost": world.folder.delete(name(0).path)
    case "excluded": world.policy.filter.exclude = PathPatterns([name(0)])
    default: unlist(107..<108, world)
    }
    for _ in 0..<2 {
      let held = try #require(try world.run().held, "\(what)")
      #expect(held.count == (what == "more" ? 9 : 7) && world.text(name(5)) != nil)
    }
    #expect(try world.approval.run(plan: nil).deleted >= 7)
    #expect(try world.run().held == nil && world.text(name(5)) == nil)
  }

  /// Nothing is to be deleted there, but its options are not the mirror's.
  @Test func aPassWithOptionsOfItsOwnTakesNoOtherFormat() throws {
    let world = try filled(20)
    world.end.format = "SFV list"
    world.isOnce = true
    #expect(try world.run().isInSync)
    world.isOnce = false
    unlist(0..<1, world)
    #expect(try world.run().held?.reason == "the format of the list changed from test list to SFV list")
  }
}
