import ArgumentParser
import TarnCore
import TarnEngine
import Testing

@testable import tarn

/// The tables that are kept in one place each, against what they promise.
@Suite struct TableTests {
  /// README, Exit status.
  @Test func exitStatusesAreTheContract() throws {
    let contract: [Int32] = [0, 2, 3, 64, 65, 66, 69, 70, 73, 74, 75, 77, 78, 130, 143]
    #expect(ExitStatus.allCases.map(\.rawValue) == contract)
    let result = try TarnBinary.run(["help", "exit-status"])
    #expect(result.status == 0)
    try Golden.check(result.output, "exit-status")
  }

  @Test func everyFailureHasItsExitStatus() {
    let table: [(PassFailure.Kind, Int32)] = [
      (.usage, 64), (.feedMalformed, 65), (.feedUnreachable, 66), (.folderUnusable, 73), (.inputOutput, 74),
      (.locked, 75), (.permission, 77), (.configuration, 78), (.noAgent, 69), (.stopped, 130), (.defect, 70),
    ]
    #expect(table.count == PassFailure.Kind.allCases.count)
    for (kind, status) in table { #expect(ExitStatus(kind).rawValue == status, "\(kind)") }
    #expect(ExitStatus(.stopped, signal: 15) == .terminated)
    #expect(ExitStatus(.stopped, signal: 2) == .interrupted)
  }

  @Test func reportsHaveTheirExitStatus() {
    var report = Samples.report()
    #expect(ExitStatus(report) == .inSync)
    report.counts.refused = 1
    #expect(ExitStatus(report) == .partial)
    report.wasStopped = true
    #expect(ExitStatus(report, signal: 15) == .terminated)
    var held = Samples.report()
    held.counts.held = 2
    #expect(ExitStatus(held) == .partial)
  }

  @Test func worstOfSeveral() {
    #expect(ExitStatus.worst([]) == .inSync)
    #expect(ExitStatus.worst([.inSync, .partial]) == .partial)
    #expect(
      ExitStatus.worst([.partial, .failed(.feedUnreachable), .failed(.inputOutput)])
        == .failed(.feedUnreachable))
    #expect(ExitStatus.worst([.failed(.feedUnreachable), .interrupted]) == .interrupted)
  }

  /// The options of a pass in the help texts are those of `PassOptions.Name`, and a few that are not remembered.
  @Test(arguments: ["sync", "plan"]) func passOptionsAreTheTable(_ command: String) throws {
    let help = try TarnBinary.run([command, "--help"]).output
    let sections = help.split(separator: "\n").drop { $0 != "WHAT IS MIRRORED:" }.prefix { $0 != "OPTIONS:" }
    let words = sections.filter { $0.hasPrefix("  --") }.map { line in
      String(line.dropFirst(4).prefix { $0 != " " && $0 != "/" })
    }
    let notRemembered: Set = ["adopt", "change-feed", "recreate", "state"]
    #expect(Set(words).subtracting(notRemembered) == Set(PassOptions.Name.allCases.map(\.rawValue)))
    #expect(Set(words).isSuperset(of: notRemembered))
    #expect(words.count == Set(words).count)
  }

  @Test(arguments: PassOptions.Name.allCases) func passOptionsAreGivenOn(_ name: PassOptions.Name) throws {
    let given: [String]
    let wanted: [String]
    switch name {
    case .delete, .keepList, .portableNames, .netrc:
      (given, wanted) = (["--no-\(name.rawValue)"], ["false"])
      let on = try PassFlags.parse(["--\(name.rawValue)"]).options(workingDirectory: "/w")
      #expect(on.values == [name: ["true"]])
    case .include, .exclude, .publishLast:
      (given, wanted) = (["--\(name.rawValue)", "a", "--\(name.rawValue)", "b"], ["a", "b"])
    case .format: (given, wanted) = (["--format", "links"], ["links"])
    case .localChanges: (given, wanted) = (["--local-changes", "keep"], ["keep"])
    case .keep: (given, wanted) = (["--keep", "3"], ["3"])
    case .maxAge: (given, wanted) = (["--max-age", "90d"], ["90d"])
    case .deleteLimit: (given, wanted) = (["--delete-limit", "25%"], ["25%"])
    case .keepTrash: (given, wanted) = (["--keep-trash", "30d"], ["30d"])
    case .template: (given, wanted) = (["--template", "{title}.{ext}"], ["{title}.{ext}"])
    case .connections, .connectionsPerHost, .retries: (given, wanted) = (["--\(name.rawValue)", "3"], ["3"])
    case .limitRate: (given, wanted) = (["--limit-rate", "off"], ["off"])
    case .reserve: (given, wanted) = (["--reserve", "1%"], ["1%"])
    case .proxy: (given, wanted) = (["--proxy", "http://p:1"], ["http://p:1"])
    case .userAgent: (given, wanted) = (["--user-agent", "Mozilla/5.0"], ["Mozilla/5.0"])
    case .headerFile, .cookies, .netrcFile, .cacert:
      (given, wanted) = (["--\(name.rawValue)", "f"], ["/w/f"])
    }
    #expect(try PassFlags.parse(given).options(workingDirectory: "/w").values == [name: wanted])
  }

  @Test func nothingGivenIsNothingRemembered() throws {
    #expect(try PassFlags.parse([]).options(workingDirectory: "/w").values.isEmpty)
  }
}
