import ArgumentParser
import TarnCore

extension NameSpecification {
  /// Returns the option of a pass with the name from the common table.
  static func pass(_ name: PassOptions.Name) -> NameSpecification { .customLong(name.rawValue) }
}

/// The options of a pass. Only given options are passed on: the mirror remembers the rest.
struct PassFlags: ParsableArguments {
  @OptionGroup(title: "What is mirrored") var selection: SelectionFlags
  @OptionGroup(title: "The folder") var folder: FolderFlags
  @OptionGroup(title: "The network") var network: NetworkFlags

  /// True when `--adopt` is the only option.
  var onlyAdopts: Bool {
    folder.adopt && folder.state == nil && options(workingDirectory: "").values.isEmpty
  }

  /// - Parameter directory: the base of relative file names, which are remembered as absolute ones.
  func options(workingDirectory directory: String) -> PassOptions {
    Self.options([selection.given, folder.given, network.given], workingDirectory: directory)
  }

  static func options(
    _ groups: [[PassOptions.Name: [String]]], workingDirectory directory: String
  ) -> PassOptions {
    var values: [PassOptions.Name: [String]] = [:]
    for group in groups { values.merge(group) { $1 } }
    for name in [PassOptions.Name.headerFile, .cookies, .netrcFile, .cacert] {
      values[name] = values[name]?.map { $0.isEmpty || $0.hasPrefix("/") ? $0 : "\(directory)/\($0)" }
    }
    return PassOptions(values: values)
  }

  func validate() throws { try Self.validate(options(workingDirectory: "")) }

  static func validate(_ options: PassOptions) throws {
    do throws(PassOptions.Failure) {
      _ = try options.policy()
      _ = try options.network()
    } catch {
      throw ValidationError(error.message)
    }
  }
}

struct SelectionFlags: ParsableArguments {
  @Option(
    name: .pass(.include),
    help: ArgumentHelp("Only paths that match, as in .gitignore; repeatable.", valueName: "pattern"))
  var include: [String] = []
  @Option(name: .pass(.exclude), help: ArgumentHelp("No paths that match; repeatable.", valueName: "pattern"))
  var exclude: [String] = []
  @Option(
    name: .pass(.keep), parsing: .unconditional,
    help: ArgumentHelp("Of RSS, Atom and JSON Feed: the newest n files; all for no limit.", valueName: "n"))
  var keep: String?
  @Option(
    name: .pass(.maxAge), parsing: .unconditional,
    help: ArgumentHelp("Of these, none older than a span such as 90d; off for no limit.", valueName: "span"))
  var maxAge: String?
  @Option(
    name: .pass(.template),
    help: ArgumentHelp(
      "How new files of these are named: \(NameTemplate.fields).", valueName: "text"))
  var template: String?
  @Option(
    name: .pass(.publishLast),
    help: ArgumentHelp("Files that name others, put in place after them; repeatable.", valueName: "pattern"))
  var publishLast: [String] = []
  @Flag(
    name: .pass(.keepList), inversion: .prefixedNo,
    help:
      "Keep a checksum list beside the files that it names, and put it in place after them; on unless it is turned off."
  )
  var keepList: Bool?
  @Flag(
    name: .pass(.portableNames), inversion: .prefixedNo,
    help:
      "Refuse names that other systems cannot store; the names that files of podcasts get are changed to fit, unless it is off."
  )
  var portableNames: Bool?
  @Option(
    name: .pass(.format),
    help: ArgumentHelp(
      "Read the feed as \(FormatChoice.words); links: those of a web page that lead below it.",
      valueName: "name"),
    completion: .list(FormatChoice.allCases.map(\.rawValue)))
  var format: String?

  var given: [PassOptions.Name: [String]] {
    var values: [PassOptions.Name: [String]] = [:]
    if !include.isEmpty { values[.include] = include }
    if !exclude.isEmpty { values[.exclude] = exclude }
    values[.keep] = keep.map { [$0] }
    values[.maxAge] = maxAge.map { [$0] }
    values[.template] = template.map { [$0] }
    if !publishLast.isEmpty { values[.publishLast] = publishLast }
    values[.keepList] = keepList.map { [String($0)] }
    values[.portableNames] = portableNames.map { [String($0)] }
    values[.format] = format.map { [$0] }
    return values
  }
}

