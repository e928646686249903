import ArgumentParser
import Foundation
import Testing

@testable import tarn

/// `tarn completion`, in the shells themselves.
@Suite final class CompletionTests {
  private let place: LocalPlace

  init() throws {
    place = try LocalPlace()
    try place.publish(["a": "one\n", "b two": "two\n"])
    try place.write(
      """
      [mirror.podcasts]
      feed = "\(place.path)/feed/SHA256SUMS"
      folder = "\(place.path)/podcasts"
      [mirror.iso]
      feed = "\(place.path)/feed/SHA256SUMS"
      folder = "\(place.path)/iso"

      """, "tarn.toml")
  }

  deinit { place.end() }

  private static func has(_ shells: String...) -> Bool {
    shells.allSatisfy { FileManager.default.isExecutableFile(atPath: "/usr/bin/\($0)") }
  }

  /// What a shell prints.
  private func shell(_ name: String, _ arguments: [String], _ variables: [String: String] = [:]) throws
    -> String
  {
    let process = Process()
    // One that waits for a word that does not come is ended.
    process.executableURL = URL(fileURLWithPath: "/usr/bin/timeout")
    process.arguments = ["120", "/usr/bin/\(name)"] + arguments
    process.currentDirectoryURL = place.url
    let own = [
      "HOME": place.path + "/home", "STATE_DIRECTORY": place.path + "/state",
      "RUNTIME_DIRECTORY": place.path + "/run", "CONFIGURATION_DIRECTORY": place.path, "LC_ALL": "C.UTF-8",
      "PATH": TarnBinary.url.deletingLastPathComponent().path + ":/usr/bin:/bin", "TERM": "dumb",
    ]
    process.environment = own.merging(variables) { $1 }
    process.standardInput = FileHandle.nullDevice
    let output = place.url.appendingPathComponent(".shown")
    try Data().write(to: output)
    process.standardOutput = try FileHandle(forWritingTo: output)
    process.standardError = process.standardOutput
    try process.run()
    process.waitUntilExit()
    return try String(contentsOf: output, encoding: .utf8)
  }

  /// What bash would offer for the last of these words.
  ///
  /// - Parameter line: the line that they are of; `nil` for one with a blank between any two.
  private func bash(_ words: String..., line: String? = nil) throws -> [String] {
    try place.write(try place.tarn("completion", "bash").output, "tarn.bash")
    let list = words.map { "'\($0)'" }.joined(separator: " ")
    let text = try shell(
      "bash",
      [
        "--norc", "-c",
        """
        . ./tarn.bash
        COMP_WORDS=(\(list)); COMP_CWORD=\(words.count - 1); COMP_LINE='\(line ?? words.joined(separator: " "))'
        COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
        _tarn tarn '\(words.last ?? "")' '\(words.dropLast().last ?? "")'
        printf '%s\\n' "${COMPREPLY[@]}"
        """,
      ])
    return text.split(separator: "\n").map(String.init)
  }

