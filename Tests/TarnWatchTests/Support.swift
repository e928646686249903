import Foundation
import Glibc
import TarnCore
import TarnRuntime
import TarnWatch
import TestSupport
import Testing

/// All tests of this target run one after the other: limits of inotify are the machine's.
@Suite(.serialized) enum WatchSuite {}

enum Subject: CaseIterable, CustomTestStringConvertible {
  case real, fake
  var testDescription: String { self == .real ? "tarn-watch" : "the fake" }
}

enum TarnWatchProgram {
  /// Built beside the bundle of these tests.
  static let path: String = {
    let bundle = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return URL(fileURLWithPath: bundle).deletingLastPathComponent().appendingPathComponent("tarn-watch").path
  }()
}

struct Late: Error, CustomStringConvertible {
  var description: String
}

/// A folder that is watched, and what was told of it.
final class Bench {
  /// The machine may be busy.
  static let deadline = Duration.seconds(120)

  let base: String
  var folder: String { base + "/folder" }
  let id = WatchID(7)
  private let news = LockedCondition<[WatchNews]>([])
  private(set) var watcher: any Watching
  private let fake: FakeWatch?
  /// News before this one have been awaited.
  private var mark = 0

  /// - Parameters:
  ///   - asNobody: the program runs as a user without rights.
  ///   - prepare: makes what is in the folder before it is watched; given the folder's path.
  init(
    _ subject: Subject, clock: any TarnRuntime.Clock = SystemClock(), isReady: Bool = true,
    longestSilence: Duration = .seconds(60), asNobody: Bool = false,
    prepare: (String) throws -> Void = { _ in }
  ) throws {
    var template = Array("/tmp/tarn-watch-test-XXXXXX".utf8CString)
    base = try #require(mkdtemp(&template).map { String(cString: $0) })
    try #require(mkdir(base + "/folder", 0o755) == 0)
    try prepare(base + "/folder")
    let news = news
    let program = asNobody ? try Self.programOfNobody(base) : TarnWatchProgram.path
    switch subject {
    case .fake:
      let fake = FakeWatch { one in news.change { $0.append(one) } }
      self.fake = fake
      watcher = fake
    case .real:
      fake = nil
      watcher = try WatcherProcess(
        places: [program], clock: clock, random: SeededRandom(seed: 1),
        longestSilence: longestSilence
      ) {
        one in news.change { $0.append(one) }
      }
    }
    watcher.watch(id, path: Array(folder.utf8))
    if isReady { try awaitReady() }
  }

  deinit {
    watcher.close()
    // Foundation does not remove names that are not UTF-8.
    _ = try? run("rm", "-rf", base)
  }

  /// A copy, for the build directory may not be open to all, behind a script that becomes nobody.
  private static func programOfNobody(_ base: String) throws -> String {
    try #require(chmod(base, 0o755) == 0)
    let (copy, script) = (base + "/tarn-watch", base + "/as-nobody")
    try FileManager.default.copyItem(atPath: TarnWatchProgram.path, toPath: copy)
    try "#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups \(copy)\n"
      .write(toFile: script, atomically: true, encoding: .utf8)
    try #require(chmod(copy, 0o755) == 0 && chmod(script, 0o755) == 0)
    return script
  }

  var process: WatcherProcess? { watcher as? WatcherProcess }

  /// Waits for news that fulfil the predicate, among those after the last that were awaited.
  @discardableResult
  func await(
    _ what: String, of id: WatchID? = nil, where predicate: @escaping (WatchNews.Event) -> Bool
  ) throws -> WatchNews.Event {
    let (mark, id) = (mark, id ?? self.id)
    func find(_ all: [WatchNews]) -> Int? {
      all.indices.dropFirst(mark).first { all[$0].id == id && predicate(all[$0].event) }
    }
    fake?.look()
    guard let index = news.wait(atMost: fake == nil ? Self.deadline : .nanoseconds(1), for: { find($0) })
    else {
      throw Late(description: "\(what) was not told, but \(news.withLock { Array($0.dropFirst(mark)) })")
    }
    self.mark = index + 1
    return news.withLock { $0[index].event }
  }