/// The options for the folder, which apply to all passes.
struct FolderPolicyFlags: ParsableArguments {
  @Flag(
    name: .pass(.delete), inversion: .prefixedNo,
    help: "Move to the trash what a complete feed no longer names.")
  var delete: Bool?
  @Option(
    name: .pass(.deleteLimit), parsing: .unconditional,
    help: ArgumentHelp(
      "Hold deletions beyond so many lost files in 24 hours: 10%, a number, or off.", valueName: "limit"))
  var deleteLimit: String?
  @Option(
    name: .pass(.keepTrash),
    help: ArgumentHelp(
      "Keep deleted and replaced files so long, such as 7d; all for ever.", valueName: "span"))
  var keepTrash: String?
  @Option(
    name: .pass(.localChanges),
    help: ArgumentHelp(
      "What to do with edited or vanished files: restore, keep or report.", valueName: "what"),
    completion: .list(PassPolicy.LocalChanges.allCases.map(\.rawValue)))
  var localChanges: String?
  @Option(
    name: .pass(.reserve),
    help: ArgumentHelp("Leave so much of the file system free, such as 10GiB or 1%.", valueName: "size"))
  var reserve: String?

  var given: [PassOptions.Name: [String]] {
    var values: [PassOptions.Name: [String]] = [:]
    values[.delete] = delete.map { [String($0)] }
    values[.deleteLimit] = deleteLimit.map { [$0] }
    values[.keepTrash] = keepTrash.map { [$0] }
    values[.localChanges] = localChanges.map { [$0] }
    values[.reserve] = reserve.map { [$0] }
    return values
  }
}

struct FolderFlags: ParsableArguments {
  @OptionGroup var policy: FolderPolicyFlags
  @Flag(help: "Take a folder that is not empty; what fits the feed becomes the mirror's.") var adopt = false
  @Flag(help: "Make a mirror anew whose folder is gone; all of it is fetched again.") var recreate = false
  @Flag(help: "Follow another feed from now on.") var changeFeed = false
  @Option(
    help: ArgumentHelp(
      "Keep the mirror's record here, not in the folder; same file system.", valueName: "dir"),
    completion: .directory)
  var state: String?

  var given: [PassOptions.Name: [String]] { policy.given }
}

struct NetworkFlags: ParsableArguments {
  @Option(
    name: .pass(.connections), parsing: .unconditional,
    help: ArgumentHelp("Connections in all, 1 to 256.", valueName: "n"))
  var connections: String?
  @Option(
    name: .pass(.connectionsPerHost), parsing: .unconditional,
    help: ArgumentHelp(
      "Connections to one host, 1 to 64; over HTTP/2 files of up to 64 KiB share one's place.",
      valueName: "n"))
  var connectionsPerHost: String?
  @Option(
    name: .pass(.retries), parsing: .unconditional,
    help: ArgumentHelp("Attempts after the first, 0 to 100.", valueName: "n"))
  var retries: String?
  @Option(
    name: .pass(.limitRate),
    help: ArgumentHelp("Bytes per second, such as 2MiB/s, or off.", valueName: "rate"))
  var limitRate: String?
  @Option(
    name: .pass(.headerFile),
    help: ArgumentHelp("Send these 'Name: value' lines, to the feed's own host only.", valueName: "file"),
    completion: .file())
  var headerFile: String?
  @Option(
    name: .pass(.cookies), help: ArgumentHelp("Send cookies of a Netscape cookie file.", valueName: "file"),
    completion: .file())
  var cookies: String?
  @Flag(name: .pass(.netrc), inversion: .prefixedNo, help: "Take names and passwords from ~/.netrc.")
  var netrc: Bool?
  @Option(
    name: .pass(.netrcFile), help: ArgumentHelp("Take them from this file.", valueName: "file"),
    completion: .file())
  var netrcFile: String?
  @Option(
    name: .pass(.cacert), help: ArgumentHelp("Trust these certificate authorities (PEM).", valueName: "file"),
    completion: .file())
  var cacert: String?
  @Option(
    name: .pass(.proxy), help: ArgumentHelp("http://host:port or socks5h://host:port.", valueName: "url"))
  var proxy: String?
  @Option(
    name: .pass(.userAgent),
    help: ArgumentHelp("What servers are told who asks, in place of tarn/VERSION.", valueName: "text"))
  var userAgent: String?

  var given: [PassOptions.Name: [String]] {
    var values: [PassOptions.Name: [String]] = [:]
    values[.connections] = connections.map { [$0] }
    values[.connectionsPerHost] = connectionsPerHost.map { [$0] }
    values[.retries] = retries.map { [$0] }
    values[.limitRate] = limitRate.map { [$0] }
    values[.headerFile] = headerFile.map { [$0] }
    values[.cookies] = cookies.map { [$0] }
    values[.netrc] = netrc.map { [String($0)] }
    values[.netrcFile] = netrcFile.map { [$0] }
    values[.cacert] = cacert.map { [$0] }
    values[.proxy] = proxy.map { [$0] }
    values[.userAgent] = userAgent.map { [$0] }
    return values
  }
}
