import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// `tarn sync FEED FOLDER` for a mirror of the agent. Its pass follows the settings alone, so the request
/// must agree with them.
extension Agent {
  func refuseOther(_ expected: ControlExpectation?, _ name: String) throws(ControlFailure) {
    guard let expected else { return }
    let settings = try mirror(name).settings
    if let feed = expected.feed { try refuseOtherFeed(feed, settings) }
    let given = PassOptions(encoded: expected.options ?? "")
    var others = given.changing(settings.options).map(\.rawValue)
    // The settings hold only the place of the secret.
    if given.values[.proxy] != nil, settings.secrets[.proxy] != nil, !others.contains("proxy") {
      others.append("proxy")
    }
    if expected.adopts == true, !settings.adopts { others.append("adopt") }
    let (state, own) = (expected.state.map(parts.tarn.resolved), settings.state.map(parts.tarn.resolved))
    if let state, own?.utf8.elementsEqual(state.utf8) != true { others.append("state") }
    guard !others.isEmpty else { return }
    let words = others.map { name in
      let isTakenBack = PassOptions.Name(rawValue: name).map { given.values[$0] == ["false"] } ?? false
      return isTakenBack ? "--no-\(name)" : "--\(name)"
    }.joined(separator: ", ")
    throw ControlFailure(
      .usage, code: "other-options",
      "the agent keeps \(Printable.escape(settings.folder)) as '\(name)', and its settings are not what \(words) "
        + (others.count == 1 ? "asks for" : "ask for"),
      hint: "write them below \(TOMLText.mirror(name)) of its settings, then 'tarn reload'; "
        + "without options, 'tarn sync \(name)' asks for a pass")
  }

  private func refuseOtherFeed(_ feed: String, _ settings: MirrorSettings) throws(ControlFailure) {
    let (own, other) = try ControlFailure.translating {
      (try parts.tarn.feedText(settings.feed), try parts.tarn.feedText(feed))
    }
    guard !other.utf8.elementsEqual(own.utf8) else { return }
    throw ControlFailure(
      .usage, code: "other-feed",
      "the agent keeps \(Printable.escape(settings.folder)) as '\(settings.name)', which follows "
        + Printable.escape(settings.feed),
      hint:
        "to follow another feed, change \(TOMLText.mirror(settings.name)) of its settings, then 'tarn reload'"
    )
  }
}
