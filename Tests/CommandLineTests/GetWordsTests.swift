import ArgumentParser
import Foundation
import TarnCore
import Testing

@testable import tarn

/// The words of `tarn get` and `tarn session`, and the files that they name, without a network.
@Suite struct GetWordsTests {
  private let place: LocalPlace
  private static let url = "http://127.0.0.1:9/a"

  init() throws { place = try LocalPlace() }

  /// - Parameter text: stands in its messages.
  private func expect(
    _ words: [String], _ status: Int32, _ text: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let outcome = try place.tarn(words)
    #expect(
      outcome.status == status && outcome.messages.contains(text) && outcome.output.isEmpty,
      "\(words): \(outcome)", sourceLocation: sourceLocation)
  }

  /// `tarn session open -N 9` says nothing of settings that nobody has named.
  @Test(
    arguments: [
      (["-N", "9"], ["transfers"]), (["--wake", "/bin/true"], ["wake"]), ([], []),
      (["--settings", "file"], ["transfers", "wake", "headers"]),
    ] as [([String], [String])]) func whatDiffersIsWhatWasNamed(words: [String], named: [String]) throws
  {
    place.end()
    let options = try SessionSettingsOptions.parse(words)
    #expect(options.named(among: ["transfers", "wake", "headers"]) == named)
    #expect(options.named(among: nil) == nil)
  }

  /// The same URL twice is one task: the others keep their names.
  @Test func eachTaskHasItsOwnName() throws {
    place.end()
    let tasks = [("a", "/out/"), ("a", "/out//"), ("b", "/out/"), ("a", "/other/c")].map { name, to in
      TaskRequest(url: "http://h/\(name)", to: to)
    }
    let names = GetRun.names(of: tasks)
    #expect([Int64](1...4).map { names(RelativePath(task: $0)).printable } == ["a", "b", "c", "4"])
  }

  /// What stands in the way of a file that may replace others is a directory.
  @Test(arguments: [(.fail, true), (nil, true), (.replace, false)] as [(TaskRequest.Existing?, Bool)])
  func whatCannotBeReplacedIsNot(existing: TaskRequest.Existing?, mayReplace: Bool) throws {
    place.end()
    var request = TaskRequest(url: "http://h/a", to: "/out/a")
    request.existing = existing
    var task = TaskRecord(number: 1, state: .failed, request: request, added: Samples.now)
    task.code = "in-the-way"
    let hint = try #require(GetRun.hint(task))
    #expect(hint.contains("replace") == mayReplace && hint.contains("--existing keep-both"))
  }

  /// A header file that was given is not asked for.
  @Test(arguments: [nil, ["Authorization: Bearer wrong"]] as [[String]?])
  func refusedHeadersAreNotMissing(headers: [String]?) throws {
    place.end()
    var request = TaskRequest(url: "http://h/a", to: "/out/a")
    request.headers = headers
    var task = TaskRecord(number: 1, state: .failed, request: request, added: Samples.now)
    task.code = "http-401"
    let hint = try #require(GetRun.hint(task))
    #expect(hint.contains("give the credentials") == (headers == nil) && hint.contains("--header-file"))
  }

  @Test(arguments: ["no-space", "quota-exceeded"]) func aFullDiskIsHinted(code: String) throws {
    place.end()
    var task = TaskRecord(
      number: 1, state: .failed, request: TaskRequest(url: "http://h/a", to: "/out/a"), added: Samples.now)
    task.code = code
    let hint = try #require(GetRun.hint(task))
    #expect(hint.contains("make room there") && hint.contains("leaves 1% of a file system free"))
  }

  /// A message that begins with the URL says it.
  @Test func aURLIsToldOnce() {
    place.end()
    let request = TaskRequest(url: "http://h/a?b=1", to: "/out/")
    var task = TaskRecord(number: 1, state: .failed, request: request, added: Samples.now)
    (task.code, task.message) = ("http-404", "http://h/a?b=1: not found (404)")
    #expect(SessionText.line(TaskDocument(task)) == "1  failed  http://h/a?b=1  not found (404)")
    let event = SessionEvent(.failed, time: Samples.now, of: task)
    #expect(SessionText.line(event).hasSuffix("  failed  1  http://h/a?b=1  not found (404)"))
    task.message = "no host"
    #expect(SessionText.line(TaskDocument(task)) == "1  failed  http://h/a?b=1  no host")
  }

  // MARK: Lists

  @Test(arguments: [
    (
      "# two\nhttp://127.0.0.1:9/a\n\nhttp://h/b http://h/c\n",
      ":4: this line is not one URL: http://h/b http://h/c\n  hint: write"
    ),
    ("http://127.0.0.1:9/a\thttp://h/b\n", ":1: this line is not one URL"),
    (
      "http://127.0.0.1:9/a\n  out=name.iso\n",
      ":2: this line is not one URL: out=name.iso\n  hint: only URLs are taken"
    ),
    ("http://127.0.0.1:9/a\r\nftp://h/with/path\r\n", ":2: ftp://h/with/path: only http and https"),
    ("http://127.0.0.1:9/a\nhttp://h/ä\n", ":2: "), ("example.org/a\n", ":1: example.org/a: only http"),
  ]) func aLineThatIsNoURLIsSaid(text: String, said: String) throws {
    defer { place.end() }
    try place.write(text, "urls.txt")
    try expect(["get", "-i", "urls.txt", "--retries", "0"], 78, "urls.txt" + said)
    try expect(["get", "-b", "-i", "urls.txt"], 78, "urls.txt" + said)
  }

  @Test func aListHasCommentsBlanksAndAMark() throws {
    place.end()
    let text = "\u{FEFF}http://h/a\r\n\n# http://h/x\n  http://h/b?c=d \n\thttp://h/c\n"
    #expect(try URLList(text, name: "-").urls == ["http://h/a", "http://h/b?c=d", "http://h/c"])
    let failure = #expect(throws: PassFailure.self) { try URLList("x", name: "-") }
    #expect(failure?.message.hasPrefix("standard input:1: x: ") == true, "\(failure?.message ?? "")")
  }

  @Test func aListOfNothingIsSaid() throws {
    defer { place.end() }
    try place.write("# none\n", "urls.txt")
    try expect(["get", "-i", "urls.txt"], 0, "names no URL")
    try expect(["get", "-b", "-i", "urls.txt"], 0, "names no URL")
    try expect(["get", "-i", "feed"], 78, "feed is neither a file nor a pipe")
    try expect(["get", "-i", "missing"], 78, "missing cannot be read: No such file")
  }

  // MARK: Headers

  @Test func aHeaderFileThatIsNoneIsSaid() throws {
    defer { place.end() }
    try place.write("# mine\nAuthorization Basic x\n", "hf")
    #expect(mkfifo(place.path + "/fifo", 0o600) == 0)
    for words in [["get", Self.url], ["get", "-b", Self.url], ["session", "answer", "s", "1"]] {
      try expect(words + ["--header-file", "hf"], 78, "hf:2: this line is not a 'Name: value' header")
      try expect(
        words + ["--header-file", "fifo"], 64, "is not a regular file\n  hint: write its text into a file")
    }
  }

  // MARK: Values

  @Test(arguments: [
    (
      ["--sha256", "abc"],
      "--sha256 takes 64 hexadecimal digits, with or without 'sha256:' in front, not 'abc'"
    ),
    (["--sha256", "sha256:abc"], "not 'sha256:abc'"),
    (["--to", ""], "--to is empty: is a variable not set?"), (["--name", ""], "--name is empty"),
    (["--header-file", ""], "--header-file is empty"),
    (["--name", ".."], "/..: '..' stands for another folder"),
    (["--name", String(repeating: "x", count: 300)], "one of its names has 300 bytes; 255 are allowed"),
    (["--to", "d/.tarn-x.part"], "d/.tarn-x.part: names such as .tarn-x.part are those of partial files"),
    (["-b", "-N", "1", "--session", "new"], "tarn session set -N N new"),
    (["-b", "--limit-rate", "2MiB/s"], "'tarn limit 2MiB/s' limits the agent's sessions and mirrors"),
    (["--to", "one", "http://127.0.0.1:9/b"], "--to one is the place of one file, and 2 URLs are given"),
  ]) func mistakesAreSaid(words: [String], said: String) throws {
    defer { place.end() }
    try expect(["get", Self.url] + words, 64, said)
  }

  @Test(arguments: [
    ("dl/", "hint: to put the files into that folder: --to dl/\n"),
    ("feed", "hint: to put the files into that folder: --to feed\n"),
    ("127.0.0.1:8731/x", "hint: a URL begins with http:// or https://\n"),
    ("http://u:p@127.0.0.1:9/x", "--header-file FILE\n"),
  ]) func whatIsNoURLHasAHint(word: String, hint: String) throws {
    defer { place.end() }
    for words in [["get"], ["get", "-b"]] {
      let outcome = try place.tarn(words + [word])
      #expect(outcome.status == 64 && outcome.messages.hasSuffix(hint), "\(outcome)")
      #expect(!outcome.messages.contains("u:p"), "\(outcome)")
    }
  }

  @Test func whatIsMeantIsTaken() throws {
    defer { place.end() }
    let digits = String(repeating: "AB", count: 32)
    for digest in [digits, "sha256:" + digits, "SHA256:" + digits] {
      try expect(["get", "--sha256", digest, Self.url, "--retries", "0"], 66, "refused")
    }
    let both = ["--to", "one", "--existing", "keep-both", "--retries", "0", Self.url, "http://127.0.0.1:9/b"]
    try expect(["get"] + both, 3, "refused")
    try expect(["get", "--limit-rate", "2", "--retries", "0", Self.url], 64, "did you mean 2MiB/s?")
  }

  @Test func aHomeThatIsMissingIsSaid() throws {
    defer { place.end() }
    let outcome = try TarnBinary.run(["get", Self.url], environment: ["HOME": "/nonexistent"])
    #expect(
      outcome.status == 78
        && outcome.messages.contains("$HOME is /nonexistent, and there is no such directory"),
      "\(outcome)")
  }
}
