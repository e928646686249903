import TarnCore
import Testing

@testable import TarnEngine
@testable import tarn

/// `status --check`: by age and by state.
@Suite struct CheckTests {
  private static let day: Int64 = 86_400

  private func check(_ documents: [StatusDocument], leftOut: Int = 0) -> StatusCheck {
    StatusCheck(documents, leftOut: leftOut, maxAge: Self.day, now: Samples.now)
  }

  /// A mirror that was in sync two hours ago, and then changed.
  private func mirror(_ change: (inout StatusDocument) -> Void) -> StatusDocument {
    var document = Samples.status()
    document.name = "iso"
    change(&document)
    return document
  }

  private static let late = "2026-11-19T10:00:00Z"

  @Test func goodMirrorsAreOneLine() {
    let good = check([Samples.status()])
    #expect(good.isGood && good.lines == ["in sync within 24 hours: 1 mirror, last success 2 hours ago"])
    let others = check([Samples.status()], leftOut: 2)
    #expect(
      others.isGood
        && others.lines == [good.lines[0] + "; 2 mirrors left out, where passes only plan (dry-run)"])
    let none = check([], leftOut: 1)
    #expect(none.isGood && none.lines[0].hasPrefix("nothing to check: 1 mirror left out"))
    let unnamed = StatusCheck([Samples.status()], leftOut: 1, unnamed: 2, maxAge: Self.day, now: Samples.now)
    #expect(
      unnamed.isGood
        && unnamed.lines[0].hasSuffix("(dry-run); 2 mirrors left out, which the settings no longer name"))
    #expect(StatusCheck([], unnamed: 1, maxAge: Self.day, now: Samples.now).isGood)
    #expect(!check([]).isGood && check([]).lines == ["unknown: no mirror is known"])
  }

  @Test func eachThatIsLateIsNamed() {
    let late = mirror { $0.lastSuccess = Self.late }
    var gone = StatusDocument(name: "/srv/gone", feed: "", folder: "/srv/gone", state: "failing")
    (gone.lastFailure, gone.hint) = ("there is no folder /srv/gone", "tarn forget /srv/gone")
    let planned = mirror { ($0.name, $0.dryRun, $0.lastSuccess) = ("mix", true, nil) }
    let line = "late: iso (last success 2 days ago); expected within 24 hours"
    let result = check([Samples.status(), late, gone, planned, late])
    #expect(!result.isGood)
    #expect(
      result.lines == [
        line, "late: /srv/gone: there is no folder /srv/gone; tarn forget /srv/gone",
        "late: mix (dry run, last success never); expected within 24 hours", line,
      ])
  }

  /// A success while the clock was ahead says nothing for as long as that moment has not come.
  @Test(arguments: [14 * 86_400, 3650 * 86_400, 61] as [Int64]) func aSuccessInTheFutureIsNotGood(
    seconds: Int64
  ) {
    let result = check([mirror { $0.lastSuccess = Samples.now.adding(seconds: seconds).rfc3339 }])
    #expect(!result.isGood && result.mirrors[0].verdict == .clock)
    #expect(
      result.lines[0].hasPrefix("clock: iso (last success at 20") && result.lines[0].contains("in the future")
    )
    #expect(NagiosStatus(result) == .critical)
  }

  @Test func clocksMayDifferALittle() {
    #expect(check([mirror { $0.lastSuccess = Samples.now.adding(seconds: 30).rfc3339 }]).isGood)
  }

  @Test func theStateCountsToo() {
    let held = mirror {
      $0.state = "held"
      $0.held = StatusDocument.Held(plan: "1a2b", deletions: 12, since: Samples.now.rfc3339)
    }
    #expect(check([held]).lines == ["held: iso (12 deletions wait for approval, last success 2 hours ago)"])
    let failing = mirror {
      $0.state = "failing"
      $0.problems = [.init(Samples.problem(.failed, "a", "http-404", "not there"))]
      $0.moreProblems = 1
    }
    #expect(
      check([failing]).lines == [
        "failing: iso (a: not there [http-404], and 1 more problem, last success 2 hours ago)"
      ])
    let unreachable = mirror { ($0.state, $0.lastFailure) = ("failing", "the server is gone") }
    #expect(check([unreachable]).lines == ["failing: iso (the server is gone, last success 2 hours ago)"])
    for state in ["idle", "interrupted", "paused"] {
      #expect(check([mirror { $0.state = state }]).isGood, "\(state)")
    }
  }

  /// Its last success may be of an hour ago: the files are missing all the same.
  @Test func aPassThatWasEndedLeavesFilesMissing() {
    let ended = mirror {
      $0.state = "interrupted"
      $0.entries.current = $0.entries.wanted - 2
    }
    let check = check([ended])
    #expect(
      check.lines == [
        "interrupted: iso (2 files missing, because the last pass was ended; last success 2 hours ago)"
      ])
    #expect(NagiosStatus(check) == .warning)
  }

  /// Whoever pauses a mirror that fails has not mended it.
  @Test func aPauseHidesNothing() {
    let failing = mirror {
      $0.state = "paused"
      $0.problems = [.init(Samples.problem(.failed, "a", "http-404", "not there"))]
    }
    #expect(
      check([failing]).lines == ["failing: iso (a: not there [http-404], last success 2 hours ago)"])
    #expect(NagiosStatus(check([failing])) == .warning)
    let cut = mirror {
      $0.state = "paused"
      $0.entries.current = $0.entries.wanted - 1
    }
    #expect(
      check([cut]).lines == [
        "interrupted: iso (1 file missing, because the mirror is paused; last success 2 hours ago)"
      ])
  }

  /// What is at work is not good only because it is at work.
  @Test func aPassAtWorkHidesNothing() {
    for (code, isGood) in [
      ("in-sync", true), ("stopped", true), ("held", true), ("partial", false), ("http-404", false),
    ] {
      let document = mirror {
        ($0.state, $0.process) = ("reading", 7)
        $0.lastRun = .init(number: 1, code: code, message: "m", exitStatus: 3)
      }
      #expect(check([document]).isGood == isGood, "\(code)")
    }
    let held = mirror {
      ($0.state, $0.process) = ("reading", 7)
      $0.held = StatusDocument.Held(plan: "1a2b", deletions: 1, since: Samples.now.rfc3339)
    }
    #expect(check([held]).lines == ["held: iso (1 deletion waits for approval, last success 2 hours ago)"])
  }

  @Test func whatIsMissingIsToldBesideWhatIsHeld() {
    let held = mirror {
      $0.held = StatusDocument.Held(plan: "1a2b3c4d", deletions: 6, since: Samples.now.rfc3339)
      $0.entries.current -= 8
    }
    #expect(
      check([held]).lines == [
        "held: iso (6 deletions wait for approval, 8 files missing, last success 2 hours ago)"
      ])
  }

  // MARK: Nagios

  @Test func aPluginTellsStateAndData() {
    #expect(
      NagiosText.lines(check([mirror { $0.name = "a=b|c'd" }])) == [
        "TARN OK: in sync within 24 hours: 1 mirror, last success 2 hours ago | 'a_b_c''d age'=7200s;;86400;0 "
          + "'a_b_c''d missing'=0;;;0;1234 'a_b_c''d size'=3435973837B;;;0"
      ])
    let failing = mirror { ($0.state, $0.lastFailure) = ("failing", "a | b") }
    let warning = NagiosText.lines(check([failing, Samples.status()]))
    #expect(warning.count == 1)
    #expect(
      warning[0].hasPrefix("TARN WARNING: failing: iso (a / b, last success 2 hours ago) | 'iso age'=7200s"))
    let critical = NagiosText.lines(check([failing, mirror { ($0.name, $0.lastSuccess) = ("b", nil) }]))
    #expect(critical[0].hasPrefix("TARN CRITICAL: 2 not good of 2 mirrors | "))
    #expect(critical.count == 3 && critical[0].contains(" 'b age'=U;;86400;0 "), "\(critical)")
  }

  /// One of the user's settings, and one of the system's agent.
  @Test func mirrorsOfOneNameAreToldByTheirFolders() {
    let both = [Samples.status(), Samples.status()].enumerated().map { index, status in
      var status = status
      (status.name, status.folder, status.lastSuccess) = ("iso", "/srv/\(index)", nil)
      return status
    }
    let found = check(both)
    #expect(found.lines.count == 2 && found.lines[0].hasPrefix("late: iso in /srv/0 ("), "\(found.lines)")
    let plugin = NagiosText.lines(found)[0]
    #expect(plugin.contains("'iso in /srv/0 missing'="), "\(plugin)")
    let table = StatusText.table(both, now: Samples.now, style: Style(isOn: false))
    #expect(table[1].hasPrefix("iso in /srv/0  ") && table[2].hasPrefix("iso in /srv/1  "), "\(table)")
  }

  /// A threshold on what is missing would take zero for perfect.
  @Test func whereNothingIsKnownTheFiguresAreUndetermined() {
    func lines(_ state: String, _ failure: String?) -> [String] {
      var unread = StatusDocument(name: "iso", feed: "http://h/S", folder: "/srv/iso", state: state)
      (unread.lastSuccess, unread.lastFailure) = (Samples.status().lastSuccess, failure)
      return NagiosText.lines(check([unread]))
    }
    let gone = lines("failing", "its folder was moved")
    #expect(
      gone[0].hasSuffix(" | 'iso age'=7200s;;86400;0 'iso missing'=U;;;0 'iso size'=U;;;0"), "\(gone)")
    #expect(lines("idle", nil)[0].contains("'iso missing'=0;;;0;0"))
  }

  @Test func whatCannotBeLookedAtIsUnknown() {
    var unknown = check([Samples.status()])
    unknown.failures = [PassFailure(.permission, code: "c", "no access")]
    #expect(NagiosStatus(unknown) == .unknown && !unknown.isGood)
    #expect(NagiosText.lines(unknown)[0].hasPrefix("TARN UNKNOWN: unknown: no access | "))
    unknown.failures = [PassFailure(.permission, code: "c", "no access", hint: "did you mean 'm'?")]
    #expect(unknown.lines == ["unknown: no access; did you mean 'm'?"])
    #expect(NagiosStatus(check([])) == .unknown)
    // What is critical goes first.
    var both = check([mirror { $0.lastSuccess = Self.late }])
    both.failures = unknown.failures
    #expect(NagiosStatus(both) == .critical)
    #expect(NagiosText.lines(both)[0].hasPrefix("TARN CRITICAL: 1 not good of 1 mirror, 1 error | "))
  }

  /// Settings with errors are no mirror.
  @Test func settingsThatWereNotTakenAreToldBesideTheMirrors() {
    func first(_ documents: [StatusDocument]) -> String {
      var faulty = check(documents)
      faulty.settingsFailure = PassFailure(.configuration, code: "settings", "2 errors in t.toml")
      #expect(!faulty.isGood)
      return NagiosText.lines(faulty)[0]
    }
    #expect(first([Samples.status()]).hasPrefix("TARN UNKNOWN: unknown: 2 errors in t.toml | "))
    let failing = mirror { ($0.state, $0.lastFailure) = ("failing", "a") }
    #expect(
      first([failing]).hasPrefix("TARN WARNING: 1 not good of 1 mirror, and the settings have errors | "))
  }

  @Test(
    arguments: [
      (["status", "--check", "--format", "nagios", "nowhere/m"], 3),
      (["status", "--check", "--format", "nagios", "/"], 3),
      (["status", "--check", "--format=nagios"], 3),
      // A name that is mistyped.
      (["status", "--check", "--format", "nagios", "nobody"], 3),
    ] as [([String], Int32)])
  func theProgramEndsAsAPluginDoes(_ arguments: [String], _ status: Int32) throws {
    let result = try TarnBinary.run(arguments)
    #expect(result.output.hasPrefix("TARN UNKNOWN: "), "\(result)")
    #expect(result.status == status && result.messages == "")
  }

  @Test(arguments: [
    ["status", "--format", "nagios"], ["status", "--check", "--format", "nagios", "--json"],
  ])
  func theFormatGoesWithTheCheck(_ arguments: [String]) throws {
    #expect(try TarnBinary.run(arguments).status == 64)
  }
}
