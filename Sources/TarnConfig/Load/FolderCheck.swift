import TarnCore

/// Checks that no two mirrors work on the same files. Folders and records must not lie within one another,
/// with all links followed. Neither `/` nor the home directory may be a mirror.
struct FolderCheck {
  let merged: MergedSettings
  let home: String?
  let reading: any SettingsReading

  private struct Claim {
    var found: FoundSetting
    /// What claims the path: `the folder of 'podcasts'`.
    var what: String
    /// The path without links, as far as it exists.
    var path: String
  }

  func problems() -> [SettingsProblem] {
    var problems: [SettingsProblem] = []
    var claims: [Claim] = []
    // Mirrors with other errors are checked as well.
    for table in merged.mirrorTables {
      guard case .mirror(let mirror) = table else { continue }
      for name in ["folder", "state"] {
        guard let found = merged.effective(name, in: table), case .text(let path) = found.value else {
          continue
        }
        let real = resolved(path)
        if let refusal = refusal(found, name, [path, real]) {
          problems.append(refusal)
          continue
        }
        claims.append(
          Claim(found: found, what: "the \(name) of '\(Redaction.short(mirror))'", path: real))
      }
    }
    return problems + overlaps(claims)
  }

  private func refusal(_ found: FoundSetting, _ name: String, _ paths: [String]) -> SettingsProblem? {
    if paths.contains("/") {
      return found.problem(
        .folderRefused, "'\(name)' is the root of the file system", hint: "choose a directory of its own")
    }
    guard let home else { return nil }
    let homes = [home, resolved(home)].map { Array($0.utf8) }
    guard paths.contains(where: { homes.contains(Array($0.utf8)) }) else { return nil }
    return found.problem(
      .folderRefused, "'\(name)' is the home directory", hint: "choose a directory in it")
  }

  private func overlaps(_ claims: [Claim]) -> [SettingsProblem] {
    var problems: [SettingsProblem] = []
    let byPath = Dictionary(claims.indices.map { (Array(claims[$0].path.utf8), $0) }) { first, _ in first }
    for (index, claim) in claims.enumerated() where problems.count < DocumentWalk.mostProblems {
      let bytes = Array(claim.path.utf8)
      // The path itself, then every directory above it.
      let ends = [bytes.count] + bytes.indices.reversed().filter { $0 > 0 && bytes[$0] == UInt8(ascii: "/") }
      guard let other = ends.lazy.compactMap({ byPath[Array(bytes[..<$0])] }).first(where: { $0 != index })
      else { continue }
      let outer = claims[other]
      let isSame = outer.path.utf8.elementsEqual(bytes)
      problems.append(
        claim.found.problem(
          .folderOverlap,
          "\(claim.what) \(isSame ? "is" : "lies in") \(outer.what) (\(outer.found.origin.text))",
          hint: "give each a directory of its own, beside the other"))
    }
    return problems
  }

  /// Resolves the links in the existing part of a path; the rest stays as written.
  private func resolved(_ path: String) -> String {
    var front = path
    var rest = ""
    while front.utf8.count > 1 {
      if let real = reading.realPath(front) { return real == "/" && !rest.isEmpty ? rest : real + rest }
      let slash = front.utf8.lastIndex(of: UInt8(ascii: "/")) ?? front.startIndex
      rest = String(front[slash...]) + rest
      front = String(front[..<slash])
    }
    return rest.isEmpty ? "/" : rest
  }
}
