import TarnAgent
import TarnConfig
import TarnControl
import TarnCore
import TarnRuntime

/// The places of mirrors by their names: those of the settings first, then those of an agent that answers.
/// Any other word is a folder.
struct MirrorNames: Sendable {
  private let sources: SettingsSources
  /// The answers of an agent, one for each word: throughout a command a word means the same mirror.
  private let asked = Locked<[[UInt8]: String?]>([:])

  init(_ sources: SettingsSources) { self.sources = sources }

  /// - Returns: `nil` for a word that is no name.
  func place(of word: String) -> (folder: String, state: String?)? {
    settingsPlace(of: word) ?? agentsFolder(of: word).map { ($0, nil) }
  }

  /// Returns the place of a mirror of the settings.
  func settingsPlace(of word: String) -> (folder: String, state: String?)? {
    sources.checked().settings?.mirror(word).map { ($0.folder, $0.state) }
  }

  private func agentsFolder(of word: String) -> String? {
    let bytes = Array(word.utf8)
    if let known = asked.withLock({ $0[bytes] }) { return known }
    let folder = askAgent(word)
    asked.withLock { _ = $0.updateValue(folder, forKey: bytes) }
    return folder
  }

  /// Asks the agent for the folder of a name. One that did not answer a moment ago is not asked again.
  private func askAgent(_ word: String) -> String? {
    guard !word.isEmpty, !AgentLink.wasSilent.withLock({ $0 }) else { return nil }
    let link = AgentLink(sources).asking(for: word, sources)
    let answer = try? link.tryAsking { try $0.status(mirrors: [word], problemLimit: 0) }
    guard let document = answer?.mirrors.first, document.name.utf8.elementsEqual(word.utf8) else {
      return nil
    }
    return document.folder
  }
}
