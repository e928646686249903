import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

extension Doctor {
  /// Asks one feed of each server: whether its host resolves, its certificate is trusted, and what it
  /// answers.
  func feeds(_ patients: [Patient]) -> [Finding] {
    var seen: Set<String> = []
    var findings: [Finding] = []
    for patient in patients where Interruption.shared.received == nil {
      guard let request = request(patient), let feed = request.feed else { continue }
      guard feed.contains("://"), !feed.hasPrefix("file:") else {
        findings += file(patient, feed)
        continue
      }
      if let secret = request.missingSecrets.first {
        // Only a service has the credentials that systemd loads.
        findings.append(
          Finding(
            .ok, .feed, of: patient.name,
            "not asked: its \(secret.rawValue) is a credential, which only the service can read"))
        continue
      }
      let origin = Self.origin(feed)
      guard seen.insert(origin + (request.options.last(.proxy) ?? "")).inserted else { continue }
      findings += ask(patient, request, origin)
    }
    return findings
  }

  private func request(_ patient: Patient) -> SyncRequest? {
    if let settings = patient.settings {
      return SyncRequest(settings, credentials: session.sources.paths.credentials)
    }
    guard let known = try? session.tarn.remembered(folder: patient.folder), let feed = known.feed else {
      return nil
    }
    var request = SyncRequest(feed: feed, folder: patient.folder)
    request.options = known.options
    return request
  }

  /// Returns the scheme, host and port of a URL: `https://example.org:8443`.
  static func origin(_ url: String) -> String {
    guard let mark = url.firstRange(of: "://") else { return url }
    let authority = url[mark.upperBound...].prefix { !"/?#".contains($0) }
    return String(url[..<mark.upperBound]) + String(authority)
  }

  private func file(_ patient: Patient, _ feed: String) -> [Finding] {
    guard feed != "-" else { return [] }
    guard let path = session.tarn.localFeed(feed), TextFile.status(path) == nil else { return [] }
    return [
      Finding(
        .problem, .feed, of: patient.name, "its feed \(Printable.escape(path)) is not there",
        mend: "ls -l \(ShellWord.quote(path))")
    ]
  }

  private func ask(_ patient: Patient, _ request: SyncRequest, _ origin: String) -> [Finding] {
    do throws(PassFailure) {
      guard let outcome = try session.tarn.probe(request) else { return [] }
      switch outcome {
      case .complete(let head): return answered(head, patient, origin)
      case .failed(let failure): return [refused(failure, patient, origin)]
      }
    } catch {
      return [Finding(.problem, .feed, of: patient.name, error.message, mend: error.hint)]
    }
  }

  private func answered(_ head: ResponseHead, _ patient: Patient, _ origin: String) -> [Finding] {
    var findings: [Finding] = []
    if let sent = head.sent {
      let ahead = session.now.seconds - sent.seconds
      // The answer of a cache may be older, never younger.
      if ahead < -300 || ahead > 86_400 {
        findings.append(
          Finding(
            .problem, .clock,
            "this machine's clock is \(Durations.span(abs(ahead))) \(ahead > 0 ? "ahead of" : "behind") that of \(origin)",
            mend: "sudo timedatectl set-ntp true"))
      }
    }
    let isFine = (200..<300).contains(head.status) || head.status == 304
    let name = ShellWord.quote(patient.settings?.name ?? patient.folder)
    switch head.status {
    case 401, 403, 407:
      findings.append(
        Finding(
          .problem, .feed, of: patient.name,
          "\(origin) asks for a password, or rejects it (\(head.status))",
          mend: rejected(patient, name)))
    default:
      findings.append(
        isFine
          ? Finding(.ok, .feed, of: patient.name, "\(origin) answers")
          : Finding(
            .problem, .feed, of: patient.name, "\(origin) answers with status \(head.status)",
            mend: session.sources.paths.command("plan \(name)")))
    }
    return findings
  }

  /// What mends an answer that asks for a password: the settings may give one already.
  private func rejected(_ patient: Patient, _ name: String) -> String {
    let options = patient.settings?.options
    let given = [PassOptions.Name.netrcFile, .headerFile].first { options?.last($0) != nil }
    let look = session.sources.paths.command("config show \(name)")
    guard let given else { return "\(look); set netrc-file or header-file" }
    return "correct the file that \(given.rawValue) names: \(look)"
  }

  private func refused(_ failure: DownloadFailure, _ patient: Patient, _ origin: String) -> Finding {
    let authority = origin.firstRange(of: "://").map { String(origin[$0.upperBound...]) } ?? origin
    let host = Self.host(of: authority)
    let word = ShellWord.quote(host)
    switch failure.code {
    case .resolve:
      return Finding(.problem, .dns, of: patient.name, failure.message, mend: "getent ahosts \(word)")
    case .tls:
      let port = authority.contains(":") && !authority.hasSuffix("]") ? authority : "\(authority):443"
      return Finding(
        .problem, .tls, of: patient.name, failure.message,
        mend:
          "openssl s_client -brief -connect \(ShellWord.quote(port)) -servername \(word) </dev/null; or set cacert"
      )
    case .connect where failure.message.contains("proxy"):
      return Finding(
        .problem, .proxy, of: patient.name, failure.message,
        mend:
          "tarn config show \(ShellWord.quote(patient.settings?.name ?? patient.folder)); env | grep -i proxy"
      )
    default:
      return Finding(
        .problem, .feed, of: patient.name, failure.message, mend: "curl -sSI \(ShellWord.quote(origin))/")
    }
  }

  /// Returns the host without its port.
  static func host(of authority: String) -> String {
    if authority.hasPrefix("[") { return String(authority.dropFirst().prefix { $0 != "]" }) }
    return String(authority.prefix { $0 != ":" })
  }
}
