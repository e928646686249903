import TarnCore
import Testing

/// A path that is known to be taken.
func path(_ text: String) -> RelativePath { RelativePath(trusted: Array(text.utf8)) }

/// A digest that stands for contents of that name.
func digest(_ contents: String, _ algorithm: DigestAlgorithm = .sha256) -> Digest {
  let seed = Array("\(contents)/\(algorithm.name)/".utf8)
  return Digest(
    algorithm, bytes: (0..<algorithm.length).map { seed[$0 % seed.count] &+ UInt8($0 / seed.count) })!
}

func moment(_ seconds: Int64) -> Timestamp { Timestamp(seconds: seconds)! }

func identity(
  inode: UInt64 = 7, size: UInt64 = 100, modified: Int64 = 1000, changed: Int64 = 2000
) -> FileIdentity {
  FileIdentity(
    device: 1, inode: inode, size: size, modified: moment(modified), changed: moment(changed))
}

func row(
  _ at: String, _ contents: String = "W", identity stat: FileIdentity = identity(), fingerprint: [UInt8] = [],
  isVerified: Bool = true
) -> Row {
  Row(
    path: path(at), identity: stat, digest: digest(contents), isVerified: isVerified,
    fingerprint: fingerprint,
    placed: moment(0))
}

func entry(
  _ at: String, _ contents: String? = "W", size: UInt64? = nil, modified: Timestamp? = nil,
  sources: [Source] = [Source(url: "http://a/x")], listing: [UInt8] = []
) -> Entry {
  Entry(
    path: path(at), size: size, modified: modified, digests: contents.map { [digest($0)] } ?? [],
    sources: sources, listing: listing)
}

extension Decision {
  /// In one word or two, for tables.
  var word: String {
    switch self {
    case .action(let action): action.kind.rawValue
    case .current: "current"
    case .adopt(_, let isVerified): isVerified ? "adopt" : "adopt-unverified"
    case .conflict(let code, _): "conflict \(code)"
    case .kept(let code, _): "kept \(code)"
    case .unlisted: "unlisted"
    }
  }
}
