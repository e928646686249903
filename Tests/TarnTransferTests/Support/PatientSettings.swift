import TarnCore

extension NetworkSettings {
  /// For servers on this machine, which may be busy: only what a test is about is short.
  static func patient(_ change: (inout NetworkSettings) -> Void = { _ in }) -> NetworkSettings {
    var settings = NetworkSettings()
    settings.allowsPrivateAddresses = true
    settings.connectTimeout = 120
    settings.lowSpeedTime = 120
    change(&settings)
    return settings
  }
}
