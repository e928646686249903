import Glibc
import Logging
import TarnConfig
import TarnCore
import TarnFolder
import TarnRuntime
import TarnTransfer

/// The work of the thread `tarn-hooks`: starts programs and requests, ends those that take too long, and
/// reports the results.
final class HookLoop {
  /// The program of a hook at work.
  private struct Program {
    let hook: String
    /// The id of the document that it is told.
    let item: String
    let process: pid_t
    let watch: ProcessWatch
    /// The time when it gets SIGTERM, and after that the time when it gets SIGKILL.
    var deadline: Instant
    var isAsked = false
  }

  /// The time between the two signals that end a program.
  private static let grace = Duration.seconds(2)
  /// The time that programs and requests still have when the agent ends.
  private static let farewell = Duration.seconds(3)

  private let hooks: Hooks
  private let ears: Int32
  private var programs: [Program] = []
  /// The number of requests at work.
  private var requests = 0
  /// The downloader, while a request is at work.
  private var downloader: CurlDownloader?
  /// The generation of the queue that was last saved.
  private var saved: UInt64 = 0

  init(_ hooks: Hooks, ears: Int32) {
    self.hooks = hooks
    self.ears = ears
  }

  private var now: Moment { Moment(wall: hooks.clock.time, monotonic: hooks.clock.monotonic()) }

  func run() {
    var over: Instant?
    while true {
      for (hook, item, result) in takeEnded() {
        requests -= 1
        ended(hook, item, result)
      }
      lookAfterPrograms()
      if requests == 0 { closeDownloader() }
      let moment = now.monotonic
      let (items, isEnding, wait) = hooks.state.withLock { state in
        (
          state.isEnding ? [] : state.queue.begin(now: moment), state.isEnding,
          state.isEnding ? nil : state.queue.wait(now: moment)
        )
      }
      for item in items { begin(item) }
      save()
      if isEnding {
        let end = over ?? moment + Self.farewell
        over = end
        if programs.isEmpty && requests == 0 || moment >= end { break }
      }
      // The result of an item that failed at once is handled at once.
      if items.isEmpty { sleep(wait, until: over) }
    }
    for program in programs { finish(program, by: SIGKILL) }
    closeDownloader()
    tellLeft()
    hooks.closeBell()
    close(ears)
  }

  private func takeEnded() -> [(hook: String, item: String, result: HookQueue.Result)] {
    hooks.state.withLock { state in
      defer { state.ended = [] }
      return state.ended
    }
  }

  private func sleep(_ wait: Duration?, until over: Instant?) {
    let moment = now.monotonic
    let waits = [wait, over?.remaining(at: moment)] + programs.map { $0.deadline.remaining(at: moment) }
    let shortest = waits.compactMap(\.self).min() ?? .seconds(3600)
    var polled = [pollfd(fd: ears, events: Int16(POLLIN), revents: 0)]
    polled += programs.map { pollfd(fd: $0.watch.descriptor, events: Int16(POLLIN), revents: 0) }
    _ = poll(&polled, nfds_t(polled.count), max(1, min(shortest, .seconds(3600)).milliseconds))
    var bytes = [UInt8](repeating: 0, count: 256)
    while read(ears, &bytes, bytes.count) == bytes.count {}
  }

  // MARK: - Telling

  private func begin(_ item: HookQueue.Item) {
    guard let hook = hooks.state.withLock({ $0.settings[item.hook] }) else { return }
    if case .command(let words) = hook.way { return run(words, item.document, of: hook) }
    do throws(HookRequest.Failure) {
      guard let request = try HookRequest.make(item.document, for: hook, credentials: hooks.credentials)
      else { return }
      let (hooks, name) = (hooks, hook.name)
      let downloader = try opened()
      requests += 1
      let id = item.document.id
      _ = downloader.start(request, to: HookReceiver { hooks.requestEnded(name, id, $0) })
    } catch {
      // Somebody may correct a faulty secret meanwhile.
      ended(hook.name, item.document.id, .failed(error.message, isTransient: true))
    }
  }

  private func opened() throws(HookRequest.Failure) -> CurlDownloader {
    if let downloader { return downloader }
    var network = NetworkSettings()
    network.userAgent = "tarn/\(Tarn.version)"
    network.allowsAskedPrivateAddresses = true
    // Only the time-out of each request counts.
    (network.lowSpeedLimit, network.lowSpeedTime) = (1, 86_400)
    do throws(DownloadFailure) {
      let made = try CurlDownloader(settings: network, clock: hooks.clock)
      downloader = made
      return made
    } catch {
      throw HookRequest.Failure(message: error.message)
    }
  }

