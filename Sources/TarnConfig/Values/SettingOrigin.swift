import TarnCore

/// Where a value came from.
package enum SettingOrigin: Sendable, Equatable {
  case file(String, SettingPosition)
  /// The name of a variable, without `$`.
  case environment(String)
  /// With its dashes.
  case flag(String)
  /// Given to `tarn sync` once, and remembered by the mirror.
  case remembered
  /// Nobody set it.
  case standard

  /// `/etc/tarn/tarn.toml:3:8`, `$TARN_SOCKET`, `--socket`, `remembered` or `standard`; safe to print.
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
