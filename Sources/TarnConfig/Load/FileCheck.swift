import TarnCore

/// Checks the files other than secrets that settings name.
struct FileCheck {
  let merged: MergedSettings
  let paths: SettingsPaths
  let isRunning: Bool
  let reading: any SettingsReading

  func problems() -> [SettingsProblem] {
    let authorities = merged.mirrorTables.compactMap { merged.effective("cacert", in: $0) }
    return authorities.compactMap(authorities(_:))
      + (merged.effective("socket", in: .agent).flatMap(socket) ?? [])
  }

  private func authorities(_ found: FoundSetting) -> SettingsProblem? {
    guard case .text(let path) = found.value else { return nil }
    let shown = Printable.escape(path)
    let message = "the file of 'cacert' cannot be read: \(shown)"
    let hint = "choose a file of certificates (PEM), such as /etc/ssl/certs/ca-certificates.crt"
    var isDenied = false
    do throws(SettingsReadFailure) {
      let attributes = try reading.attributes(path)
      guard attributes.isRegular else {
        return found.problem(.cacertNotReadable, "\(message): it is not a regular file", hint: hint)
      }
      isDenied = !attributes.isReadable
    } catch {
      guard error == .denied else {
        return found.problem(.cacertNotReadable, "\(message): \(Printable.escape(error.text))", hint: hint)
      }
      isDenied = true
    }
    guard isDenied else { return nil }
    return found.problem(
      .cacertNotReadable, severity: isRunning ? .error : .warning, "\(message): permission denied",
      hint: isRunning
        ? "chmod a+r \(ShellWord.quote(path)), and let this user enter the directories above"
        : "only the user that Tarn runs as has to; root can look: sudo \(paths.command("config check"))")
  }

  private func socket(_ found: FoundSetting) -> [SettingsProblem]? {
    guard case .text(let path) = found.value else { return nil }
    let isDirectory = path == "/" || (try? reading.attributes(path))?.isDirectory == true
    guard isDirectory else { return nil }
    let example = path == "/" ? "/run/tarn/tarn.sock" : "\(path)/tarn.sock"
    return [
      found.problem(
        .badValue, "'socket' takes the path of a socket, but \(Printable.escape(path)) is a directory",
        hint: "write for example socket = \(TOMLText.quote(example))")
    ]
  }
}
