import Foundation
import Testing

/// The examples of tarn-session(7), as they stand there: against nginx.
@Suite(
  .serialized,
  .enabled(
    if: Tarn.obstacleWithServer == nil && Program.find("curl") != nil,
    "\(Tarn.obstacleWithServer ?? "curl is not installed")"))
struct SessionManualTests {
  static let root = Tool.directory.deletingLastPathComponent().deletingLastPathComponent()

  final class House: AgentHouse {
    var out: String { place.path + "/out/" }
    /// As a user's session has it: the socket is where the page says.
    var runtime: String { place.path + "/user" }

    init() throws {
      try super.init(
        locations: """
          location /private/ {
            if ($http_authorization != "Bearer right") { return 401 "a token is missing"; }
            try_files $uri =404;
          }
          location /slow/ { limit_rate 20k; }
          location /away { return 302 /europe.map; }
          location /busy { return 503; }
          """, files: ["europe.map": "hello\n", "private/asia.map": "hello\n"])
      try settings("")
      for path in [out, runtime] {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      }
      try FileManager.default.createSymbolicLink(
        atPath: runtime + "/tarn", withDestinationPath: place.path + "/run")
    }

    /// As the page has it, with the server and the folder of this house.
    func own(_ text: String) -> String {
      text.replacingOccurrences(of: "https://example.org/", with: server.url(""))
        .replacingOccurrences(of: "/srv/maps/", with: out)
    }

    func shell(_ command: String) throws -> Program {
      try Program(
        "/bin/sh", ["-c", "exec " + command],
        environment: ["PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": runtime])
    }

    /// Nothing begins or runs any more, and what is over is gone.
    func settle() throws {
      try waitUntil("nothing runs") {
        let list = try JSON.documents(try tarn("session", "list", "--json").output).first
        return (list?["sessions"] as? [[String: Any]] ?? []).allSatisfy { session in
          let tasks = session["tasks"] as? [String: Int] ?? [:]
          let isOver =
            session["isClosed"] as? Bool == true
            && session["lastEvent"] as? Int == session["acknowledged"] as? Int
          return tasks["queued"] == nil && tasks["running"] == nil && !isOver
        }
      }
    }
  }

  private let house: House

  init() throws { house = try House() }

  private struct Example {
    var command: String
    /// A line of JSON, or the blocks of a stream, which the page breaks to fit.
    var answer: String
  }

  /// Displays of the page that begin with `$ curl`; lines of a command after the first begin with `> `.
  private func examples() throws -> [Example] {
    let page = try String(
      contentsOf: Self.root.appendingPathComponent("packaging/man/tarn-session.7"), encoding: .utf8)
    return page.components(separatedBy: "\n.Bd -literal\n").dropFirst().compactMap { display in
      var text = display.components(separatedBy: "\n.Ed\n")[0]
      for (escape, character) in [("\\(aq", "'"), ("\\-", "-"), ("\\e", "\\")] {
        text = text.replacingOccurrences(of: escape, with: character)
      }
      guard text.hasPrefix("$ curl ") else { return nil }
      let lines = text.components(separatedBy: "\n")
      let more = lines.dropFirst().prefix { $0.hasPrefix("> ") }
      let command = ([lines[0]] + more).map { String($0.dropFirst(2)) }.joined(separator: "\n")
      var answer: [String] = []
      for line in lines.dropFirst(1 + more.count) {
        if line.hasPrefix(" "), let last = answer.popLast() {
          answer.append(last + line)
        } else {
          answer.append(line)
        }
      }
      return Example(command: house.own(command), answer: house.own(answer.joined(separator: "\n")))
    }
  }