  @discardableResult
  func awaitReady() throws -> Int {
    guard
      case .ready(let count) = try self.await("ready", where: { if case .ready = $0 { true } else { false } })
    else { return 0 }
    return count
  }

  func awaitBlind(_ code: WatchBlindness.Code, of id: WatchID? = nil) throws -> String {
    let event = try self.await("blind \(code.rawValue)", of: id) {
      if case .blind(let why) = $0 { why.code == code } else { false }
    }
    guard case .blind(let why) = event else { return "" }
    return why.text
  }

  /// Waits until a look at the path was asked for.
  func awaitLook(_ path: String) throws {
    try awaitLook(RelativePath(trusted: Array(path.utf8)))
  }

  func awaitLook(_ path: RelativePath) throws {
    try self.await("a look at \(path.printable)") { Self.covers($0, path) }
  }

  /// Waits until a look at each path was asked for, in any order.
  func awaitLooks(_ paths: [String]) throws {
    let start = mark
    var last = start
    for path in paths {
      mark = start
      try awaitLook(path)
      last = max(last, mark)
    }
    mark = last
  }

  /// Makes a file and waits until it is told, and with it all that happened before.
  /// - Returns: the news since the last that were awaited.
  func settle(_ name: String = "sentinel") throws -> [WatchNews.Event] {
    let start = mark
    try write(name, "s")
    try awaitLook(name)
    return news.withLock { $0[start...].map(\.event) }
  }

  static func covers(_ event: WatchNews.Event, _ path: RelativePath) -> Bool {
    switch event {
    case .dirty(let told): told == path
    case .tree(let told): told.map { $0 == path || $0.isAncestor(of: path) } ?? true
    case .ready, .blind: false
    }
  }

  /// The watches that the program has, by the kernel (proc(5), fdinfo), through whichever descriptors.
  func watchCount() throws -> Int {
    let directory = "/proc/\(try #require(process?.processID))/fdinfo"
    let all = try FileManager.default.contentsOfDirectory(atPath: directory).flatMap { name in
      // One that was closed meanwhile has none.
      let text = (try? String(contentsOfFile: directory + "/" + name, encoding: .utf8)) ?? ""
      return text.split(separator: "\n").filter { $0.hasPrefix("inotify wd:") }.map(String.init)
    }
    return Set(all).count
  }

  func awaitWatches(_ count: Int) throws {
    guard try isSoInTime({ try watchCount() == count }) else {
      throw Late(description: "there are not \(count) watches")
    }
  }

  // MARK: - Changing the folder

  func write(_ name: String, _ text: String) throws {
    let file = open(folder + "/" + name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    try #require(file >= 0, "\(name): \(errno)")
    defer { close(file) }
    try #require(Glibc.write(file, text, text.utf8.count) == text.utf8.count)
  }

  func make(_ name: String) throws {
    try FileManager.default.createDirectory(atPath: folder + "/" + name, withIntermediateDirectories: true)
  }

  func move(_ from: String, _ to: String) throws {
    try #require(rename(folder + "/" + from, folder + "/" + to) == 0, "\(from) to \(to): \(errno)")
  }

  func remove(_ name: String) throws {
    try FileManager.default.removeItem(atPath: folder + "/" + name)
  }

  /// Runs a program to its end. Throws when it ends with anything but 0.
  func run(_ words: String...) throws {
    let status = try Shell.run(words)
    try #require(status == 0, "\(words) ended with \(status)")
  }
}

enum Shell {
  static func start(_ words: [String]) throws -> pid_t {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    let arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    let variables: [UnsafeMutablePointer<CChar>?] = [strdup("PATH=/usr/sbin:/usr/bin:/sbin:/bin"), nil]
    defer { for text in arguments + variables { free(text) } }
    var pid: pid_t = 0
    let number = posix_spawnp(&pid, words[0], nil, &attributes, arguments, variables)
    guard number == 0 else { throw Late(description: "cannot start \(words[0]): \(number)") }
    return pid
  }

  static func run(_ words: [String]) throws -> Int32 {
    let pid = try start(words)
    var status: Int32 = 0
    while waitpid(pid, &status, 0) == -1, errno == EINTR {}
    return status
  }
}