  private func closeDownloader() {
    downloader?.shutDown()
    downloader = nil
  }

  private func run(_ words: [String], _ document: HookDocument, of hook: HookSettings) {
    let program = words[0].contains("/") ? words[0] : OutsideProgram.find(words[0])
    guard let program else {
      return ended(
        hook.name, document.id, .failed("\(Printable.escape(words[0])) is not in $PATH", isTransient: false))
    }
    let environment =
      OutsideProgram.environment + document.environment + ["TARN_HOOK=\(hook.name)"]
    do throws(OutsideProgram.Failure) {
      guard let input = SealedMemory(Array((JSONText.line(document) + "\n").utf8)) else {
        throw OutsideProgram.Failure(message: "there is no memory for its input")
      }
      let process = try OutsideProgram.start(
        [program] + words.dropFirst(), environment, input: input.descriptor)
      guard let watch = ProcessWatch(process) else {
        kill(-process, SIGKILL)
        _ = Subprocess.wait(for: process)
        throw OutsideProgram.Failure(message: "too many open files")
      }
      programs.append(
        Program(
          hook: hook.name, item: document.id, process: process, watch: watch,
          deadline: now.monotonic + .seconds(hook.timeout)))
    } catch {
      ended(hook.name, document.id, .failed(error.message, isTransient: false))
    }
  }

  private func lookAfterPrograms() {
    let moment = now.monotonic
    var left: [Program] = []
    for var program in programs {
      var watched = pollfd(fd: program.watch.descriptor, events: Int16(POLLIN), revents: 0)
      if poll(&watched, 1, 0) > 0 {
        // The rest of its group is killed, unless the program ended by itself. Until it is waited for, the group has its number.
        if program.isAsked { kill(-program.process, SIGKILL) }
        let end = Subprocess.wait(for: program.process)
        ended(program.hook, program.item, result(end, wasAsked: program.isAsked))
        continue
      }
      if moment >= program.deadline {
        kill(-program.process, program.isAsked ? SIGKILL : SIGTERM)
        program.isAsked = true
        program.deadline = moment + Self.grace
      }
      left.append(program)
    }
    programs = left
  }

  private func result(_ end: Subprocess.End, wasAsked: Bool) -> HookQueue.Result {
    if wasAsked { return .failed("it took longer than its timeout, and was stopped", isTransient: true) }
    return end == .status(0) ? .delivered : .failed(end.text, isTransient: true)
  }

  /// Ends a program because the agent ends; the next agent runs it again.
  private func finish(_ program: Program, by signal: Int32) {
    kill(-program.process, signal)
    _ = Subprocess.wait(for: program.process)
  }

  // MARK: - What came of it

  /// - Parameter item: the id of the document that the hook was told.
  private func ended(_ name: String, _ item: String, _ result: HookQueue.Result) {
    let (moment, random) = (now, hooks.random.unit())
    let verdict = hooks.state.withLock { state in
      state.queue.ended(
        name, item, result, retries: state.settings[name]?.retries ?? 0, now: moment, random: random)
    }
    let code = Logger.Metadata.of(code: "hook-failed")
    let why = if case .failed(let message, _, _) = result { message } else { "" }
    switch verdict {
    case .delivered(let isBack):
      hooks.log.tell(isBack ? .notice : .debug, "hook \(name): told", .of(code: "hook-told"))
    case .again(let seconds, let isFirst):
      let when = Units.length(max(1, seconds))
      hooks.log.tell(
        isFirst ? .warning : .debug, "hook \(name): \(why); trying again in \(when)", code)
    case .gaveUp:
      hooks.log.tell(.warning, "hook \(name): \(why); this event is given up", code)
    case .unknown: break
    }
  }

  private func save() {
    guard let file = hooks.file else { return }
    let (items, generation) = hooks.state.withLock { ($0.queue.items, $0.queue.generation) }
    guard generation != saved else { return }
    // A failure is not logged here: parts that write more log the disk's trouble.
    if TextFile.replace(file, with: JSONText.line(items) + "\n") == nil { saved = generation }
  }

  private func tellLeft() {
    let count = hooks.state.withLock { $0.queue.count }
    guard count > 0 else { return }
    hooks.log.tell(
      .notice, "\(Units.count(count, "event")) for hooks: the next agent tells them", .of(code: "hook-waits"))
  }
}
