import Glibc
import TarnConfig
import TarnCore
import TarnRuntime

extension Doctor {
  /// Tells whether the agent can watch the folders, as far as it says, and as far as the kernel's limits for
  /// this user allow.
  func watches(_ patients: [Patient], _ documents: [StatusDocument]) -> [Finding] {
    let watched = patients.filter { $0.settings?.watches == true }
    guard !watched.isEmpty else { return [] }
    let blind = Self.blind(documents)
    guard blind.isEmpty else { return blind }
    guard let watches = KernelLimit("watches"), let instances = KernelLimit("instances") else { return [] }
    var counter = DirectoryCounter(most: max(watches.most, 1) + 1)
    for patient in watched { counter.count(patient.folder) }
    let counted =
      (counter.isComplete ? "" : "at least ") + Numbers.count(counter.directories, "directory")
    let most = Numbers.grouped(watches.most)
    if counter.directories > watches.most {
      return [
        Finding(
          .problem, .watches, "the folders have \(counted), and the kernel lets one user watch \(most)",
          mend: watches.mend(max(524_288, counter.directories * 2)))
      ]
    }
    if instances.most < watched.count + 8 {
      return [
        Finding(
          .warning, .watches,
          "the kernel lets one user have \(instances.most) inotify instances, one for each mirror",
          mend: instances.mend(512))
      ]
    }
    if counter.directories * 2 > watches.most {
      return [
        Finding(
          .warning, .watches, "the folders have \(counted), and the kernel lets one user watch \(most)",
          mend: watches.mend(524_288))
      ]
    }
    return [Finding(.ok, .watches, "\(counted), of \(most) that one user may watch")]
  }

  /// Returns why mirrors are not watched, each reason once.
  static func blind(_ documents: [StatusDocument]) -> [Finding] {
    var seen: Set<String> = []
    return documents.compactMap { document in
      let reason = document.watch.reason
      // Only a reason that begins with a code is one; an overflow passes by itself.
      guard document.watch.mode == "polling",
        let code = WatchBlindness.Code(rawValue: String(reason.prefix { $0 != ":" })), code != .overflow,
        seen.insert(reason).inserted
      else { return nil }
      let mend: String? =
        switch code {
        case .watchLimit: KernelLimit("watches")?.mend(1_048_576)
        case .instanceLimit: KernelLimit("instances")?.mend(512)
        case .watcherMissing: "put tarn-watch beside tarn, or install the package"
        default: nil
        }
      return Finding(
        code == .unsupported ? .warning : .problem, .watches, of: Printable.escape(document.name),
        "not watched: \(reason)", mend: mend ?? "tarn status \(ShellWord.quote(document.name))")
    }
  }
}

/// A limit of inotify for one user. A user namespace may set a lower one.
struct KernelLimit {
  let name: String
  let most: Int

  /// - Parameter what: `watches` or `instances`.
  init?(_ what: String) {
    let places = ["user.max_inotify_\(what)", "fs.inotify.max_user_\(what)"]
    let found = places.compactMap { name in Self.value(of: name).map { (name: name, most: $0) } }
    // Of two equal ones the latter is the one that everybody knows.
    guard let least = found.reversed().min(by: { $0.most < $1.most }) else { return nil }
    (name, most) = least
  }

  /// The command that sets it.
  func mend(_ value: Int) -> String {
    "echo \(name)=\(value) | sudo tee /etc/sysctl.d/60-tarn.conf && sudo sysctl --system"
  }

  private static func value(of name: String) -> Int? {
    TextFile.read("/proc/sys/" + name.replacing(".", with: "/"), limit: 64).flatMap {
      Int($0.prefix { $0.isNumber })
    }
  }
}

/// Counts directories, up to a limit.
struct DirectoryCounter {
  let most: Int
  private(set) var directories = 0
  /// False when the count ended before it had read everything.
  private(set) var isComplete = true
  /// The objects that were read. The count ends at `mostObjects`, so that nobody waits too long.
  private var objects = 0
  private static let mostObjects = 2_000_000

  init(most: Int) { self.most = most }

  mutating func count(_ path: String) {
    guard isComplete, let stream = opendir(path) else { return }
    directories += 1
    var below: [String] = []
    while let entry = readdir(stream) {
      objects += 1
      guard entry.pointee.d_type == UInt8(DT_DIR) else { continue }
      let name = withUnsafeBytes(of: entry.pointee.d_name) {
        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { below.append("\(path)/\(name)") }
    }
    closedir(stream)
    isComplete = directories < most && objects < Self.mostObjects
    for path in below { count(path) }
  }
}
