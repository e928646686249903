import Glibc
import TarnCore
import TestSupport
import Testing

@testable import TarnRuntime

/// What systemd is told.
@Suite struct ServiceNotifierTests {
  private static let watched = ["WATCHDOG_USEC": "3000000"]

  private func notifier(_ address: String, _ more: [String: String] = [:]) -> ServiceNotifier {
    ServiceNotifier(environment: ["NOTIFY_SOCKET": address].merging(more) { $1 })
  }

  /// A path, and a name of the abstract kind, which is written with an `@`.
  @Test(arguments: [false, true]) func itIsToldByDatagrams(isAbstract: Bool) {
    let directory = ScratchDirectory()
    let address = (isAbstract ? "@" : "") + directory.file("notify")
    let peer = DatagramPeer(address)
    let notifier = notifier(address, Self.watched)
    notifier.ready("2 mirrors, idle")
    #expect(peer.next() == "READY=1\nSTATUS=2 mirrors, idle")
    notifier.status("one\ntwo\r\nREADY=1")
    #expect(peer.next() == "STATUS=one two READY=1")
    notifier.alive()
    #expect(peer.next() == "WATCHDOG=1")
    notifier.reloading(now: 5_000_999)
    #expect(peer.next() == "RELOADING=1\nMONOTONIC_USEC=5000")
    notifier.stopping("ending")
    #expect(peer.next() == "STOPPING=1\nSTATUS=ending")
    #expect(peer.isSilent)
    #expect(directory.names == (isAbstract ? [] : ["notify"]))
  }

  @Test func signsOfLifeAreGivenWhereTheyAreAskedFor() {
    let directory = ScratchDirectory()
    let address = directory.file("notify")
    let peer = DatagramPeer(address)
    let others: [[String: String]] = [
      [:], ["WATCHDOG_USEC": "0"], ["WATCHDOG_USEC": "soon"], ["WATCHDOG_USEC": "5", "WATCHDOG_PID": "1"],
      ["WATCHDOG_USEC": "5", "WATCHDOG_PID": "x"],
    ]
    for more in others {
      #expect(notifier(address, more).watchdog == nil)
      notifier(address, more).alive()
    }
    #expect(peer.isSilent)
    #expect(
      notifier(address, ["WATCHDOG_USEC": "5", "WATCHDOG_PID": String(getpid())]).watchdog == .microseconds(5)
    )
    #expect(notifier(address, Self.watched).watchdog == .seconds(3))
  }

  /// Not run by systemd, or by one that is gone: nothing is told, and nothing fails.
  @Test(arguments: [
    nil, "", "relative", "vsock:2:1234", "/nonexistent/notify", "/" + String(repeating: "x", count: 200),
  ])
  func withoutASocketNothingIsTold(address: String?) {
    var environment = Self.watched
    environment["NOTIFY_SOCKET"] = address
    let notifier = ServiceNotifier(environment: environment)
    notifier.ready("x")
    notifier.alive()
    notifier.stopping("x")
    #expect(notifier.watchdog == .seconds(3))
    #expect(!Datagram.send([120], to: address ?? ""))
  }
}
