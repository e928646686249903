import Glibc
import TarnControl
import TarnCore
import TarnRuntime

extension Doctor {
  /// Checks the service of these settings: whether it exists, starts by itself, did not fail, and may write
  /// to the folders.
  ///
  /// - Parameter hasAgent: true when the agent of these settings answers.
  func units(_ patients: [Patient], hasAgent: Bool) -> [Finding] {
    guard let unit = UnitState.current(isSystem: isSystem) else { return [] }
    let confined = patients.filter { $0.settings != nil && unit.keepsOut($0.folder) }.map { patient in
      Finding(
        .problem, .unit, of: patient.name, "tarn.service may not write \(Printable.escape(patient.folder))",
        mend: UnitState.permit(patient.folder, isSystem: isSystem))
    }
    return unit.findings(isSystem: isSystem, hasAgent: hasAgent) + confined + lingering(unit)
  }

  /// Checks lingering: a user's service ends with the last session unless the user lingers.
  private func lingering(_ unit: UnitState) -> [Finding] {
    guard !isSystem, unit.isEnabled, let name = Self.userName else { return [] }
    if access("/var/lib/systemd/linger/\(name)", F_OK) == 0 {
      return [Finding(.ok, .lingering, "the agent goes on when nobody is logged in")]
    }
    return [
      Finding(
        .warning, .lingering, "the agent ends when you log out",
        mend: "sudo loginctl enable-linger \(ShellWord.quote(name))")
    ]
  }

  private static var userName: String? {
    getpwuid(geteuid()).map { String(cString: $0.pointee.pw_name) }
  }
}

/// The properties of a unit from `systemctl show`.
struct UnitState: Equatable {
  var load = ""
  var active = ""
  var file = ""
  var result = ""
  private var protects = ""
  private var protectsHome = ""
  private var writable: [String] = []

  /// The current state; `nil` without systemd, or when it does not answer.
  static func current(isSystem: Bool) -> UnitState? {
    guard access("/run/systemd/system", F_OK) == 0 else { return nil }
    let names =
      "LoadState,ActiveState,UnitFileState,Result,ProtectSystem,ProtectHome,ReadWritePaths,BindPaths"
    let said = ChildProgram.run(
      "systemctl", (isSystem ? [] : ["--user"]) + ["show", "tarn.service", "-p", names])
    guard let said, said.end == .status(0) else { return nil }
    return UnitState(said.text)
  }

  /// - Parameter text: the lines `NAME=VALUE`.
  init(_ text: String) {
    for line in text.split(separator: "\n") {
      guard let equals = line.firstIndex(of: "=") else { continue }
      let value = String(line[line.index(after: equals)...])
      switch line[..<equals] {
      case "LoadState": load = value
      case "ActiveState": active = value
      case "UnitFileState": file = value
      case "Result": result = value
      case "ProtectSystem": protects = value
      case "ProtectHome": protectsHome = value
      case "ReadWritePaths":
        writable += value.split(separator: " ").map { String($0.drop { "-+".contains($0) }) }
      case "BindPaths":
        // Each is SOURCE:DESTINATION:OPTIONS.
        writable += value.split(separator: " ").compactMap { word in
          word.split(separator: ":").dropFirst().first.map(String.init)
        }
      default: break
      }
    }
  }

  /// True when the unit's confinement hides the folder, or makes it read-only.
  func keepsOut(_ folder: String) -> Bool {
    guard load == "loaded" else { return false }
    func lies(below places: [String]) -> Bool {
      places.contains { folder == $0 || folder.hasPrefix($0 == "/" ? $0 : $0 + "/") }
    }
    // The unit may always write to its own state directory.
    guard !lies(below: writable + ["/var/lib/tarn"]) else { return false }
    if protectsHome != "", protectsHome != "no", lies(below: Self.hidden) { return true }
    return protects == "strict"
  }

  /// The steps that let the unit write to a folder.
  static func permit(_ folder: String, isSystem: Bool = true) -> String {
    let control = isSystem ? "sudo systemctl" : "systemctl --user"
    let isHidden = Self.hidden.contains { folder == $0 || folder.hasPrefix($0 + "/") }
    // The unit sees nothing of homes but what is bound there.
    let lines = isHidden ? "ProtectHome=tmpfs and BindPaths=\(folder)" : "ReadWritePaths=\(folder)"
    return "\(control) edit tarn: write [Service] and \(lines); then: \(control) restart tarn"
  }

  /// The directories that `ProtectHome=` hides (systemd.exec(5)).
  private static let hidden = ["/home", "/root", "/run/user"]

  var isEnabled: Bool { file.hasPrefix("enabled") }

  func findings(isSystem: Bool, hasAgent: Bool) -> [Finding] {
    let name = isSystem ? "tarn.service" : "the user's tarn.service"
    let control = isSystem ? "sudo systemctl" : "systemctl --user"
    let journal = isSystem ? "sudo journalctl -u tarn -e" : "journalctl --user -u tarn -e"
    if load != "loaded" {
      return [
        load == "masked"
          ? Finding(.problem, .unit, "\(name) is masked", mend: "\(control) unmask tarn")
          : Finding(.ok, .unit, "\(name) is not installed; an agent is started by hand")
      ]
    }
    if active == "failed" {
      return [
        Finding(
          .problem, .unit, "\(name) failed (\(result))",
          mend: "\(journal); then: \(control) restart tarn")
      ]
    }
    guard active == "active" || active == "activating" || active == "reloading" else {
      guard hasAgent else {
        return [Finding(.warning, .unit, "\(name) does not run", mend: "\(control) enable --now tarn")]
      }
      return [Finding(.ok, .unit, "\(name) does not run; the agent was started by hand")]
    }
    guard isEnabled else {
      return [
        Finding(
          .warning, .unit, "\(name) runs, but does not start when the machine boots",
          mend: "\(control) enable tarn")
      ]
    }
    return [Finding(.ok, .unit, "\(name) is enabled, and runs")]
  }
}
