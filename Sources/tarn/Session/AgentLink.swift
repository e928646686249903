import Glibc
import TarnAgent
import TarnConfig
import TarnControl
import TarnCore
import TarnEngine
import TarnRuntime

/// The connection to a running agent: the sockets where one may listen, in order of preference.
struct AgentLink: Sendable {
  /// The sockets, tried one after the other; an explicitly given one is the only one.
  private(set) var sockets: [String]
  /// The time limits of the connection.
  var limits = ControlClient.Limits()

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

  /// The connection to the agent of these settings alone.
  var own: AgentLink {
    var link = self
    link.sockets = Array(sockets.prefix(1))
    return link
  }

  /// The connection to any other agent, such as the system's for a user.
  private var others: AgentLink {
    var link = self
    link.sockets = Array(sockets.dropFirst())
    return link
  }

  /// The connection to ask about a mirror by its name. Settings with errors may have that name for a mirror which
  /// only their own agent knows.
  func asking(for name: String, _ sources: SettingsSources) -> AgentLink {
    sources.checked().mayName(name) ? own : self
  }

  /// Returns the status of the first agent that answers, and whether it is that of these settings; `nil`
  /// without an agent.
  func anyStatus(problemLimit: Int) throws(PassFailure) -> (answer: StatusAnswer, isOwn: Bool)? {
    if let answer = try own.status(problemLimit: problemLimit) { return (answer, true) }
    return try others.status(problemLimit: problemLimit).map { ($0, false) }
  }

  /// Asks the first agent that answers.
  ///
  /// - Throws: `noAgent` when none does; otherwise the failure that the agent answers.
  func ask<Answer>(_ body: (ControlClient) throws -> Answer) throws(PassFailure) -> Answer {
    guard let answer = try tryAsking(body) else {
      throw PassFailure(
        .noAgent, code: "no-agent",
        "no agent answers at \(sockets.map { Printable.escape($0) }.joined(separator: ", "))",
        hint: "start one with \(AgentText.start)")
    }
    return answer
  }

  /// Carries out an order for a session.
  ///
  /// - Throws: for a task that the order does not fit, whether it has ended or does not exist.
  func order(_ order: SessionOrder, _ id: String) throws(PassFailure) -> ControlAnswer {
    do throws(PassFailure) {
      return try ask { try $0.order(order, id) }
    } catch {
      var failure = error
      if failure.code == "no-such-task", let number = order.task {
        let page = try? ask { try $0.tasks(of: id, after: number - 1, limit: 1) }
        let task = page?.tasks.first?.task
        if task?.number != number {
          failure.message = "session '\(Printable.escape(id))' has no task \(number)"
        } else if let state = task?.state, state.isEnd {
          failure.message = "task \(number) of session '\(Printable.escape(id))' is over: \(state.rawValue)"
        }
      }
      throw failure
    }
  }

  /// Returns the status of all mirrors, redacted for users who may know no more; `nil` without an agent.
  func status(problemLimit: Int) throws(PassFailure) -> StatusAnswer? {
    do throws(PassFailure) {
      return try tryAsking { try $0.status(problemLimit: problemLimit) }
    } catch {
      guard error.code == "socket-refused" else { throw error }
      for path in sockets {
        guard let slash = path.lastIndex(of: "/") else { continue }
        do throws(PassFailure) {
          let answer = try ask(path[...slash] + "status.sock") { try $0.status(problemLimit: problemLimit) }
          if let answer { return answer }
        } catch {
          // That socket is open to everyone, so any failure there is the real reason.
          if error.code != "socket-refused" { throw error }
        }
      }
      throw error
    }
  }

  /// True when an agent runs with these settings: it answers at their socket, and names the same files.
  ///
  /// - Parameter agent: the agent to compare with; `nil` for any that answers there.
  func isOfTheseSettings(_ session: Session, agent: AgentDocument? = nil) -> Bool {
    guard let own = sockets.first, !Self.wasSilent.withLock({ $0 }),
      let answer = try? ask(own, { try $0.status(problemLimit: 0).agent }), let there = answer,
      agent.map({ $0.process == there.process && $0.started == there.started }) ?? true
    else { return false }
    return there.settingsCheck == session.sources.paths.command("config check")
  }

  /// Returns all mirrors of the agent; `nil` without an agent.
  ///
  /// - Throws: also when this user gets only the redacted status, which has no folders.
  func places() throws(PassFailure) -> [Tarn.Place]? {
    try tryAsking { try $0.status(problemLimit: 0).places }
  }

