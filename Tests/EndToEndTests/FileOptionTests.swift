import Foundation
import Testing

/// Options that name a file: whatever stands there, Tarn neither waits for it nor swallows it whole.
@Suite(.serialized, .enabled(if: Tarn.obstacle == nil, "\(Tarn.obstacle ?? "")"))
struct FileOptionTests {
  static let options = ["--header-file", "--cookies", "--netrc-file", "--cacert"]
  private let place: TemporaryDirectory

  init() throws {
    place = try TemporaryDirectory()
    try Feeds.publish(["a.txt": "a\n"], in: place)
    try #require(mkfifo(place.path + "/fifo", 0o600) == 0)
  }

  private func sync(_ option: String, _ file: String) throws -> Outcome {
    try Tarn.run(["sync", option, file, "./SHA256SUMS", "m"], in: place.url)
  }

  @Test(arguments: options, ["fifo", "/dev/zero", "."])
  func onlyARegularFileIsTaken(option: String, file: String) throws {
    let outcome = try sync(option, file)
    #expect(outcome.status == 64 && !outcome.wasKilled, "\(outcome)")
    #expect(
      outcome.errors.contains("\(option.dropFirst(2)): '") && outcome.errors.contains("is not a regular file")
    )
    #expect(outcome.errors.contains("hint:"), "\(outcome)")
    #expect(!place.exists("m"))
  }

  @Test func aFIFOAsTheUsersNetrcIsNotWaitedFor() throws {
    try #require(mkfifo(place.path + "/.netrc", 0o600) == 0)
    let outcome = try Tarn.run(
      ["sync", "--netrc", "./SHA256SUMS", "m"], environment: ["HOME": place.path], in: place.url)
    #expect(outcome.status == 64 && outcome.errors.contains("netrc: '"), "\(outcome)")
  }

  @Test(arguments: options)
  func aFileOfAbsurdSizeIsRefused(option: String) throws {
    try place.write("", to: "huge")
    try #require(truncate(place.path + "/huge", 1 << 40) == 0)
    let outcome = try sync(option, "huge")
    #expect(outcome.status == 64 && outcome.errors.contains("is larger than"), "\(outcome)")
    #expect(!place.exists("m"))
  }

  @Test(arguments: options)
  func aFileThatIsNotThereIsNamed(option: String) throws {
    let outcome = try sync(option, "nowhere")
    #expect(outcome.status == 78, "\(outcome)")
    #expect(
      outcome.errors.contains("\(option.dropFirst(2)): '") && outcome.errors.contains("no such file"),
      "\(outcome)")
  }

  /// libcurl leaves out what it does not understand, beside cookies without harm.
  @Test(
    arguments: [
      (
        "# Netscape HTTP Cookie File\n\n#HttpOnly_h\tFALSE\t/\tTRUE\t0\tsid\t1\r\nh\tTRUE\t/\tFALSE\t0\tempty\n",
        nil
      ),
      ("odd\nh\tTRUE\t/\tFALSE\t0\tsid\t1\n", nil), ("Set-Cookie: sid=1; path=/\n", nil), ("", nil),
      ("Cookie: sid=1\n", 1),
      ("# Netscape HTTP Cookie File\nh FALSE / FALSE 0 sid 1\n", 2), ("<html>\n", 1),
    ] as [(String, Int?)])
  func onlyAFileOfCookiesIsTaken(text: String, line: Int?) throws {
    try place.write(text, to: "cookies")
    chmod(place.path + "/cookies", 0o600)
    let outcome = try sync("--cookies", place.path + "/cookies")
    guard let line else {
      #expect(outcome.status == 0, "\(outcome)")
      return
    }
    #expect(
      outcome.status == 78 && outcome.errors.contains("/cookies:\(line): this line is not one of a Netscape"),
      "\(outcome)")
    #expect(!outcome.errors.contains("sid"))
  }

  /// Cookies and passwords in a file that everybody reads: said once a pass, with what to type.
  @Test(arguments: ["--header-file", "--cookies", "--netrc-file", "--cacert"])
  func aSecretThatOthersCanReadIsToldOnce(option: String) throws {
    try place.write("# nothing\n", to: "secret's")
    let file = place.path + "/secret's"
    chmod(file, 0o640)
    for command in ["sync", "plan"] {
      let outcome = try Tarn.run([command, option, file, "./SHA256SUMS", "m"], in: place.url)
      #expect(outcome.status == 0, "\(outcome)")
      let count = outcome.errors.components(separatedBy: "chmod 600 '\(place.path)/secret'\\''s'").count - 1
      #expect(count == (option == "--cacert" ? 0 : 1), "\(outcome)")
    }
    chmod(file, 0o600)
    let outcome = try Tarn.run(["sync", option, file, "m"], in: place.url)
    #expect(outcome.status == 0 && !outcome.errors.contains("chmod"), "\(outcome)")
  }

  /// A list of mirrors is a hint: one that cannot be read is as good as none.
  @Test func aFIFOAsTheListOfMirrorsIsNotWaitedFor() throws {
    try FileManager.default.createDirectory(
      atPath: place.path + "/state/tarn", withIntermediateDirectories: true)
    try #require(mkfifo(place.path + "/state/tarn/mirrors", 0o600) == 0)
    let outcome = try Tarn.run(
      ["status"], environment: ["XDG_STATE_HOME": place.path + "/state"], in: place.url)
    #expect(!outcome.wasKilled, "\(outcome)")
  }
}
