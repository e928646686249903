import TarnCore

/// The origin of a value.
package enum SettingOrigin: Sendable, Equatable {
  case file(String, SettingPosition)
  /// The name of a variable, without `$`.
  case environment(String)
  /// The name of a flag, with its dashes.
  case flag(String)
  /// An option that `tarn sync` was given once and the mirror remembers.
  case remembered
  /// The standard value, which nobody set.
  case standard

  /// The origin as text: `/etc/tarn/tarn.toml:3:8`, `$TARN_SOCKET`, `--socket`, `remembered` or `standard`;
  /// safe to print.
  package var text: String {
    switch self {
    case .file(let path, let position): "\(Printable.escape(path)):\(position.line):\(position.column)"
    case .environment(let name): "$\(name)"
    case .flag(let name): name
    case .remembered: "remembered"
    case .standard: "standard"
    }
  }
}
