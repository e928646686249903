import TarnAgent
import TarnCore
import TarnEngine
import TarnRuntime

/// Downloads files, and shows the progress.
struct GetRun {
  static let schema = "tarn-get/1"
  let session: Session

  func run(_ request: GetRequest) -> ExitStatus {
    session.console.outliveReader()
    let isOnlyOne = request.tasks.count == 1
    do throws(PassFailure) {
      let report = try session.attend(schema: Self.schema, names: Self.names(of: request.tasks)) {
        narrator, progress, stop throws(PassFailure) in
        try session.tarn.get(
          request, progress: progress, stop: stop, beginsAnew: { session.say($0) },
          ended: { task in tell(task, narrator, isOnlyOne: isOnlyOne) })
      }
      return status(of: report)
    } catch {
      return session.tell(Self.explained(error))
    }
  }

  /// Explains a missing directory of $HOME, which counts as no home.
  private static func explained(_ failure: PassFailure) -> PassFailure {
    guard failure.code == "no-state-directory", let home = environment("HOME"), !home.isEmpty else {
      return failure
    }
    var failure = failure
    failure.message =
      "there is no place for the record of a download: $HOME is \(Printable.escape(home)), and there is no such directory"
    failure.hint = "make it, or set XDG_STATE_HOME to another directory"
    return failure
  }

  /// Returns the names that stand for the tasks in what is shown. Requests with one URL and one destination are one task.
  static func names(of requests: [TaskRequest]) -> @Sendable (RelativePath) -> RelativePath {
    var known: Set<[String]> = []
    let tasks = requests.filter { known.insert([$0.url, TaskPlace($0.to)?.text ?? $0.to]).inserted }
    let names = tasks.map { task in
      let last = (TaskPlace(task.to)?.name ?? SuggestedName.name(disposition: nil, url: task.url))
      return try? RelativePath(Array(last.utf8))
    }
    return { path in
      let index = Int(path.task) - 1
      return names.indices.contains(index) ? names[index] ?? path : path
    }
  }

  /// Reports a task that has ended. Runs on another thread.
  private func tell(_ task: TaskRecord, _ narrator: Narrator, isOnlyOne: Bool) {
    if session.isJSON { return session.console.data(JSONText.line(task)) }
    if task.state == .finished {
      guard !session.isQuiet, let path = task.path else { return }
      let size = task.bytes.map { "  \(Units.show($0))" } ?? ""
      session.console.data("\(Printable.escape(path))\(size)")
      if path.hasSuffix("/\(SuggestedName.none)"), TaskPlace(task.request.to)?.name == nil {
        session.say("neither the server nor the URL names that file: --name NAME does")
      }
    } else {
      let message = task.message ?? task.code ?? "it was not downloaded"
      let place =
        isOnlyOne || message.contains(task.request.url) ? "" : "\(Printable.escape(task.request.url)): "
      let lines =
        ["\(session.messageStyle.paint("tarn:", .bad)) \(place)\(message)"]
        + (Self.hint(task).map { ["  hint: \($0)"] } ?? [])
      for line in FittedLines.of(lines, Terminal.messages.width) { narrator.console.message(line) }
    }
  }

  /// Returns what helps against a failure; `nil` when its message is enough.
  static func hint(_ task: TaskRecord) -> String? {
    let hasHeaders = task.request.headers?.isEmpty == false
    return switch task.code {
    case FolderFailure.Code.exists.rawValue where task.request.existing == .replace:
      "--existing keep-both gives it another name"
    case FolderFailure.Code.exists.rawValue:
      "--existing replace puts it in the place of that one, --existing keep-both gives it another name"
    case FolderFailure.Code.missing.rawValue where task.request.makeDirectories != true:
      "-p creates missing folders"
    case "http-404", "http-410": "check the URL: its server has no such file"
    case "http-401" where hasHeaders, "http-403" where hasHeaders:
      "check the file of --header-file; it goes to the scheme, host and port of the URL only, and not where a redirect leads"
    case "http-401", "http-403": "give the credentials that the server asks for: --header-file FILE"
    case FolderFailure.Code.noSpace.rawValue, FolderFailure.Code.quota.rawValue:
      "make room there, or give a folder elsewhere: --to FOLDER/; 'tarn get' leaves 1% of a file system free"
    case FolderFailure.Code.permission.rawValue: "give a folder that this user can write to: --to FOLDER/"
    case DownloadFailure.Code.lengthUnknown.rawValue: "give its digest: --sha256 HEX"
    default: nil
    }
  }

  private func status(of report: GetReport) -> ExitStatus {
    if report.wasStopped { return ExitStatus.stopped(by: Interruption.shared.received) }
    let failed = report.tasks.filter { $0.state != .finished }
    guard let first = failed.first else { return .inSync }
    return report.tasks.count > 1 ? .partial : Self.status(of: first)
  }

  /// Returns the status for a single file.
  private static func status(of task: TaskRecord) -> ExitStatus {
    let code = task.code ?? ""
    if let failure = FolderFailure.Code(rawValue: code) {
      switch failure {
      case .digestMismatch, .sizeMismatch, .pieceMismatch, .contentMismatch: return .failed(.feedMalformed)
      case .missing, .notDirectory, .exists, .nameTooLong, .link: return .failed(.folderUnusable)
      case .permission: return .failed(.permission)
      default: return .failed(.inputOutput)
      }
    }
    return .failed(.feedUnreachable)
  }
}
