import TarnCore

/// Checks that each secret is where its setting says, and hidden from other users. Of the readable ones only
/// header files are read; a problem tells no more of them than the number of the malformed line.
struct SecretCheck {
  let merged: MergedSettings
  let paths: SettingsPaths
  let isRunning: Bool
  let reading: any SettingsReading

  func problems() -> [SettingsProblem] {
    merged.effective(in: [.agent] + merged.hookTables + merged.mirrorTables).compactMap { found in
      guard case .secret(let place) = found.value else { return nil }
      return problem(found, place)
    }
  }

  private func problem(_ found: FoundSetting, _ place: SecretPlace) -> SettingsProblem? {
    let severity: SettingsProblem.Severity = isRunning ? .error : .warning
    let name = found.setting.name
    guard let path = place.path(credentials: paths.credentials) else {
      return found.problem(
        .secretMissing, severity: severity,
        "'\(name)' is a credential, and there is no $CREDENTIALS_DIRECTORY\(isRunning ? "" : " here")",
        hint: isRunning
          ? "run Tarn as a service with LoadCredential=, or use { file = \"/path\" }"
          : "systemd sets it for the service: nothing to mend if the unit has LoadCredential=")
    }
    let shown = Printable.escape(path)
    let attributes: SettingsFileAttributes
    do throws(SettingsReadFailure) {
      attributes = try reading.attributes(path)
    } catch .denied {
      return denied(found, shown, severity)
    } catch {
      return found.problem(
        .secretMissing, "the file of '\(name)' cannot be read: \(shown): \(Printable.escape(error.text))",
        hint: credentialName(place).map { "add LoadCredential=\($0):/path to the unit" }
          ?? "write the file, then chmod 600 it")
    }
    guard attributes.isRegular else {
      return found.problem(
        .secretNotReadable, "the file of '\(name)' is not a regular file: \(shown)", hint: "put a file there")
    }
    // systemd guards the files of the credentials directory.
    if case .file = place, SecretPlace.isExposed(mode: attributes.mode) {
      return found.problem(
        .secretExposed,
        "the file of '\(name)' is open to others: \(shown) has mode \(String(attributes.mode, radix: 8))",
        hint: "chmod 600 \(shown)")
    }
    guard attributes.isReadable else { return denied(found, shown, severity) }
    // A jar of cookies may begin empty.
    if attributes.isEmpty, name != PassOptions.Name.cookies.rawValue {
      return found.problem(
        .badValue, severity: .warning, "the file of '\(name)' is empty: \(shown)",
        hint: "write the secret into it, or leave '\(name)' out")
    }
    return name == PassOptions.Name.headerFile.rawValue ? malformed(found, path, shown) : nil
  }

  /// A malformed header file fails only the passes of this mirror, so it does not stop the agent.
  private func malformed(_ found: FoundSetting, _ path: String, _ shown: String) -> SettingsProblem? {
    let bytes: [UInt8]
    do throws(SettingsReadFailure) {
      bytes = try reading.read(path, limit: HeaderLines.limit)
    } catch .tooLong {
      return found.problem(
        .badValue, severity: isRunning ? .warning : .error,
        "the file of '\(found.setting.name)' has more than \(Units.show(UInt64(HeaderLines.limit))): \(shown)",
        hint: "every request sends all of it: name the file that holds only the headers")
    } catch {
      // The pass reports a file that cannot be read after all.
      return nil
    }
    do throws(HeaderLines.Malformed) {
      _ = try HeaderLines(String(decoding: bytes, as: UTF8.self))
      return nil
    } catch {
      return found.problem(
        .badValue, severity: isRunning ? .warning : .error,
        "line \(error.line) of the file of '\(found.setting.name)' is not a header: \(shown)",
        hint: "write each as 'Name: value' on a line of its own")
    }
  }

  private func credentialName(_ place: SecretPlace) -> String? {
    if case .credential(let name) = place { name } else { nil }
  }

  private func denied(
    _ found: FoundSetting, _ path: String, _ severity: SettingsProblem.Severity
  ) -> SettingsProblem {
    found.problem(
      .secretNotReadable, severity: severity,
      "the file of '\(found.setting.name)' cannot be read by this user: \(path)",
      hint: isRunning
        ? "chown it to the user that Tarn runs as"
        : "only the user that Tarn runs as has to; root can look: sudo \(paths.command("config check"))")
  }
}
