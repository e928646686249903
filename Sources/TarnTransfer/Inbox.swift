import TarnCore
import TarnRuntime

/// The ID of a user of a network thread, with its own settings, limits and exchanges: a pass.
struct ClientID: Hashable, Sendable {
  let value: UInt64
}

/// The commands of other threads to a network thread.
final class Inbox: BudgetMember {
  enum Command: Sendable {
    case join(ClientID, NetworkSettings, mirror: String, HostCookies)
    case start(DownloadID, ClientID, DownloadRequest, any DownloadReceiver)
    case resume(DownloadID)
    case cancel(DownloadID)
    case prioritize(DownloadID)
    case setRate(ClientID, UInt64?)
    /// The gate opens when no receiver of the client will be called again.
    case leave(ClientID, Gate)
    case hear(BudgetNotice)
  }

  private struct State {
    var commands: [Command] = []
    /// The last ID of downloads and clients alike.
    var lastID: UInt64 = 0
    /// The clients that have not left.
    var clients: Set<ClientID> = []
    var isClosed = false
  }

  private let multi: MultiHandle
  private let state = Locked(State())

  init(_ multi: MultiHandle) {
    self.multi = multi
  }

  func join(_ settings: NetworkSettings, mirror: String, _ cookies: HostCookies) -> ClientID {
    state.withLock { state in
      state.lastID += 1
      let client = ClientID(value: state.lastID)
      state.clients.insert(client)
      append(.join(client, settings, mirror: mirror, cookies), to: &state)
      return client
    }
  }

  /// - Returns: false for a later call, which does not open its gate: the caller waits for the first one's.
  func leave(_ client: ClientID, _ gate: Gate) -> Bool {
    state.withLock { state in
      guard state.clients.remove(client) != nil else { return false }
      append(.leave(client, gate), to: &state)
      return true
    }
  }

  /// - Returns: the ID, and false when the client has left.
  func start(
    _ client: ClientID, _ request: DownloadRequest, _ receiver: any DownloadReceiver
  ) -> (DownloadID, isOpen: Bool) {
    state.withLock { state in
      state.lastID += 1
      let id = DownloadID(value: state.lastID)
      guard !state.isClosed, state.clients.contains(client) else { return (id, false) }
      append(.start(id, client, request, receiver), to: &state)
      return (id, true)
    }
  }

  func put(_ command: Command) {
    state.withLock { append(command, to: &$0) }
  }

  func hear(_ notice: BudgetNotice) {
    put(.hear(notice))
  }

  func close() {
    state.withLock { state in
      guard !state.isClosed else { return }
      state.isClosed = true
      multi.wake()
    }
  }

  /// Empties the inbox. Network thread only.
  func drain() -> (commands: [Command], isClosed: Bool) {
    state.withLock { state in
      defer { state.commands = [] }
      return (state.commands, state.isClosed)
    }
  }

  private func append(_ command: Command, to state: inout State) {
    guard !state.isClosed else { return }
    state.commands.append(command)
    // The thread takes all commands at once. When others wait already, it need not be woken again.
    if state.commands.count == 1 { multi.wake() }
  }
}
