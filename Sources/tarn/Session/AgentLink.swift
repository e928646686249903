import Glibc
import TarnAgent
import TarnConfig
import TarnControl
import TarnCore
import TarnEngine

/// The way to a running agent: the sockets where one may listen, in the order of contract.md.
struct AgentLink: Sendable {
  /// Looked at one after the other; one that was given explicitly is the only one.
  let sockets: [String]

  init(_ sources: SettingsSources) {
    let paths = sources.paths
    let loaded = sources.checked()
    let isGiven = !paths.overrides.filter { $0.name == "socket" }.isEmpty || paths.file != nil
    var sockets = [loaded.socket ?? paths.socket].compactMap { $0 }
    if !isGiven {
      sockets += [environment("XDG_RUNTIME_DIR").map { "\($0)/tarn/tarn.sock" }].compactMap { $0 }
      sockets.append("/run/tarn/tarn.sock")
    }
    self.sockets = sockets.enumerated().filter { index, path in !sockets[..<index].contains(path) }.map(
      \.element)
  }

  /// Asks the first agent that answers.
  ///
  /// - Throws: `noAgent` when none does; what the agent answered otherwise.
  func ask<Answer>(_ body: (ControlClient) throws -> Answer) throws(PassFailure) -> Answer {
    guard let answer = try tryAsking(body) else {
      throw PassFailure(
        .noAgent, code: "no-agent",
        "no agent answers at \(sockets.map { Printable.escape($0) }.joined(separator: ", "))",
        hint: "start one with 'tarn agent', or 'systemctl start tarn'")
    }
    return answer
  }

  /// How all of its mirrors are; redacted for who may know no more. nil when no agent is there.
  func status(problemLimit: Int) throws(PassFailure) -> StatusAnswer? {
    do throws(PassFailure) {
      return try tryAsking { try $0.status(problemLimit: problemLimit) }
    } catch {
      guard error.code == "socket-refused" else { throw error }
      for path in sockets {
        guard let slash = path.lastIndex(of: "/") else { continue }
        let open = ControlClient(socketPath: path[...slash] + "status.sock")
        if let answer = try? open.status(problemLimit: problemLimit) { return answer }
      }
      throw error
    }
  }

  /// Asks about one mirror, which may be none of the agent's.
  ///
  /// - Parameter body: gets what the agent may know the mirror by: a name, or a folder without links.
  /// - Returns: nil when no agent is there, or it does not know this mirror, or is not for this user.
  /// - Throws: `permission` when nobody else can know the word either.
  func tryAsking<Answer>(
    about word: String, _ session: Session, _ body: (ControlClient, String) throws -> Answer
  ) throws(PassFailure) -> Answer? {
    let isOnlyTheAgents = isOnlyTheAgents(word, session)
    let isName = isOnlyTheAgents || session.tarn.place(of: word) != nil
    let mirror = isName ? word : session.tarn.resolved(session.tarn.absolute(word))
    do throws(PassFailure) {
      return try tryAsking { try body($0, mirror) }
    } catch {
      guard ["no-such-mirror", "socket-refused", "peer-refused"].contains(error.code) else { throw error }
      guard isOnlyTheAgents, error.kind == .permission else { return nil }
      throw refusal(of: word, error)
    }
  }

  /// What a question to a ledger is asked of: of a word that only the agent knows the folder that it has.
  ///
  /// - Throws: `permission` when the agent may not be asked.
  func folder(of word: String, _ session: Session) throws(PassFailure) -> String {
    guard isOnlyTheAgents(word, session) else { return word }
    let answer = try tryAsking(about: word, session) { client, mirror in
      try client.status(mirrors: [mirror], problemLimit: 0)
    }
    return answer?.mirrors.first?.folder ?? word
  }

  /// A word that means nothing here, neither by this user's settings nor as a folder, may still be a name of the agent's.
  func isOnlyTheAgents(_ word: String, _ session: Session) -> Bool {
    !word.contains("/") && !word.hasPrefix(".") && session.tarn.place(of: word) == nil
      && access(session.tarn.absolute(word), F_OK) != 0 && errno == ENOENT
  }

  /// That such a word means nothing here, and that the agent may not be asked.
  func refusal(of word: String, _ failure: PassFailure) -> PassFailure {
    PassFailure(
      failure.kind, code: failure.code,
      "\(ShellWord.quote(word)) is no mirror of this user's, and \(failure.message)",
      hint: failure.hint)
  }

  /// The same; nil when no agent is there.
  func tryAsking<Answer>(_ body: (ControlClient) throws -> Answer) throws(PassFailure) -> Answer? {
    for path in sockets where access(path, F_OK) == 0 || errno != ENOENT {
      do {
        return try body(ControlClient(socketPath: path))
      } catch let failure as ControlFailure {
        throw PassFailure(failure)
      } catch let unreachable as ControlUnreachable {
        if [.noSocket, .refused].contains(unreachable.reason) { continue }
        throw PassFailure(unreachable)
      } catch {
        throw PassFailure(translating: error)
      }
    }
    return nil
  }
}

extension PassFailure {
  init(_ failure: ControlFailure) {
    let kind: Kind =
      switch failure.kind {
      case .usage, .notFound, .tooLarge: .usage
      case .permission: .permission
      case .conflict: .locked
      case .unavailable: .noAgent
      case .defect: .defect
      }
    self.init(kind, code: failure.code, failure.message, hint: failure.hint)
  }

  init(_ unreachable: ControlUnreachable) {
    let path = Printable.escape(unreachable.socketPath)
    switch unreachable.reason {
    case .permission:
      self.init(
        .permission, code: "socket-refused", "this user may not connect to \(path)",
        hint: "become the agent's user, or a member of the socket's group")
    case .timedOut:
      self.init(.noAgent, code: "agent-silent", "the agent at \(path) did not answer in time")
    case .notATarn:
      self.init(
        .noAgent, code: "not-an-agent", "what answers at \(path) is no agent of Tarn's",
        hint: "is another program's socket there? give the right one with --socket")
    case .noSocket, .refused, .ended:
      self.init(.noAgent, code: "no-agent", "no agent answers at \(path)")
    }
  }
}
