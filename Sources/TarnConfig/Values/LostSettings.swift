extension LoadedSettings {
  /// Returns the files and directories that were read before and have disappeared. An editor, a package
  /// manager or a mount hides a file for a moment, which would end every mirror in it. A file of `conf.d` was
  /// removed on purpose as long as that directory exists.
  func lost(since old: LoadedSettings) -> [SettingsProblem] {
    let read = old.files.filter { $0.state == .read }.map(\.path)
    let missing = Set(files.filter { $0.state == .missing }.map(\.path))
    let files = read.filter { path in
      missing.contains(path) && !old.directories.contains { path.hasPrefix($0 + "/") }
    }.map { path in
      SettingsProblem.lost(
        path, "this file", "put it back; to drop its settings, put an empty file there")
    }
    let directories = old.directories.filter { directory in
      !self.directories.contains(directory) && read.contains { $0.hasPrefix(directory + "/") }
    }.map { path in
      SettingsProblem.lost(
        path, "this directory", "put it back; to drop its settings, make an empty one")
    }
    // A missing file of `--config` and denied access are reported already.
    return (files + directories).filter { lost in !problems.contains { $0.origin == lost.origin } }
  }
}

extension SettingsProblem {
  fileprivate static func lost(_ path: String, _ what: String, _ hint: String) -> SettingsProblem {
    SettingsProblem(
      code: .fileMissing, origin: .file(path, SettingPosition(line: 1, column: 1)),
      message: "\(what) was read before, and is not there any more", hint: hint)
  }
}
