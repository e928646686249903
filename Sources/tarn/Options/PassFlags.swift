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
    try refuseDoubt(ofRate: options.last(.limitRate))
  }

  /// Refuses a rate that is probably a mistake.
  static func refuseDoubt(ofRate text: String?) throws {
    guard let doubt = text.flatMap(Units.doubt(ofRate:)) else { return }
    throw ValidationError(Printable.escape(doubt))
  }
}

struct SelectionFlags: ParsableArguments {
  @Option(
    name: .pass(.include),
    help: ArgumentHelp("Mirror only paths that match, as in .gitignore. Repeatable.", valueName: "pattern"))
  var include: [String] = []
  @Option(
    name: .pass(.exclude),
    help: ArgumentHelp("Leave out paths that match. Repeatable.", valueName: "pattern"))
  var exclude: [String] = []
  @Option(
    name: .pass(.keep), parsing: .unconditional,
    help: ArgumentHelp(
      "Keep the newest n files of an RSS, Atom or JSON feed; all removes the limit.", valueName: "n"))
  var keep: String?
  @Option(
    name: .pass(.maxAge), parsing: .unconditional,
    help: ArgumentHelp(
      "Keep only younger files of such a feed, such as 90d; off removes the limit.", valueName: "span"))
  var maxAge: String?
  @Option(
    name: .pass(.template),
    help: ArgumentHelp(
      "Name new files of such a feed after this template: \(NameTemplate.fields).", valueName: "text"))
  var template: String?
  @Option(
    name: .pass(.publishLast),
    help: ArgumentHelp(
      "Put matching files in place after all others. Repeatable. Default: well-known index files.",
      valueName: "pattern"))
  var publishLast: [String] = []
  @Flag(
    name: .pass(.keepList), inversion: .prefixedNo,
    help:
      "Keep a checksum list beside the files that it names, and publish it after them. Default: --keep-list."
  )
  var keepList: Bool?
  @Flag(
    name: .pass(.portableNames), inversion: .prefixedNo,
    help:
      "Refuse names that other systems cannot store. Default: only change the names that Tarn makes for podcasts."
  )
  var portableNames: Bool?
  @Option(
    name: .pass(.format),
    help: ArgumentHelp(
      "Read the feed as \(FormatChoice.words). links: the links of a web page that lead below it. Default: auto.",
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
    help: "Move files to the trash that a complete feed no longer names. Default: --no-delete.")
  var delete: Bool?
  @Option(
    name: .pass(.deleteLimit), parsing: .unconditional,
    help: ArgumentHelp(
      "Hold deletions beyond this many lost files in 24 hours: a share, a number or off. Default: 10%, at least 3.",
      valueName: "limit"))
  var deleteLimit: String?
  @Option(
    name: .pass(.keepTrash),
    help: ArgumentHelp(
      "Keep deleted and replaced files this long, or all for ever. Default: 7d.", valueName: "span"))
  var keepTrash: String?
  @Option(
    name: .pass(.localChanges),
    help: ArgumentHelp(
      "What to do with edited or deleted files: restore, keep or report. "
        + "Default: restore; for RSS, Atom and JSON Feed, keep.", valueName: "what"),
    completion: .list(PassPolicy.LocalChanges.allCases.map(\.rawValue)))
  var localChanges: String?
  @Option(
    name: .pass(.reserve),
    help: ArgumentHelp(
      "Leave this much of the file system free, such as 10GiB. Default: 1%.", valueName: "size"))
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
  @Flag(help: "Take a folder that is not empty. Files that match the feed become the mirror's.")
  var adopt = false
  @Flag(help: "Make the mirror anew if its folder is gone. Everything is downloaded again.") var recreate =
    false
  @Flag(help: "Follow another feed from now on.") var changeFeed = false
  @Option(
    help: ArgumentHelp(
      "Keep the mirror's state in this directory, on the same file system.", valueName: "dir"),
    completion: .directory)
  var state: String?

  var given: [PassOptions.Name: [String]] { policy.given }
}

struct NetworkFlags: ParsableArguments {
  @Option(
    name: .pass(.connections), parsing: .unconditional,
    help: ArgumentHelp("Use at most n connections, 1 to 256. Default: 16.", valueName: "n"))
  var connections: String?
  @Option(
    name: .pass(.connectionsPerHost), parsing: .unconditional,
    help: ArgumentHelp(
      "Use at most n connections to one host, 1 to 64. Over HTTP/2, files of up to 64 KiB share one. "
        + "Default: 6.",
      valueName: "n"))
  var connectionsPerHost: String?
  @Option(
    name: .pass(.retries), parsing: .unconditional,
    help: ArgumentHelp("Try a transfer n more times after it fails, 0 to 100. Default: 5.", valueName: "n"))
  var retries: String?
  @Option(
    name: .pass(.limitRate),
    help: ArgumentHelp("Limit the rate, such as 2MiB/s; off removes the limit.", valueName: "rate"))
  var limitRate: String?
  @Option(
    name: .pass(.headerFile),
    help: ArgumentHelp(
      "Send the 'Name: value' lines of this file, to the feed's host only.", valueName: "file"),
    completion: .file())
  var headerFile: String?
  @Option(
    name: .pass(.cookies),
    help: ArgumentHelp("Send the cookies of a Netscape cookie file.", valueName: "file"),
    completion: .file())
  var cookies: String?
  @Flag(name: .pass(.netrc), inversion: .prefixedNo, help: "Take names and passwords from ~/.netrc.")
  var netrc: Bool?
  @Option(
    name: .pass(.netrcFile),
    help: ArgumentHelp("Take names and passwords from this file.", valueName: "file"),
    completion: .file())
  var netrcFile: String?
  @Option(
    name: .pass(.cacert),
    help: ArgumentHelp("Trust the certificate authorities in this PEM file.", valueName: "file"),
    completion: .file())
  var cacert: String?
  @Option(
    name: .pass(.proxy),
    help: ArgumentHelp("Use a proxy: http://host:port or socks5h://host:port.", valueName: "url"))
  var proxy: String?
  @Option(
    name: .pass(.userAgent),
    help: ArgumentHelp("Send this user agent. Default: tarn/VERSION.", valueName: "text"))
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
