import TarnCore
import TarnRuntime
import TestSupport

@testable import TarnEngine

/// A random mirror, random users and random failures; knows what must never be lost (I1, I2).
final class Chaos {
  let world: World
  private let dice: SeededRandom
  private let model = Locked(Model())

  /// Descriptors that users hold open for writing.
  private var open: [MemoryFolder.OpenFile] = []

  /// What was ever said and written, by path and by text.
  struct Model {
    /// Every version that the feed had of a path.
    var versions: [String: Set<String>] = [:]
    /// Texts that users wrote and did not themselves overwrite or delete; also where the feed has the same.
    var userTexts: Set<String> = []
    var count = 0
  }

  private static let names = [
    "a", "a/b", "a/c", "b", "b-b", "b/x/y", "c", "d/1", "d/2", "d/3", "index.html", "z",
  ]

  init(seed: UInt64) {
    dice = SeededRandom(seed: seed &* 7919)
    world = World(seed: seed, hashing: QuickHashing())
    world.rushes = true
    world.policy.retries = 1
    world.policy.localChanges = [.restore, .restore, .keep, .report][roll(4)]
    for name in Self.names where roll(2) == 0 { publish(name) }
    for number in 0..<roll(30) { publish("many/\(number)") }
  }

  func roll(_ sides: Int) -> Int { Int(dice.next(below: UInt64(sides))) }

  /// What happens between two passes.
  func changeWorld() {
    changeFeed()
    changeFolder()
    writeLate()
    letTimePass()
    breakServer()
  }

  // MARK: The feed

  private func changeFeed() {
    for _ in 0..<roll(4) {
      let name = Self.names[roll(Self.names.count)]
      if roll(3) == 0 { world.unlist(name) } else { publish(name) }
    }
    world.policy.deletes = roll(2) == 0
    world.end.isComplete = roll(5) > 0
    if roll(6) == 0 { world.items.reverse() } else { sort() }
  }

  /// Puts a new version into the feed and on the server; sometimes one with the bytes of another path.
  private func publish(_ name: String) {
    let number = next()
    let text =
      roll(5) == 0 ? "shared" : "version \(number) of \(name)" + String(repeating: ".", count: roll(3000))
    model.withLock { _ = $0.versions[name, default: []].insert(text) }
    var entry = world.serve(name, text, etag: "\"\(number)\"")
    if roll(5) == 0 {
      entry.digests = []
      entry.listing = "number \(number)".bytes
    }
    world.add(entry)
    world.server.script(World.host + name, [])
  }

  private func sort() {
    world.items.sort { left, right in
      guard case .entry(let first) = left, case .entry(let second) = right else { return false }
      return first.path < second.path
    }
  }

  private func next() -> Int {
    model.withLock { model in
      model.count += 1
      return model.count
    }
  }

  // MARK: Users

  func changeFolder() {
    for _ in 0..<roll(4) {
      let name = Self.names[roll(Self.names.count)]
      switch roll(4) {
      case 0: remove(name)
      case 1: touch(name)
      default: write(name)
      }
    }
  }

  private func remove(_ name: String) {
    guard world.text(name) != nil else { return }
    let gone = world.folder.delete(name.path)
    model.withLock { $0.userTexts.subtract(gone.map { String(decoding: $0, as: UTF8.self) }) }
  }

  private func touch(_ name: String) { world.folder.touch(name.path) }

  private func write(_ name: String) {
    if world.text(name) == nil, roll(4) == 0, let text = wanted(name) {
      return Self.write(text, to: name.path, world.folder, model)
    }
    Self.write(name.path, world.folder, model)
  }

  /// Opens a file, and writes into one that was opened before, which may be in the trash by now.
  func writeLate() {
    if roll(2) == 0, let file = world.folder.open(Self.names[roll(Self.names.count)].path) {
      open.append(file)
    }
    guard roll(3) == 0, !open.isEmpty else { return }
    let text = "late \(next())"
    guard let old = world.folder.write(open[roll(open.count)], text.bytes) else { return }
    model.withLock { model in
      model.userTexts.remove(String(decoding: old, as: UTF8.self))
      model.userTexts.insert(text)
    }
  }

  /// Long enough, now and then, for the trash to expire.
  private func letTimePass() {
    if roll(4) == 0 { world.clock.advance(.seconds(8 * 24 * 3600)) }
  }

  /// What the server has of it now.
  private func wanted(_ name: String) -> String? { world.server.text(World.host + name) }

  /// A user's bytes, which nobody else has.
  private static func write(_ path: RelativePath, _ folder: MemoryFolder, _ model: Locked<Model>) {
    let number = model.withLock { model in
      model.count += 1
      return model.count
    }
    write("mine \(number)", to: path, folder, model)
  }

  /// Where it has its place. Others write at the same time.
  private static func write(
    _ text: String, to path: RelativePath, _ folder: MemoryFolder, _ model: Locked<Model>
  ) {
    let isNew = model.withLock { $0.userTexts.insert(text).inserted }
    let (isDone, old) = folder.overwrite(path, text.bytes)
    model.withLock { model in
      if !isDone, isNew { model.userTexts.remove(text) }
      if let old, old != text.bytes { model.userTexts.remove(String(decoding: old, as: UTF8.self)) }
    }
  }

  // MARK: Failures

  private static let calls: [MemoryFolder.Call] = [
    .look, .digest, .makePartial, .openPartial, .copyPartial, .partials, .removePartial, .begin, .append,
    .seal,
    .makeDurable, .install, .remove, .trashed, .trashIdentity, .unstage, .removeTrash, .flush, .space,
  ]

