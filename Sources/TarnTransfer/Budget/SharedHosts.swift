/// Which mirrors use which hosts: the feeds of the settings, and what was asked for since.
struct SharedHosts {
  /// Hosts that are remembered because somebody asked them. A feed may name hosts without end: beyond so many all of them
  /// are forgotten, and learned again.
  static let mostAsked = 1024

  private var feeds: [Origin: Set<String>] = [:]
  private var asked: [Origin: Set<String>] = [:]

  /// - Parameter mirrors: all that there are, and the origin of each one's feed, if it has one. What others asked for is
  ///   forgotten.
  mutating func set(_ mirrors: [String: Origin?]) {
    feeds = [:]
    for case (let mirror, let origin?) in mirrors { feeds[origin, default: []].insert(mirror) }
    for (origin, there) in asked {
      let others = there.filter { mirrors[$0] != nil }.subtracting(feeds[origin] ?? [])
      asked[origin] = others.isEmpty ? nil : others
    }
  }

  mutating func note(_ mirror: String, at origin: Origin) {
    guard feeds[origin]?.contains(mirror) != true else { return }
    if asked[origin] == nil, asked.count >= Self.mostAsked { asked = [:] }
    asked[origin, default: []].insert(mirror)
  }

  /// Where its feed is; nil for none of the settings, and for a feed of this machine.
  func origin(of mirror: String) -> Origin? { feeds.first { $0.value.contains(mirror) }?.key }

  /// More than one mirror uses it.
  func areSeveral(at origin: Origin) -> Bool {
    (feeds[origin]?.count ?? 0) + (asked[origin]?.count ?? 0) > 1
  }
}