  @Test(.enabled(if: has("bash"), "bash is not installed")) func bashCompletesMirrorsAndPaths() throws {
    #expect(try bash("tarn", "status", "po") == ["podcasts"])
    #expect(try bash("tarn", "status", "") == ["iso", "podcasts"])
    // Without a word of its own it lists.
    #expect(try bash("tarn", "trash", "i") == ["iso"])
    #expect(try Set(["list", "iso", "podcasts"]).isSubset(of: bash("tarn", "trash", "")))
    #expect(try bash("tarn", "trash", "iso", "po") == [])
    #expect(try bash("tarn", "pause", "i") == ["iso"])
    #expect(try bash("tarn", "remove", "po") == ["podcasts"])
    #expect(try bash("tarn", "config", "show", "po") == ["podcasts"])
    #expect(try bash("tarn", "status", "--json", "po") == ["podcasts"])
    #expect(try bash("tarn", "completion", "f") == ["fish"])
    #expect(try bash("tarn", "expl") == ["explain"])
    #expect(try place.tarn("sync", "podcasts").status == 0)
    #expect(try bash("tarn", "explain", "podcasts", "b") == ["b\\ two"])
    #expect(try bash("tarn", "sync", "./fe") == ["./feed/"])
    // A mirror that was made by hand is in no settings file.
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "by-hand").status == 0)
    #expect(try bash("tarn", "forget", "").contains { $0.hasSuffix("by-hand") })
    #expect(try bash("tarn", "remove", "") == ["iso", "podcasts"])
  }

  /// bash splits words at colons and equals signs.
  @Test func whatFollowsAURLIsCompleted() throws {
    let port = try bash(
      "tarn", "add", "http", ":", "//h", ":", "8000/x", "fe", line: "tarn add http://h:8000/x fe")
    #expect(port == ["feed"])
    let query = try bash(
      "tarn", "init", "http", ":", "//h/x?a", "=", "b", "fe", line: "tarn init http://h/x?a=b fe")
    #expect(query == ["feed"])
    let given = try bash(
      "tarn", "add", "--header-file", "=", "x", "http", ":", "//h/x", "fe",
      line: "tarn add --header-file=x http://h/x fe")
    #expect(given == ["feed"])
    let file = try bash(
      "tarn", "add", "--header-file", "=", "tarn.t", line: "tarn add --header-file=tarn.t")
    #expect(file == ["tarn.toml"])
  }

  /// What ends with a colon or an equals sign ends at the blank.
  @Test func whatFollowsAnEqualsSignAndABlankIsAWordOfItsOwn() throws {
    let second = try bash("tarn", "add", "http", ":", "//h/a", "=", "fe", line: "tarn add http://h/a= fe")
    #expect(second == ["feed"])
    // There is no third argument.
    let third = try bash(
      "tarn", "add", "http", ":", "//h/a", "=", "out", "fe", line: "  tarn add http://h/a=  out fe")
    #expect(third == [])
  }

  @Test func wordsOfOptionsAndOfHelpAreCompleted() throws {
    #expect(try bash("tarn", "get", "--existing", "k") == ["keep-both"])
    #expect(try bash("tarn", "get", "--priority", "h") == ["high"])
    #expect(try bash("tarn", "limit", "o") == ["off"])
    #expect(try bash("tarn", "help", "tra") == ["trash"])
    #expect(try bash("tarn", "help", "trash", "l") == ["list"])
    #expect(try bash("tarn", "help", "exi") == ["exit-status"])
    let get = try place.tarn(
      "---completion", "get", "--", "--session", "4", "0", "tarn", "get", "http://h/x", "--session", "")
    #expect(get.status == 0 && get.messages == "", "\(get)")
  }

  /// A session that is called like a directory would become that directory.
  @Test func onlyFilesAreFilesForBash() throws {
    let script = try place.tarn("completion", "bash").output
    #expect(script.contains("\ncomplete -F _tarn tarn"))
    #expect(script.contains("-[df] ]] || compopt -o filenames"))
  }

  /// bash inserts a name as it is offered: unquoted, it would be expanded on Enter.
  @Test(.enabled(if: has("bash"), "bash is not installed")) func aNameIsNoCommand() throws {
    for name in ["$(touch broken)", "`touch broken`", "a;touch broken", "~", "*", "x\\y", "q'q"] {
      try place.makeDirectory("d/\(name)")
    }
    let found = try bash("tarn", "status", "d/")
    #expect(
      Set(found) == [
        #"d/\$\(touch\ broken\)/"#, #"d/\`touch\ broken\`/"#, #"d/a\;touch\ broken/"#, #"d/\~/"#, #"d/\*/"#,
        #"d/q\'q/"#,
      ])
    #expect(!place.exists("broken"))
  }

  @Test(.enabled(if: has("bash"), "bash is not installed")) func oddMirrorsAreOfferedQuoted() throws {
    let mirrors = ["d$HOME", "d`id`", "a\"b"].enumerated().map { number, name in
      """
      [mirror.'\(name)']
      feed = "\(place.path)/feed/SHA256SUMS"
      folder = "\(place.path)/\(number)"

      """
    }
    try place.write(mirrors.joined(), "tarn.toml")
    #expect(Set(try bash("tarn", "status", "d")) == [#"d\$HOME"#, #"d\`id\`"#])
    #expect(try bash("tarn", "status", #"d\$"#) == [#"d\$HOME"#])
    #expect(try bash("tarn", "status", "\"d") == [])
    #expect(try bash("tarn", "status", "a\"") == [])
    #expect(try bash("tarn", "status", "a") == [#"a\"b"#])
  }

  @Test(
    arguments: [
      ("it's", "it", #"it\'s"#), ("it's", "\"it", "it's"), ("it's", "'it", nil), ("it's", "it\"", nil),
      ("~/x y", "~/", #"~/x\ y"#), ("~x", #"\~"#, #"\~x"#), ("a$b", "'a", "a$b"), ("a$b", "\"a", nil),
    ] as [(String, String, String?)])
  func aWordKeepsItsQuote(_ name: String, _ typed: String, _ inserted: String?) {
    #expect(BashWord(typed).quoting.quote(name) == inserted)
  }

  @Test(.enabled(if: has("fish", "zsh"), "fish, or the zsh that types for it, is not installed"))
  func fishCompletesMirrorsAndCommands() throws {
    let asking = """

      for words in 'status po' 'trash po' 'help tra' 'help trash l' 'help exi'
          complete -C "tarn $words" >> found
      end

      """
    try place.write(try place.tarn("completion", "fish").output + asking, "tarn.fish")
    // It completes for a command line only, which it has on a terminal.
    let script = """
      zmodload zsh/zpty
      zpty z fish --no-config -i
      zpty -w z "source tarn.fish; echo DO''NE"
      zpty -r z line '*DONE*'
      zpty -d z
      """
    _ = try shell("zsh", ["-f", "-c", script])
    #expect(
      place.text("found") == "podcasts\npodcasts\ntrash\nlist\nexit-status\n", "\(place.text("found") ?? "")")
  }

  /// Its completion runs only where keys are typed: zpty has a terminal for that.
  @Test(
    .enabled(if: has("zsh"), "zsh is not installed"),
    arguments: [
      ("status po", "status podcasts"), ("trash po", "trash podcasts"), ("help tra", "help trash"),
      ("help trash l", "help trash list"),
      ("help exi", "help exit-status"),
    ])
  func zshCompletesMirrorsAndCommands(_ typed: String, _ completed: String) throws {
    try place.write(try place.tarn("completion", "zsh").output, "_tarn")
    let script = """
      zmodload zsh/zpty
      zpty z zsh -f -i
      zpty -w z "PS1=; fpath=($PWD \\$fpath); autoload -Uz compinit; compinit -u -d $PWD/dump; echo READ''Y"
      zpty -r z line '*READY*'
      zpty -w -n z $'tarn \(typed)\\t\\n'
      zpty -r z line '*tarn \(completed)*'
      print -r -- "$line"
      zpty -d z
      """
    let text = try shell("zsh", ["-f", "-c", script])
    #expect(text.contains("tarn \(completed)"), "\(text)")
  }

  private func check(_ name: String) throws {
    try place.write(try place.tarn("completion", name).output, "script.\(name)")
    #expect(try shell(name, ["-n", "script.\(name)"]) == "")
  }

  @Test(.enabled(if: has("bash"), "bash is not installed")) func bashReadsItsScript() throws {
    try check("bash")
  }

  @Test(.enabled(if: has("zsh"), "zsh is not installed")) func zshReadsItsScript() throws { try check("zsh") }

  @Test(.enabled(if: has("fish"), "fish is not installed")) func fishReadsItsScript() throws {
    try check("fish")
  }

  @Test func theScriptsAreSound() throws {
    for name in ["bash", "zsh", "fish"] {
      let result = try place.tarn("completion", name)
      #expect(result.status == 0 && !result.output.hasPrefix("#!") && result.output.contains("explain"))
    }
    #expect(try place.tarn("completion", "csh").status == 64)
    let json = try place.tarn("completion", "--json", "bash").output
    let answer = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
    #expect(answer?["shell"] as? String == "bash")
  }

  private func words(_ shell: String, _ words: String...) -> WordCompletion {
    WordCompletion(words, words.count - 1, words.last ?? "", shell: .init(rawValue: shell))
  }

  @Test func positionalsAreFoundBehindOptions() throws {
    #expect(words("fish", "tarn", "trash", "restore", "--to", "x", "iso", "").index == 6)
    let result = try place.tarn(
      "---completion", "session", "show", "--", "positional@0", "3", "0", "tarn", "session", "show", "")
    #expect(result.status == 0 && result.output == "\n" && result.messages == "", "\(result)")
    let wrong = try place.tarn("---completion", "status", "--", "positional@0")
    #expect(wrong.status == 64 && wrong.output == "" && wrong.messages == "", "\(wrong)")
  }
}