  /// Asks about one mirror, which may not be the agent's.
  ///
  /// - Parameter body: gets the agent's word for the mirror: a name, or a folder without links. A mirror of
  ///   the settings here goes by its folder, for the agent's settings may have its name for another one.
  /// - Returns: `nil` when there is no agent, it does not know the mirror, or this user may not ask it.
  /// - Throws: `permission` when the word may only be known to the agent; `usage` for an empty word.
  func tryAsking<Answer>(
    about word: String, _ session: Session, _ body: (ControlClient, String) throws -> Answer
  ) throws(PassFailure) -> Answer? {
    try session.tarn.refuseEmptyNames(word, nil)
    let isOnlyTheAgents = isOnlyTheAgents(word, session)
    let own = session.names.settingsPlace(of: word)?.folder
    let isName = own == nil && (isOnlyTheAgents || session.tarn.place(of: word) != nil)
    let mirror = isName ? word : session.tarn.resolved(session.tarn.absolute(own ?? word))
    let link = isName ? asking(for: word, session.sources) : self
    do throws(PassFailure) {
      return try link.tryAsking { try body($0, mirror) }
    } catch {
      guard ["no-such-mirror", "socket-refused", "peer-refused"].contains(error.code) else { throw error }
      guard isOnlyTheAgents, error.kind == .permission else { return nil }
      throw refusal(of: word, error)
    }
  }

  /// Returns the folder whose ledger is asked. For a name that only the agent knows, it is the folder there.
  ///
  /// - Parameter acts: see `refuseFaultySettings`.
  /// - Throws: `permission` when the agent may not be asked; `configuration` as `refuseFaultySettings` does;
  ///   `usage` for an empty word.
  func folder(of word: String, _ session: Session, acts: Bool = true) throws(PassFailure) -> String {
    try session.tarn.refuseEmptyNames(word, nil)
    try session.refuseFaultySettings([word], acts: acts)
    if session.configured(word) == nil, let place = session.tarn.place(of: word) { return place.folder }
    guard isOnlyTheAgents(word, session) else { return word }
    let answer = try tryAsking(about: word, session) { client, mirror in
      try client.status(mirrors: [mirror], problemLimit: 0)
    }
    return answer?.mirrors.first?.folder ?? word
  }

  /// Refuses a word that only an agent may know which this user may not ask. It may be a misspelled name of the
  /// settings here as well.
  func refuseOnlyTheAgents(_ word: String, _ session: Session) throws(PassFailure) {
    guard !Self.wasSilent.withLock({ $0 }) else { return }
    do throws(PassFailure) {
      _ = try tryAsking(about: word, session) { client, mirror in
        try client.status(mirrors: [mirror], problemLimit: 0)
      }
    } catch {
      guard let near = session.tarn.nearName(word) else { throw error }
      var failure = error
      failure.hint = [error.hint, "or did you mean '\(Printable.escape(near))'?"].compactMap { $0 }.joined(
        separator: "; ")
      throw failure
    }
  }

  /// Returns the agent's name of the mirror; `nil` when no agent has it.
  func name(of word: String, _ session: Session) -> String? {
    status(about: word, session)?.mirrors.first?.name
  }

  /// Returns what the agent that has the mirror says of itself and of the mirror; `nil` when no agent has it.
  func status(about word: String, _ session: Session) -> StatusAnswer? {
    guard !Self.wasSilent.withLock({ $0 }) else { return nil }
    return try? tryAsking(about: word, session) { client, mirror in
      try client.status(mirrors: [mirror], problemLimit: 0)
    }
  }

  /// True for a word that is neither a name nor a folder that this user can look at here. It may be a name of
  /// an agent that may not be asked.
  func isOnlyTheAgents(_ word: String, _ session: Session) -> Bool {
    !word.contains("/") && !word.hasPrefix(".") && session.tarn.place(of: word) == nil
      && access(session.tarn.absolute(word), F_OK) != 0 && (errno == ENOENT || errno == EACCES)
  }

  /// Returns the failure for such a word: it means nothing here, and the agent may not be asked.
  func refusal(of word: String, _ failure: PassFailure) -> PassFailure {
    PassFailure(
      failure.kind, code: failure.code,
      "\(ShellWord.quote(word)) is no mirror of this user's, and \(failure.message)",
      hint: failure.hint)
  }

