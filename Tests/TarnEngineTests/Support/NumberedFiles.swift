import TarnCore

@testable import TarnEngine

/// For suites that list many files and take some out of the list.
protocol NumberedFiles {}

extension NumberedFiles {
  /// A mirror of so many files, in sync.
  func filled(_ count: Int, deletes: Bool = true) throws -> World {
    let world = World()
    for number in 0..<count { world.want(name(number), "text \(number)") }
    try world.run()
    world.policy.deletes = deletes
    return world
  }

  func name(_ number: Int) -> String { "f\(number + 1000)" }

  func unlist(_ numbers: Range<Int>, _ world: World) {
    for number in numbers { world.unlist(name(number)) }
  }
}