  private func breakServer() {
    for _ in 0..<roll(4) {
      let name = Self.names[roll(Self.names.count)]
      guard let text = wanted(name) else { continue }
      // The size tells these; other bytes of the same size only a digest.
      var broken: [FakeAnswer] = [
        FakeAnswer(status: 404), FakeAnswer(status: 503), Server.broken(text, after: roll(text.utf8.count)),
        FakeAnswer(body: (text + "x").bytes), FakeAnswer(status: 206, body: text.bytes), FakeAnswer(body: []),
      ]
      if hasDigest(name) { broken.append(FakeAnswer(body: String(text.reversed()).bytes)) }
      world.server.script(World.host + name, (0...roll(3)).map { _ in broken[roll(broken.count)] })
    }
  }

  private func hasDigest(_ name: String) -> Bool {
    world.items.contains { item in
      if case .entry(let entry) = item { return entry.path == name.path && entry.digest != nil }
      return false
    }
  }

  func breakParts() {
    let codes = FolderFailure.Code.allCases
    for _ in 0..<roll(3) {
      world.folder.fail(
        Self.calls[roll(Self.calls.count)], number: 1 + roll(4),
        with: FolderFailure(codes[roll(codes.count)], "as told"))
    }
    if roll(3) == 0 {
      let first = 1 + roll(25)
      for number in first...(first + roll(12)) { world.ledger.failApply(number) }
    }
    if roll(4) == 0 {
      let (number, world) = (1 + roll(12), StopBox(world))
      self.world.log.onEvent { count, _ in if count == number { world.set() } }
    }
  }

  /// Users who write in the very moment.
  func race() {
    let (folder, model) = (world.folder, model)
    let left = Locked(roll(3))
    let meddle: @Sendable (RelativePath) -> Void = { path in
      let isOn = left.withLock { left in
        left -= 1
        return left >= 0
      }
      if isOn { Self.write(path, folder, model) }
    }
    folder.beforeInstall(meddle)
    folder.beforeRemove(meddle)
  }

  func calm() {
    world.log.onEvent(nil)
    world.folder.beforeInstall(nil)
    world.folder.beforeRemove(nil)
    for name in Self.names { world.server.script(World.host + name, []) }
  }

  // MARK: Several at a time

  /// Somebody watches: what changes is repaired, by the manifest that was last accepted.
  func watch() {
    world.settings = "settings"
    world.catalog = MemoryCatalog()
    world.steering = PassSteering()
  }

  /// A pass of what the feed says now, and repairs, approvals and orders beside it, in any order. Now and then some of them are
  /// cancelled, or all of them killed.
  func workTogether() throws {
    world.reopen()
    if roll(3) == 0 { world.lifeline.kill(after: roll(150)) }
    defer { world.lifeline.revive() }
    var waits: [() throws -> Void] = []
    let pass = roll(4)
    for number in 0..<4 {
      if number == pass {
        let running = try world.beginBeside()
        if roll(6) == 0 { running.stop.set() }
        waits.append { _ = try running.wait() }
      } else if roll(4) == 0 {
        let running = try world.beginApproval()
        waits.append { _ = try running.wait() }
      } else {
        let running = try world.beginRepair(regions())
        if roll(6) == 0 { running.stop.set() }
        waits.append { _ = try running.wait() }
      }
      changeFolder()
      giveOrder()
    }
    for wait in waits {
      do {
        try wait()
      } catch let failure as PassFailure {
        if ![.inputOutput, .permission, .folderUnusable, .stopped, .usage].contains(failure.kind) {
          throw failure
        }
      }
    }
  }

  private func regions() -> [Region] {
    if roll(4) == 0 { return [.everything] }
    return Set((0...roll(4)).map { _ in Self.names[roll(Self.names.count)] }).sorted().map {
      Region($0.path, .itself)
    }
  }

  private func giveOrder() {
    let path = Self.names[roll(Self.names.count)].path
    switch roll(6) {
    case 0: _ = world.steering?.give(.cancel, path)
    case 1: _ = world.steering?.give(.retry, path)
    case 2: _ = world.steering?.give(.prioritize, path)
    case 3:
      _ = world.steering?.give(.pause, path)
      _ = world.steering?.resume(path)
    default: break
    }
  }

  // MARK: What holds always

  /// Complaints: files that are no version of their path, and users' bytes that are nowhere.
  func complaints() -> [String] {
    let (model, files, trash) = (model.withLock { $0 }, world.files, Set(world.trash))
    var complaints: [String] = []
    for (name, text) in files
    where model.versions[name]?.contains(text) != true && !model.userTexts.contains(text) {
      complaints.append("I1: \(name) holds '\(text.prefix(40))' (\(text.utf8.count) bytes)")
    }
    let partial = Set(
      world.partialNames.compactMap { world.folder.partialContents($0) }.map {
        String(decoding: $0, as: UTF8.self)
      })
    let kept = Set(files.values).union(trash).union(partial)
    for text in model.userTexts.subtracting(kept).sorted() { complaints.append("I2: '\(text)' is lost") }
    return complaints
  }
}

/// Sets the flag of the pass that runs.
final class StopBox: @unchecked Sendable {
  // Safe because the flag is read only while that pass runs, on its thread.
  private let world: World

  init(_ world: World) { self.world = world }

  func set() { world.stop.set() }
}