  @Test func theExamplesOfThePageAnswerAsItSays() throws {
    try house.start()
    let examples = try examples()
    #expect(examples.count == 10)
    for example in examples {
      let program = try house.shell(example.command)
      if example.command.contains("/stream?") {
        let shown = try blocks(example.answer + "\n\n")
        try waitUntil("the stream has told as much as the page") {
          try blocks(program.outputSoFar).count >= shown.count
        }
        program.signal(SIGINT)
        _ = try program.wait()
        let real = try blocks(program.outputSoFar)
        #expect(fits(.list(shown), .list(real)), "\(example.command)\n\(program.outputSoFar)")
      } else {
        let outcome = try program.wait()
        #expect(outcome.status == 0, "\(example.command)\n\(outcome)")
        let (shown, real) = (try Value.read(example.answer), try Value.read(outcome.output))
        #expect(fits(shown, real), "\(example.command)\n\(outcome.output)\nis not as\n\(example.answer)")
      }
      try house.settle()
    }
    #expect(house.place.text("out/europe.map") == "hello\n" && house.place.text("out/asia.map") == "hello\n")
  }

  /// A comparison that always holds would prove nothing.
  @Test func otherAnswersDoNotFit() throws {
    let shown = try Value.read("{\"a\":\"x...\",\"b\":[{\"time\":\"t\",\"n\":1}]}")
    for (text, isSo) in [
      ("{\"a\":\"xyz\",\"b\":[{\"time\":\"u\",\"n\":1}]}", true),
      ("{\"a\":\"yz\",\"b\":[{\"time\":\"u\",\"n\":1}]}", false),
      ("{\"a\":\"xyz\",\"b\":[{\"time\":\"u\",\"n\":2}]}", false),
      ("{\"a\":\"xyz\",\"b\":[{\"time\":7,\"n\":1}]}", false),
      ("{\"a\":\"xyz\",\"b\":[]}", false), ("{\"a\":\"xyz\",\"b\":[{\"time\":\"u\"}]}", false),
      ("{\"a\":\"xyz\",\"b\":[{\"time\":\"u\",\"n\":1}],\"c\":true}", false),
    ] {
      #expect(fits(shown, try Value.read(text)) == isSo, "\(text)")
    }
  }

  private enum Value: Decodable {
    case text(String), number(Double), truth(Bool), list([Value]), object([String: Value])

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let object = try? container.decode([String: Value].self) {
        self = .object(object)
      } else if let list = try? container.decode([Value].self) {
        self = .list(list)
      } else if let text = try? container.decode(String.self) {
        self = .text(text)
      } else if let truth = try? container.decode(Bool.self) {
        self = .truth(truth)
      } else {
        self = .number(try container.decode(Double.self))
      }
    }

    static func read(_ text: String) throws -> Value {
      try JSONDecoder().decode(Value.self, from: Data(text.utf8))
    }
  }

  /// What differs from one run to the next: only its kind is compared.
  private static let times = ["time", "added", "lastModified", "total"]

  /// - Parameter name: of the field.
  private func fits(_ shown: Value, _ real: Value, _ name: String = "") -> Bool {
    switch (shown, real) {
    case (.object(let shown), .object(let real)):
      if name == "times" { return Set(shown.keys) == Set(real.keys) }
      return Set(shown.keys) == Set(real.keys)
        && shown.allSatisfy { key, value in real[key].map { fits(value, $0, key) } ?? false }
    case (.list(let shown), .list(let real)):
      if case .text("...")? = shown.first { return shown.count == 1 && !real.isEmpty }
      return shown.count == real.count && zip(shown, real).allSatisfy { fits($0, $1) }
    case (.text(let shown), .text(let real)):
      if Self.times.contains(name) { return true }
      guard shown.hasSuffix("...") else { return shown == real }
      return real.hasPrefix(shown.dropLast(3))
    case (.number(let shown), .number(let real)): return shown == real
    case (.truth(let shown), .truth(let real)): return shown == real
    default: return false
    }
  }

  /// Whole blocks of a stream of events, without its signs of life.
  private func blocks(_ text: String) throws -> [Value] {
    let parts = text.components(separatedBy: "\n\n").map { $0.split(separator: "\n") }
    return try parts.dropLast().compactMap { lines in
      var block: [String: Value] = [:]
      for line in lines where !line.hasPrefix(":") {
        let field = line.split(separator: ":", maxSplits: 1).map { $0.drop { $0 == " " } }
        guard field.count == 2 else { continue }
        block[String(field[0])] =
          field[0] == "data" ? try Value.read(String(field[1])) : .text(String(field[1]))
      }
      return block.isEmpty ? nil : .object(block)
    }
  }
}