  /// True once an agent did not answer this process in time.
  static let wasSilent = Locked(false)

  /// Asks the first agent that answers; `nil` without an agent.
  func tryAsking<Answer>(_ body: (ControlClient) throws -> Answer) throws(PassFailure) -> Answer? {
    for path in sockets where access(path, F_OK) == 0 || errno != ENOENT {
      if let answer = try ask(path, body) { return answer }
    }
    return nil
  }

  /// - Returns: `nil` when nobody listens there.
  private func ask<Answer>(
    _ path: String, _ body: (ControlClient) throws -> Answer
  ) throws(PassFailure) -> Answer? {
    do {
      return try body(ControlClient(socketPath: path, limits: limits))
    } catch let failure as ControlFailure {
      throw PassFailure(failure)
    } catch let unreachable as ControlUnreachable {
      if [.noSocket, .refused].contains(unreachable.reason) { return nil }
      let failure = PassFailure(unreachable)
      if failure.code == PassFailure.silentAgent { Self.wasSilent.withLock { $0 = true } }
      throw failure
    } catch {
      throw PassFailure(translating: error)
    }
  }
}

extension StatusAnswer {
  /// The places of the mirrors; not for a redacted status.
  var places: [Tarn.Place] { mirrors.map { ($0.name, $0.folder, nil) } }
}

extension PassFailure {
  /// Returns how a user gets access to a socket: through its group when that may write there, else as its
  /// owner.
  private static func wayIn(_ socket: String) -> String {
    let status = TextFile.status(socket)
    if let status, status.st_mode & S_IWGRP != 0, status.st_gid != 0, let group = getgrgid(status.st_gid) {
      let name = ShellWord.quote(String(cString: group.pointee.gr_name))
      return "use sudo, or join the group and log in again: sudo usermod -aG \(name) \"$USER\""
    }
    if let status, status.st_uid != 0, let owner = getpwuid(status.st_uid) {
      return "become its user \(String(cString: owner.pointee.pw_name)), or use sudo"
    }
    return "use sudo"
  }

  /// The code for an agent that accepts connections and does not answer.
  static let silentAgent = "agent-silent"

  init(_ failure: ControlFailure) {
    let kind: Kind =
      switch failure.kind {
      // An unknown name is wrong usage; otherwise the folder is missing.
      case .notFound where !failure.code.hasPrefix("no-such-"): .folderUnusable
      case .usage, .notFound, .tooLarge: .usage
      case .permission: .permission
      case .conflict: failure.code == "destination-in-mirror" ? .folderUnusable : .locked
      case .unavailable: .noAgent
      case .defect: .defect
      case .storage: .inputOutput
      }
    self.init(kind, code: failure.code, failure.message, hint: failure.hint)
  }

  init(_ unreachable: ControlUnreachable) {
    let path = Printable.escape(unreachable.socketPath)
    switch unreachable.reason {
    case .permission:
      self.init(
        .permission, code: "socket-refused", "this user may not connect to \(path)",
        hint:
          "\(Self.wayIn(unreachable.socketPath)); 'systemctl --user start tarn' starts an agent of your own"
      )
    case .timedOut where unreachable.isOpen:
      self.init(
        .noAgent, code: PassFailure.silentAgent,
        "the agent at \(path) does not answer; the order may still be carried out when it goes on",
        hint: "'tarn status' shows it then; the agent may be stopped or hang: its log may say more")
    case .ended where unreachable.isOpen:
      self.init(
        .noAgent, code: "no-agent",
        "the agent at \(path) ended before it answered; the order may have been carried out",
        hint: "'tarn status' shows it")
    case .timedOut:
      self.init(
        .noAgent, code: PassFailure.silentAgent, "the agent at \(path) does not answer",
        hint: "it may be stopped, or it may hang: its log may say more, and a restart loses nothing")
    case .notATarn:
      self.init(
        .noAgent, code: "not-an-agent", "what answers at \(path) is not an agent of Tarn",
        hint: "is another program's socket there? give the right one with --socket")
    case .ended:
      self.init(
        .noAgent, code: "no-agent", "the agent at \(path) ended the connection before it answered",
        hint: "it may be ending, or too many others are connected: try again in a moment")
    case .noSocket, .refused:
      self.init(.noAgent, code: "no-agent", "no agent answers at \(path)")
    }
  }
}
