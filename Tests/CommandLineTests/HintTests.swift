import Foundation
import Testing

/// What a command cannot do, and what helps then.
@Suite struct HintTests {
  private let place: LocalPlace

  init() throws {
    place = try LocalPlace()
    try place.publish(["a.txt": "one\n"])
  }

  /// A plan is of what a sync would do.
  @Test func aPlanIsRefusedAsTheSyncWouldBe() throws {
    defer { place.end() }
    try place.makeDirectory("full")
    try place.write("mine\n", "full/mine")
    try place.makeDirectory("home/sub")
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "m").status == 0)
    for folder in ["full", "/", "home", "m/.tarn", "feed/a.txt"] {
      let plan = try place.tarn("plan", "./feed/SHA256SUMS", folder)
      let sync = try place.tarn("sync", "./feed/SHA256SUMS", folder)
      #expect(plan.status == sync.status && plan.status >= 64, "\(folder): \(plan), \(sync)")
      #expect(plan.messages == sync.messages && plan.output.isEmpty, "\(folder): \(plan), \(sync)")
    }
    let adopted = try place.tarn("plan", "--adopt", "./feed/SHA256SUMS", "full")
    #expect(adopted.status == 0 && adopted.output.contains("to do: 2 to fetch"), "\(adopted)")
  }

  @Test func whoSteersWithoutAnAgentIsToldWhatHelps() throws {
    defer { place.end() }
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "m").status == 0)
    for verb in ["resume", "retry"] {
      for word in ["./m", "./m:a.txt"] {
        let outcome = try place.tarn(verb, word)
        #expect(outcome.status == 69 && outcome.messages.contains("no agent answers"), "\(outcome)")
        #expect(outcome.messages.contains("without an agent: tarn sync ./m;"), "\(outcome)")
      }
    }
    #expect(try place.tarn("pause", "./m").messages.contains("only 'tarn sync' and timers begin passes"))
  }

  /// Before anything is carried out.
  @Test(arguments: [
    (["limit", "2"], Int32(64), "'2' is 2 bytes per second; did you mean 2MiB/s?"),
    (["sync", "--limit-rate", "5", "./feed", "m"], Int32(64), "did you mean 5MiB/s?"),
    (["add", "--limit-rate", "5", "./feed", "m"], Int32(64), "did you mean 5MiB/s?"),
    (["init", "--limit-rate", "5"], Int32(64), "did you mean 5MiB/s?"),
    (["limit", "5B/s"], Int32(69), "no agent answers"),
    (
      ["prioritize", "session:s/1", "high"], Int32(64), "hint: tarn prioritize --priority high session:s/1\n"
    ),
    (["prioritize", "high"], Int32(69), "no agent answers"),
    (["pause", "session:s/1", "session:s/x"], Int32(64), "tarn: session:s/x: a task is a number\n"),
  ]) func whoSteersWronglyIsTold(words: [String], status: Int32, said: String) throws {
    defer { place.end() }
    let outcome = try place.tarn(words)
    #expect(outcome.status == status && outcome.messages.contains(said), "\(outcome)")
    #expect(outcome.messages.contains("no agent answers") == (status == 69), "\(outcome)")
  }

  /// As from a variable that is not set.
  @Test func anEmptyWordNamesNoPlan() throws {
    defer { place.end() }
    #expect(try place.tarn("sync", "./feed/SHA256SUMS", "m").status == 0)
    let outcome = try place.tarn("approve", "m", "")
    #expect(outcome.status == 64 && outcome.messages.contains("the name of the plan is empty"), "\(outcome)")
  }

  @Test func anEmptyWordIsNoPath() throws {
    defer { place.end() }
    let outcome = try place.tarn("explain", "")
    #expect(outcome.status == 64 && outcome.messages.contains("is a variable not set?"), "\(outcome)")
  }

  /// The settings know the feed of their mirror, also where its folder is named.
  @Test func aMirrorWithoutAPassIsNotMadeAnew() throws {
    defer { place.end() }
    try place.write(
      "[mirror.m]\nfeed = \"\(place.path)/feed/SHA256SUMS\"\nfolder = \"\(place.path)/m\"\n", "tarn.toml")
    for isThere in [false, true] {
      if isThere { try place.makeDirectory("m") }
      for words in [["approve", "./m"], ["explain", "./m/a.txt"], ["trash", "./m"]] {
        let outcome = try place.tarn(words)
        #expect(outcome.status == 73, "\(words): \(outcome)")
        #expect(
          outcome.messages.contains("sync m\n") && !outcome.messages.contains("FEED"), "\(words): \(outcome)")
      }
    }
  }

  @Test func aDamagedListHasAHint() throws {
    defer { place.end() }
    for (name, text) in [
      ("bad.xml", "<?xml version=\"1.0\"?><rss><channel><item>"), ("empty", ""),
      ("cut.metalink", "<?xml version=\"1.0\"?><metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file"),
    ] {
      try place.write(text, "feed/\(name)")
      let outcome = try place.tarn("sync", "./feed/\(name)", "m")
      #expect(outcome.status == 65 && outcome.messages.contains("try again later"), "\(name): \(outcome)")
      #expect(!outcome.messages.contains("nothing was changed"), "\(name): \(outcome)")
    }
  }

  @Test func aFolderThatCannotBeMadeHasAHint() throws {
    defer { place.end() }
    for folder in ["/proc/tarn", String(repeating: "x", count: 300)] {
      let outcome = try place.tarn("sync", "./feed/SHA256SUMS", folder)
      #expect(outcome.status >= 73, "\(outcome)")
      #expect(outcome.messages.contains("\n  hint: give a "), "\(outcome)")
    }
  }

  /// Where its record lies elsewhere, it has a journal still.
  @Test func aFolderThatIsGoneIsToldByItsJournal() throws {
    defer { place.end() }
    try place.write(
      "[mirror.m]\nfeed = \"\(place.path)/feed/SHA256SUMS\"\nfolder = \"\(place.path)/m\"\nstate = \"\(place.path)/record\"\n",
      "tarn.toml")
    #expect(try place.tarn("sync", "m").status == 0)
    try place.move("m", to: "elsewhere")
    for _ in 0..<2 { #expect(try place.tarn("sync", "m").status == 73) }
    try place.move("elsewhere", to: "m")
    #expect(try place.tarn("sync", "m").status == 0)
    let events = try place.tarn("events", "m").output
    #expect(events.components(separatedBy: "pass-failed").count == 2, "\(events)")
    #expect(events.contains("recovered") && events.contains("marker-missing"), "\(events)")
  }
}
