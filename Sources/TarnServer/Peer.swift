internal import Glibc
internal import NIOCore

/// The process at the other end of a connection, as of the connection's begin.
struct Peer: Sendable, Equatable {
  var process: Int32
  var user: UInt32
  var group: UInt32
  /// The supplementary groups.
  var groups: [UInt32]

  /// - Returns: a future with `nil` when the kernel does not tell.
  static func read(_ channel: any Channel) -> EventLoopFuture<Peer?> {
    guard let options = channel as? any SocketOptionProvider else {
      return channel.eventLoop.makeSucceededFuture(nil)
    }
    let credentials: EventLoopFuture<PeerCredentials> = options.unsafeGetSocketOption(
      level: .socket, name: NIOBSDSocket.Option(rawValue: PeerCredentials.option))
    let groups: EventLoopFuture<PeerGroups> = options.unsafeGetSocketOption(
      level: .socket, name: NIOBSDSocket.Option(rawValue: PeerGroups.option))
    let unknown = PeerGroups()
    return credentials.and(groups.recover { _ in unknown }).map { credentials, groups -> Peer? in
      Peer(
        process: credentials.process, user: credentials.user, group: credentials.group, groups: groups.numbers
      )
    }.recover { _ in nil }
  }
}

/// The `struct ucred` of unix(7), which Glibc's Swift module leaves out.
struct PeerCredentials: Sendable {
  static let option: Int32 = SO_PEERCRED

  var process: Int32 = 0
  var user: UInt32 = 0
  var group: UInt32 = 0

  static func read(_ descriptor: Int32) -> PeerCredentials? {
    var credentials = PeerCredentials()
    var length = socklen_t(MemoryLayout<PeerCredentials>.size)
    guard getsockopt(descriptor, SOL_SOCKET, option, &credentials, &length) == 0 else { return nil }
    return credentials
  }
}

/// The buffer that SO_PEERGROUPS fills. A peer with more groups counts as one with none. Group 0 is left out, because an unused
/// place looks the same; it is known only as the peer's first group.
private struct PeerGroups: Sendable {
  static let option: Int32 = 59

  private var places = InlineArray<1024, UInt32>(repeating: 0)

  var numbers: [UInt32] { places.indices.map { places[$0] }.filter { $0 != 0 } }
}

/// The user of a client, as an agent sees it.
enum PeerUser: Sendable, Equatable {
  /// The agent's own user.
  case owner
  /// root, beside the agent of another user.
  case root
  case other

  /// How a client gets its downloads where the agent serves sessions of its own user only. An agent that root starts
  /// would use the settings and records of the system's agent.
  var wayToSessions: String {
    let command = "'tarn get' without --background needs no agent"
    return switch self {
    case .root: "\(command); for sessions log in as another user, who starts one: systemctl --user start tarn"
    case .owner, .other: "start one of your own: systemctl --user start tarn; \(command)"
    }
  }
}

/// The policy of who may command an agent. The kernel has checked the file's mode already. The check is repeated because a mode can
/// change and a directory can move.
struct PeerPolicy: Sendable, Equatable {
  /// The user that the kernel shows for one that a user namespace does not know.
  static let unmappedUser: UInt32 = 65534

  /// The agent's user.
  var user: UInt32
  /// The group whose members are admitted too; `nil` when the socket's mode gives its group nothing.
  var group: UInt32?
  /// Whether the agent runs in a user namespace (`PrivateUsers=`) that knows only some users.
  var isPartial: Bool

  init(user: UInt32, group: UInt32?, isPartial: Bool) {
    self.user = user
    self.group = group
    self.isPartial = isPartial
  }

  init(_ file: SocketFile) {
    self.init(
      user: geteuid(), group: file.socket.mode & 0o020 == 0 ? nil : file.group,
      isPartial: Self.isPartialNamespace())
  }

  func kind(of peer: Peer?) -> PeerUser {
    guard let peer else { return .other }
    if peer.user == user { return .owner }
    return peer.user == 0 ? .root : .other
  }

  func admits(_ peer: Peer) -> Bool {
    if peer.user == 0 || peer.user == user { return true }
    if let group, peer.group == group || peer.groups.contains(group) { return true }
    // Unmapped users cannot be told apart then, so the kernel's check stands.
    return isPartial && peer.user == Self.unmappedUser
  }

  /// Parses the first line of /proc/self/uid_map, which is `0 0 4294967295` when all users are known.
  static func isPartial(uidMap: String) -> Bool {
    let fields = uidMap.split(whereSeparator: { " \t\n".contains($0) })
    return fields != ["0", "0", "4294967295"]
  }

  private static func isPartialNamespace() -> Bool {
    let descriptor = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = Glibc.read(descriptor, &buffer, buffer.count)
    return count > 0 && isPartial(uidMap: String(decoding: buffer[..<count], as: UTF8.self))
  }
}
