import Glibc
import Logging
import TarnConfig
package import TarnCore
import TarnEngine
import TarnRuntime
import TarnSchedule
import TarnServer
import TarnTransfer

/// The metrics, gathered on request from what is known at that time.
extension Agent {
  package func metrics(withSessions: Bool) -> MetricsPage {
    var page = MetricsPage()
    page.add(document())
    let now = moment
    let received = budget.received()
    let known = shared.withLock { shared in
      shared.mirrors.keys.sorted().compactMap { name in
        shared.mirrors[name].map {
          (name: name, mirror: $0, interval: shared.state.interval(of: name, now: now))
        }
      }
    }
    dropStatuses(besides: Set(known.map(\.name)))
    for (name, mirror, interval) in known {
      guard let document = document(of: name, recorded: { kept($0, now: now.wall) }) else { continue }
      page.add(document)
      page.add(mirror.tally, name)
      // Passes that only plan never end in sync: such a mirror is never late.
      if let interval, !mirror.settings.isDryRun {
        page.set(.interval, Duration.seconds(interval), name)
      }
      page.set(.received, received[name] ?? 0, name)
      page.set(.added, mirror.added, name)
      if let space = MountedFileSystem.space(mirror.settings.folder) {
        page.set(.free, space.free, name)
        let reserve = mirror.reserve.bytes(ofTotal: space.total)
        page.set(.usable, space.free - min(space.free, reserve), name)
      }
    }
    guard withSessions else { return page }
    for session in (try? sessions.list())?.sessions ?? [] {
      page.add(session, received: received["session:\(session.id)"] ?? 0)
    }
    return page
  }

  /// Returns the status from the mirror's ledger. It is not read again while nobody has written to it.
  private func kept(_ mirror: AgentMirror, now: Timestamp) -> StatusDocument {
    let settings = mirror.settings
    // Taken before the ledger is read: a later change shows the next time.
    let stamp = LedgerStamp(folder: settings.folder, state: settings.state)
    let kept = keptStatuses.withLock { $0[settings.name] }
    if let stamp, let kept, kept.stamp == stamp, kept.settings == settings { return kept.document }
    let (document, isTold) = recorded(mirror, problemLimit: 0)
    // A process that holds the folder releases it without a change to the ledger.
    let isAtRest = isTold && document.process == nil && stamp?.isSettled(now: now) == true
    keptStatuses.withLock { statuses in
      statuses[settings.name] = stamp.flatMap {
        isAtRest ? KeptStatus(stamp: $0, settings: settings, document: document) : nil
      }
    }
    return document
  }

  private func dropStatuses(besides names: Set<String>) {
    keptStatuses.withLock { statuses in statuses = statuses.filter { names.contains($0.key) } }
  }

  // MARK: - The text file

  /// Writes the file on a thread of its own: a file system that hangs delays no pass.
  func writeMetrics() {
    let now = parts.clock.monotonic()
    let path = shared.withLock { shared -> String? in
      guard let path = shared.running.settings.agent.metricsFile, shared.metricsPace.begin(now: now) else {
        return nil
      }
      return path
    }
    guard let path else { return }
    do {
      _ = try WorkerThread.start(name: "tarn-metrics") { [self] in
        writeMetrics(to: path)
        shared.change { shared in
          shared.metricsPace.end()
          shared.wasWoken = true
        }
      }
    } catch {
      shared.withLock { $0.metricsPace.end() }
    }
  }

  /// Writes the state at the agent's end. Waits two seconds at most, for the file system may hang.
  func writeLastMetrics() {
    guard let path = settings.agent.metricsFile else { return }
    let written = Gate()
    guard
      (try? WorkerThread.start(name: "tarn-metrics") { [self] in
        writeMetrics(to: path)
        written.open()
      }) != nil
    else { return }
    _ = written.wait(atMost: .seconds(2))
  }

  private func writeMetrics(to path: String) { metricsLock.withLock { write(to: path) } }

  private func write(to path: String) {
    let text = String(decoding: metrics(withSessions: true).text(.text), as: UTF8.self)
    let directory = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
    // The reader of the file creates its directory; a missing one is a mistake.
    let number =
      !directory.isEmpty && !TextFile.isDirectory(directory)
      ? ENOENT : TextFile.replace(path, with: text, mode: 0o644, isDurable: false)
    let trouble = number.map { Self.metricsTrouble(path, directory, $0) }
    let isNew = shared.withLock { shared in
      // A reload may have named another file meanwhile, or none.
      guard shared.running.settings.agent.metricsFile == path else { return false }
      defer { shared.metricsTrouble = trouble }
      return shared.metricsTrouble != trouble
    }
    guard isNew else { return }
    if let trouble {
      parts.log.tell(
        .warning, trouble.message + (trouble.hint.map { "; \($0)" } ?? ""), .of(code: trouble.code))
    } else {
      parts.log.tell(.notice, "metrics are written again", .of(code: "metrics-file"))
    }
  }

  /// - Parameter number: the errno.
  private static func metricsTrouble(
    _ path: String, _ directory: String, _ number: Int32
  ) -> AgentDocument.Trouble {
    let hint: String? =
      switch number {
      case ENOENT: "make the directory: sudo install -d -o \(geteuid()) \(ShellWord.quote(directory))"
      case EACCES, EPERM:
        "let the agent's user write there: sudo setfacl -m u:\(geteuid()):rwx \(ShellWord.quote(directory))"
      case EROFS:
        "a unit writes only where ReadWritePaths= lets it: systemctl edit tarn, then restart it"
      default: nil
      }
    return AgentDocument.Trouble(
      code: "metrics-file",
      message: "cannot write the metrics to \(Printable.escape(path)): \(ErrorText.of(number))", hint: hint)
  }
}
