import Glibc
import TarnAgent
import TarnConfig
import TarnControl
import TarnCore
import TarnEngine
import TarnRuntime

/// Examines this machine, the settings and each mirror. Changes nothing; asks a server only for the head of
/// one answer.
struct Doctor {
  /// A mirror of the settings, or one made by hand.
  struct Patient {
    var name: String
    var folder: String
    var state: String?
    /// The settings; `nil` for a mirror made by hand.
    var settings: MirrorSettings?
  }

  let session: Session
  /// True when servers are asked.
  var asksServers = true

  var isSystem: Bool { session.sources.paths.instance == .system }

  func findings() -> [Finding] {
    let (status, isOwn) = agentStatus()
    let patients = patients()
    let paths = session.sources.paths
    let socket = session.sources.checked().settings.map(\.agent.socket) ?? paths.socket
    var findings = Self.places(paths, socket: socket) + settings(patients)
    findings += agent(status, isOwn: isOwn, patients)
    findings += units(patients, hasAgent: isOwn && status?.agent != nil)
    findings += [clock(), proxy()].compactMap { $0 }
    let documents = status?.mirrors ?? []
    findings += watches(patients, documents) + Self.hooks(status?.agent?.hooks ?? [])
    for patient in patients { findings += mirror(patient, documents) }
    if asksServers { findings += feeds(patients) }
    return findings
  }

  private func patients() -> [Patient] {
    let tarn = session.tarn
    let configured = session.sources.checked().settings?.mirrors ?? []
    var patients = configured.map {
      Patient(name: $0.name, folder: $0.folder, state: $0.state, settings: $0)
    }
    for folder in tarn.knownFolders() where !patients.contains(where: { tarn.isSamePlace($0.folder, folder) })
    {
      patients.append(Patient(name: folder, folder: folder))
    }
    return patients
  }

  // MARK: Settings and agent

  /// Tells for what the environment names no place.
  static func places(_ paths: SettingsPaths, socket: String?) -> [Finding] {
    let home = "set $HOME, to your home directory"
    var findings: [Finding] = []
    if paths.place == nil {
      findings.append(
        Finding(
          .problem, .settings, "there is no place for settings: neither $HOME nor $XDG_CONFIG_HOME is set",
          mend: home))
    }
    if paths.state == nil {
      findings.append(
        Finding(
          .problem, .agent, "there is no place for its record: neither $HOME nor $XDG_STATE_HOME is set",
          mend: home))
    }
    if socket == nil {
      findings.append(
        Finding(
          .warning, .agent, "there is no place for its socket: $XDG_RUNTIME_DIR is not set",
          mend: "log in as this user; for a service: loginctl enable-linger"))
    }
    return findings
  }

  private func settings(_ patients: [Patient]) -> [Finding] {
    let report = SettingsReport(session)
    let check = session.sources.paths.command("config check")
    var findings = report.loaded.problems.map { problem in
      Finding(
        problem.severity == .error ? .problem : .warning, .settings,
        "\(problem.origin.text): \(problem.message)", mend: check)
    }
    if let settings = report.loaded.settings {
      if patients.isEmpty {
        guard session.sources.paths.place != nil else { return findings }
        findings.append(
          Finding(.warning, .settings, "there is no mirror", mend: "tarn add FEED FOLDER"))
      } else if findings.isEmpty {
        let files = report.files.joined(separator: ", ")
        findings.append(
          Finding(
            .ok, .settings,
            files.isEmpty
              ? "no file of settings; mirrors made by hand"
              : "\(Numbers.count(settings.mirrors.count, "mirror")) in \(files)"))
      }
      let idle = settings.mirrors.filter { $0.rhythm == .command }.map(\.name)
      if !idle.isEmpty {
        findings.append(
          Finding(
            .warning, .settings,
            "only on command, without every or schedule: \(idle.joined(separator: ", "))",
            mend: "write every = \"1h\" below \(TOMLText.mirror(idle[0])); then: tarn reload"))
      }
    }
    return findings
  }

  /// - Returns: the answer of an agent, and whether it is that of these settings. An agent of other settings may have their socket.
  private func agentStatus() -> (status: StatusAnswer?, isOwn: Bool) {
    guard !session.sources.checked().places.isEmpty,
      let answer = try? AgentLink(session.sources).anyStatus(problemLimit: 1)
    else { return (nil, true) }
    // The status that everyone may read does not name the agent's settings.
    let isOther = answer.answer.agent?.settingsCheck.map {
      $0 != session.sources.paths.command("config check")
    }
    return (answer.answer, answer.isOwn && isOther != true)
  }

