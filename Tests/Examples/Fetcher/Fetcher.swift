import Glibc
import TarnKit

/// Hands URLs over to the user's agent, and tells what came of them. It may be killed at any time: started again, without any URL, it goes
/// on where it was.
///
///     Fetcher FOLDER [URL...]
@main
struct Fetcher {
  static func main() async throws {
    let words = CommandLine.arguments.dropFirst()
    guard let folder = words.first, folder.hasPrefix("/") else {
      print("usage: Fetcher FOLDER [URL...]; FOLDER is an absolute path")
      return
    }
    // The name says whose downloads these are. The agent has them, whatever becomes of this program.
    let session = try await BackgroundSession.open("org.example.fetcher").session
    let requests = words.dropFirst().map { url in
      var request = DownloadRequest(url, to: folder.hasSuffix("/") ? folder : folder + "/")
      request.makesDirectories = true
      request.existing = .keepBoth
      return request
    }
    for task in try await session.download(requests) {
      print("handed over: \(task.number)\(task.wasThere ? ", which was there" : "")")
    }
    // What runs may have begun in an earlier life of this program.
    let snapshot = try await session.snapshot()
    print("tasks: \(snapshot.tasks.count), unfinished: \(snapshot.tasks.count { !$0.state.isEnd })")
    let isAllEnded = snapshot.tasks.allSatisfy { $0.state.isEnd }
    if isAllEnded, try await session.acknowledged >= snapshot.asOf { return }
    // First all that was missed, then what comes.
    for try await event in session.events() {
      switch event.kind {
      case .finished: print("finished: \(event.path ?? "")")
      case .failed(let reason, _): print("failed: \(event.url ?? "") (\(reason))")
      case .needsRequest(let reason, _): print("refused: \(event.url ?? "") (\(reason))")
      default: break
      }
      // It is told again until it is acknowledged: first it has to be out of this program.
      fflush(nil)
      try await session.acknowledge(event.number)
      if case .allDelivered = event.kind { break }
    }
  }
}
