import Glibc
import TarnCore

@testable import TarnFeeds

/// A driver of libFuzzer for one format of feeds: `TARN_FUZZ_FORMAT=metalink-4 tarn-fuzz -runs=1000 CORPUS`.
///
/// The format is read whatever the document looks like; `document` stands for the whole way of a document,
/// through gzip and the recognition, and `settings` for a file of settings. Built and run by `Tests/Tools/fuzz.sh` only.
@main
enum Fuzz {
  static func main() {
    let wanted = getenv("TARN_FUZZ_FORMAT").map { String(cString: $0) } ?? ""
    guard others.contains(wanted) || formats.contains(where: { $0.slug == wanted }) else {
      print((others + formats.map(\.slug)).joined(separator: "\n"))
      exit(wanted.isEmpty ? 0 : 64)
    }
    var count = CommandLine.argc
    var arguments = CommandLine.unsafeArgv
    exit(
      runFuzzer(&count, &arguments) { bytes, count in
        Fuzz.take(Array(UnsafeBufferPointer(start: bytes, count: count)))
        return 0
      })
  }

  private static let others = ["document", "settings"]

  private static let isSettings = getenv("TARN_FUZZ_FORMAT").map { String(cString: $0) } == "settings"

  private static let formats = FeedParser.formats + FeedParser.formats(of: .links)

  private static let format = formats.first {
    $0.slug == getenv("TARN_FUZZ_FORMAT").map { String(cString: $0) }
  }

  private static func take(_ bytes: [UInt8]) {
    if isSettings {
      let faults = SettingsOutcome(bytes).faults
      guard faults.isEmpty else { fail(faults.joined(separator: "; ")) }
      return
    }
    let whole = read(bytes, step: 1 << 20)
    let faults = whole.faults
    guard faults.isEmpty else { fail(faults.joined(separator: "; ")) }
    // In blocks as well, for some inputs: it takes as long again.
    let sum = bytes.reduce(UInt32(2_166_136_261)) { ($0 ^ UInt32($1)) &* 16_777_619 }
    guard sum % 8 == 0 else { return }
    let step = [1, 2, 3, 7][Int(sum / 8 % 4)]
    let stepped = read(bytes, step: step)
    guard whole == stepped else {
      fail("blocks of \(step) bytes give something else: \(whole) and \(stepped)")
    }
  }

  private static func fail(_ message: String) -> Never {
    let line = Array("Fatal error: \(message)\n".utf8)
    write(STDERR_FILENO, line, line.count)
    abort()
  }

  private static func read(_ bytes: [UInt8], step: Int) -> Outcome {
    Outcome.of(
      bytes, as: format, FeedDocument(url: "https://example.org/pub/list"), hashing: ConstantHashing(),
      step: step)
  }
}

/// libFuzzer's own entry point (FuzzerInterface.h), in C: pointers only, which Swift passes alike.
@_silgen_name("LLVMFuzzerRunDriver")
private func runFuzzer(
  _ count: UnsafeMutablePointer<Int32>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ take: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
) -> Int32

/// Every digest is zeros, so that a fuzzer can write the right one.
private struct ConstantHashing: Hashing {
  func hasher(_ algorithm: DigestAlgorithm) -> any Hasher { Constant(algorithm: algorithm) }

  private final class Constant: Hasher {
    let algorithm: DigestAlgorithm
    init(algorithm: DigestAlgorithm) { self.algorithm = algorithm }
    func update(_ bytes: UnsafeRawBufferPointer) {}
    func finish() -> Digest { Digest(algorithm, padding: []) }
  }
}
