import Foundation
import Testing

/// A network of its own: nothing but a loopback, which can be taken away (network_namespaces(7)). It ends with the object, and with
/// all that was started in it.
final class OwnNetwork {
  /// Why there can be none; nil where there can.
  static let obstacle: String? = {
    do {
      _ = try OwnNetwork()
      return nil
    } catch {
      return "there can be no network of its own: \(error)"
    }
  }()

  private let descriptor: Int32

  init() throws {
    let outside = try Self.current()
    defer { close(outside) }
    // CLONE_NEWNET, which glibc's headers show only to those who ask for all of its extensions.
    try Self.call("unshare", 0x4000_0000)
    defer { Self.enter(outside) }
    descriptor = try Self.current()
    try Self.startLoopback()
  }

  deinit { close(descriptor) }

  /// Of the thread that asks.
  private static func current() throws -> Int32 {
    let descriptor = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Loopback.Failed(call: "open", code: errno) }
    return descriptor
  }

  private static func call(_ name: String, _ argument: Int32) throws {
    guard let address = dlsym(nil, name) else { throw Loopback.Failed(call: name, code: ENOSYS) }
    let function = unsafeBitCast(address, to: (@convention(c) (Int32) -> Int32).self)
    guard function(argument) == 0 else { throw Loopback.Failed(call: name, code: errno) }
  }

  private static func enter(_ network: Int32) {
    let address = dlsym(nil, "setns")
    let function = unsafeBitCast(address, to: (@convention(c) (Int32, Int32) -> Int32).self)
    // A thread that stays in another network would fail tests that have nothing to do with it.
    precondition(function(network, 0x4000_0000) == 0, "setns: \(errno)")
  }

  /// What the body starts and connects to is in this network.
  func inside<Result>(_ body: () throws -> Result) throws -> Result {
    let outside = try Self.current()
    defer { close(outside) }
    Self.enter(descriptor)
    defer { Self.enter(outside) }
    return try body()
  }

  /// The loopback loses its address: there is no way to anywhere, and what is on its way does not come.
  func goDown() throws { try inside { try Self.set(address: "0.0.0.0") } }

  func comeUp() throws { try inside { try Self.set(address: "127.0.0.1") } }

  private static func set(address: String) throws {
    // A struct sockaddr_in; SIOCSIFADDR.
    try configure(0x8916) { request in
      withUnsafeBytes(of: sa_family_t(AF_INET)) { request.replaceSubrange(16..<18, with: Array($0)) }
      withUnsafeBytes(of: inet_addr(address)) { request.replaceSubrange(20..<24, with: Array($0)) }
    }
  }

  private static func startLoopback() throws {
    // Flags, of which IFF_UP is the first; SIOCSIFFLAGS.
    try configure(0x8914) { request in request[16] = 1 }
  }

  /// - Parameter fill: gets a struct ifreq (netdevice(7)), whose first 16 bytes are a name.
  private static func configure(_ order: UInt, _ fill: (inout [UInt8]) -> Void) throws {
    let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    guard descriptor >= 0 else { throw Loopback.Failed(call: "socket", code: errno) }
    defer { close(descriptor) }
    var request = Array("lo".utf8) + [UInt8](repeating: 0, count: 38)
    fill(&request)
    guard ioctl(descriptor, order, &request) == 0 else { throw Loopback.Failed(call: "ioctl", code: errno) }
  }
}

/// What takes the server away from an agent.
enum Outage: CaseIterable {
  /// There is no route any more, and no packet gets through.
  case network
  /// Its port refuses.
  case server

  /// Those that there can be here.
  static let possible = OwnNetwork.obstacle == nil ? allCases : [.server]
}

extension SessionTests.House {
  /// In a network of its own, where that is to be taken away.
  static func make(for outage: Outage) throws -> SessionTests.House {
    guard outage == .network else { return try SessionTests.House() }
    let network = try OwnNetwork()
    let house = try network.inside { try SessionTests.House() }
    house.network = network
    return house
  }

  func takeAway(_ outage: Outage) throws {
    switch outage {
    case .network: try network?.goDown()
    case .server: server.stop()
    }
  }

  func bringBack(_ outage: Outage) throws {
    switch outage {
    case .network: try network?.comeUp()
    case .server: try server.startAgain()
    }
  }

  /// Where the server and the agent are.
  func inside<Result>(_ body: () throws -> Result) throws -> Result {
    try network.map { try $0.inside(body) } ?? body()
  }

  /// Opens the session `s`, whose tasks wait for a silent server no longer than a second.
  func openImpatient() throws {
    try place.write("{\"limits\":{\"idle\":1}}", to: "settings.json")
    let outcome = try tarn("session", "open", "s", "--settings", "settings.json")
    #expect(outcome.status == 0, "\(outcome)")
  }
}
