import TarnCore
import TarnEngine
import Testing

@testable import TarnAgent

/// What is advised by an agent whose user is not the one who gives the orders.
@Suite struct ServiceUserTests {
  /// A pass by root would leave a record that the agent may not read.
  @Test func theSettingsAdoptForAnotherUser() {
    var request = SyncRequest(feed: "http://127.0.0.1/SHA256SUMS", folder: "/srv/iso")
    request.name = "iso"
    var tarn = Tarn(workingDirectory: "/", environment: [:])
    #expect(tarn.notEmpty("/srv/iso", request).hint?.hasSuffix(": tarn sync --adopt iso") == true)
    tarn.serviceUser = "tarn"
    let hint = tarn.notEmpty("/srv/iso", request).hint
    #expect(
      hint?.hasSuffix("adopt = true below [mirror.iso] of its settings, then: tarn reload") == true,
      "\(hint ?? "")")
  }
}