  private func agent(_ status: StatusAnswer?, isOwn: Bool, _ patients: [Patient]) -> [Finding] {
    guard !session.sources.checked().places.isEmpty else { return [] }
    if !isOwn, let agent = status?.agent {
      let whose = isSystem || agent.settingsCheck != nil ? "another" : "the system's"
      let other = "process \(agent.process), which answers, is \(whose) agent"
      guard patients.contains(where: { $0.settings != nil }) else {
        return [Finding(.ok, .agent, "\(other); these settings name no mirror for one")]
      }
      return [
        Finding(
          .warning, .agent, "the agent of these settings does not run; \(other), and follows none of them",
          mend: SettingsChange.start(session.sources.paths))
      ]
    }
    guard let status, let agent = status.agent else {
      let start = SettingsChange.start(session.sources.paths)
      return [
        AgentLink.wasSilent.withLock { $0 }
          ? Finding(
            .problem, .agent, "it does not answer",
            mend: "\(session.sources.paths.command("status")); its log may say more")
          : Finding(.warning, .agent, "none runs, so no mirror is kept current on schedule", mend: start)
      ]
    }
    let troubles = (agent.troubles ?? []).map { Finding(.problem, .agent, $0.message, mend: $0.hint) }
    guard troubles.isEmpty else { return troubles }
    guard agent.rejected.isEmpty else {
      return [
        Finding(
          .problem, .agent,
          "newer settings were rejected, and the old ones stay in force: \(AgentText.firstError(of: agent))",
          mend: AgentText.check(of: agent, session))
      ]
    }
    if !agent.needRestart.isEmpty {
      return [
        Finding(
          .warning, .agent, "a restart takes up \(agent.needRestart.joined(separator: ", "))",
          mend: isSystem ? "sudo systemctl restart tarn" : "systemctl --user restart tarn")
      ]
    }
    guard agent.version == Tarn.version else {
      return [
        Finding(
          .warning, .agent,
          "it runs Tarn \(Printable.escape(agent.version)), and \(Tarn.version) is installed",
          mend: isSystem ? "sudo systemctl restart tarn" : "systemctl --user restart tarn")
      ]
    }
    return [
      Finding(
        .ok, .agent, "process \(agent.process) answers, with \(Numbers.count(status.mirrors.count, "mirror"))"
      )
    ]
  }

  // MARK: The machine

  private func clock() -> Finding? {
    // An earlier time means that the clock was never set; then every certificate seems to lie in the future.
    guard session.now.seconds > 1_735_689_600 else {
      return Finding(
        .problem, .clock, "this machine's clock says \(session.now.rfc3339)",
        mend: "sudo timedatectl set-ntp true")
    }
    guard access("/run/systemd/system", F_OK) == 0,
      let said = ChildProgram.run("timedatectl", ["show", "-p", "NTPSynchronized", "--value"]),
      said.end == .status(0)
    else { return Finding(.ok, .clock, session.now.rfc3339) }
    guard said.text.hasPrefix("yes") else {
      return Finding(
        .warning, .clock, "nothing synchronises this machine's clock with the network",
        mend: "sudo timedatectl set-ntp true, which needs a package such as systemd-timesyncd")
    }
    return Finding(.ok, .clock, "\(session.now.rfc3339), set by the network")
  }

  private func proxy() -> Finding? {
    let names = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    let set = names.compactMap { name in
      environment(name).flatMap { $0.isEmpty ? nil : (name: name, url: $0) }
    }
    guard let first = set.first else { return nil }
    let url = Redaction.value(first.url)
    return Finding(
      .warning, .proxy, "$\(first.name) is \(url), and Tarn does not read it",
      mend: "write proxy = \"URL\" below [mirror.NAME] of the settings, or give --proxy URL")
  }

  /// - Parameter hooks: those of the agent. It tells them to its own user only.
  static func hooks(_ hooks: [HookStatus]) -> [Finding] {
    guard !hooks.isEmpty else { return [] }
    let found = hooks.compactMap { hook in
      AgentText.trouble(hook).map {
        // What was lost before does not come back, and the hook works.
        Finding(
          hook.state == "failing" ? .problem : .warning, .hooks, $0,
          mend: "look at \(TOMLText.hook(hook.name)) of the settings: man 7 tarn-hooks")
      }
    }
    return found.isEmpty ? [Finding(.ok, .hooks, Numbers.count(hooks.count, "hook"))] : found
  }
}
