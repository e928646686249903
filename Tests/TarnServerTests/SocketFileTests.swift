import Glibc
import TarnCore
import TarnRuntime
import TarnServer
import TestSupport
import Testing

/// The files of the sockets: what they replace, what they leave alone, who can open them.
@Suite struct SocketFileTests {
  private let directory = ScratchDirectory()
  private var path: String { directory.file("tarn.sock") }

  private func server(_ sockets: ControlSocket...) -> ControlServer {
    ControlServer(agent: FakeAgent(), sockets: sockets, version: "1")
  }

  private func failure(_ socket: ControlSocket) -> ControlServerFailure? {
    #expect(throws: ControlServerFailure.self) { try server(socket).start() }
  }

  private func look(_ path: String) -> stat {
    var found = stat()
    lstat(path, &found)
    return found
  }

  /// In a process of its own: the mask is the whole process's, and other tests make files meanwhile.
  @Test(arguments: [0o600, 0o660, 0o666] as [UInt32])
  func theFileHasTheModeWhateverTheMask(mode: UInt32) async {
    await #expect(processExitsWith: .success) { [mode] in
      umask(0o077)
      let test = SocketFileTests()
      let server = test.server(ControlSocket(path: test.path, mode: mode))
      try server.start()
      #expect(test.look(test.path).st_mode == S_IFSOCK | mode)
      #expect(test.directory.names == ["tarn.sock"])
      server.stop()
      #expect(test.directory.names == [])
    }
  }

  /// What keeps others out between `bind` and `chmod`.
  @Test func theKernelGivesTheFileTheModeOfItsSocket() async {
    await #expect(processExitsWith: .success) {
      umask(0)
      let test = SocketFileTests()
      RawListener.leave(test.path, mode: 0o600)
      #expect(test.look(test.path).st_mode == S_IFSOCK | 0o600)
      let open = test.directory.file("open")
      RawListener.leave(open)
      #expect(test.look(open).st_mode == S_IFSOCK | 0o777)
    }
  }

  @Test(.enabled(if: geteuid() == 0, "only root gives files away"))
  func theFileHasItsGroup() throws {
    let server = server(ControlSocket(path: path, mode: 0o660, group: .number(65_432)))
    try server.start()
    #expect(look(path).st_gid == 65_432)
    server.stop()
    let named = self.server(ControlSocket(path: path, mode: 0o660, group: .name("root")))
    try named.start()
    #expect(look(path).st_gid == 0)
    named.stop()
  }

  @Test func theSocketOfADeadAgentIsReplaced() throws {
    RawListener.leave(path)
    let dead = look(path).st_ino
    let server = server(ControlSocket(path: path, mode: 0o600))
    try server.start()
    #expect(look(path).st_ino != dead)
    #expect(RawClient(path).request("GET", "/v1/status")?.status == 200)
    server.stop()
  }

  @Test func anAgentThatAnswersIsLeftAlone() throws {
    let stage = try Stage()
    let refused = failure(ControlSocket(path: stage.path, mode: 0o600))
    #expect(refused?.kind == .busy(process: getpid()))
    #expect(refused?.message.contains("another agent answers there (process \(getpid()))") == true)
    #expect(stage.raw.request("GET", "/v1/status")?.status == 200)
    #expect(stage.directory.names == ["status.sock", "tarn.sock"])
  }

  @Test func soIsOneThatIsTooBusyToAnswer() throws {
    let listener = try RawListener(path)
    let waiting = (0..<9).map { _ in RawClient(path) }
    #expect(
      failure(ControlSocket(path: path, mode: 0o600))?.message.contains("another agent answers") == true)
    withExtendedLifetime((listener, waiting)) {}
  }

  @Test func whatIsNoSocketStays() {
    close(open(path, O_CREAT | O_WRONLY, 0o640))
    let before = look(path)
    #expect(failure(ControlSocket(path: path, mode: 0o600))?.kind == .inTheWay)
    #expect(look(path).st_ino == before.st_ino)
    let link = directory.file("link")
    symlink(directory.file("nowhere"), link)
    #expect(failure(ControlSocket(path: link, mode: 0o600))?.kind == .inTheWay)
    #expect(directory.names == ["link", "tarn.sock"])
  }

  @Test func aPathThatNoSocketCanHaveIsToldItsLength() throws {
    let long = directory.path + "/" + String(repeating: "x", count: 107 - directory.path.utf8.count)
    let refused = failure(ControlSocket(path: long, mode: 0o600))
    #expect(refused?.kind == .badPath)
    #expect(refused?.message.contains("108 bytes, and the path of a socket has at most 107") == true)
    let server = server(ControlSocket(path: String(long.dropLast()), mode: 0o600))
    try server.start()
    #expect(RawClient(String(long.dropLast())).request("GET", "/v1/status")?.status == 200)
    server.stop()
    for path in ["tarn.sock", "/tmp/", ""] {
      #expect(failure(ControlSocket(path: path, mode: 0o600))?.kind == .badPath)
    }
  }

  @Test func whatCannotBeMadeIsToldAndLeavesNothing() {
    #expect(
      failure(ControlSocket(path: directory.file("no/tarn.sock"), mode: 0o600))?.kind == .system(ENOENT))
    let group = ControlSocket.Group.name("no-such-group-here")
    #expect(failure(ControlSocket(path: path, mode: 0o660, group: group))?.kind == .noSuchGroup)
    #expect(directory.names == [])
  }

  @Test func whenOneOfTwoCannotBeMadeNoneIsThere() {
    let second = directory.file("second")
    close(open(second, O_CREAT | O_WRONLY, 0o640))
    let server = server(ControlSocket(path: path, mode: 0o600), ControlSocket(path: second, mode: 0o600))
    let refused = #expect(throws: ControlServerFailure.self) { try server.start() }
    #expect(refused?.kind == .inTheWay)
    #expect(directory.names == ["second"])
  }

  @Test func theFileOfASuccessorStays() throws {
    let server = server(ControlSocket(path: path, mode: 0o600))
    try server.start()
    unlink(path)
    let successor = try RawListener(path)
    server.stop()
    #expect(directory.names == ["tarn.sock"])
    withExtendedLifetime(successor) {}
  }

  @Test func twoThatStartAtOnceDoNotBothListen() throws {
    let path = path
    let servers = (0..<4).map { _ in server(ControlSocket(path: path, mode: 0o600)) }
    let started = try servers.map { server in
      try Aside { (try? server.start()) != nil }
    }.map { try $0.value() }
    #expect(started.filter { $0 }.count == 1)
    #expect(RawClient(path).request("GET", "/v1/status")?.status == 200)
    for server in servers { server.stop() }
    #expect(directory.names == [])
  }
}
