import TarnCore

extension PassOptions.Name {
  /// The option as a setting of a mirror. What it takes is checked by `PassOptions` itself; the bounds here serve
  /// editors, and a test holds them to the same.
  var setting: Setting {
    let row = row
    return Setting(
      scope: .mirror, name: rawValue, kind: row.kind, help: row.help, standard: row.standard,
      example: row.example, option: self)
  }

  private typealias Row = (kind: SettingKind, help: String, standard: String?, example: String)

  private var row: Row {
    switch self {
    case .delete:
      (.boolean, "Move to the trash what a complete feed no longer names", "false", "true")
    case .include: (.patterns, "Only paths that match, as in .gitignore", nil, "[\"*.iso\", \"docs/\"]")
    case .exclude: (.patterns, "No paths that match", nil, "[\"*.tmp\", \"old/\"]")
    case .keep:
      (
        .number(1...1_000_000, or: "all"), "Of RSS, Atom and JSON Feed: the newest so many files", "\"all\"",
        "20"
      )
    case .maxAge: (.span(or: "off"), "Of these, none older than that", "\"off\"", "\"90d\"")
    case .template:
      (
        .text(NameTemplate.help), "How new files of these are named", "\"{date} {title}.{ext}\"",
        "\"{date} {title} {id8}.{ext}\""
      )
    case .deleteLimit:
      (
        .limit,
        "How many files may be lost within 24 hours; more deletions wait for approval; unset: 10%, at most 1000",
        nil, "\"25%\""
      )
    case .keepTrash:
      (
        .span(or: "all"),
        "How long deleted and replaced files stay in the trash; what you wrote stays longer", "\"7d\"",
        "\"30d\""
      )
    case .localChanges:
      (
        .choice(PassPolicy.LocalChanges.allCases.map(\.rawValue)),
        "What to do with edited or vanished files; unset: restore, for RSS, Atom and JSON Feed keep", nil,
        "\"report\""
      )
    case .publishLast:
      (
        .patterns, "Files that name others, put in place after them; unset: the index files that Tarn knows",
        nil, "[\"index.html\", \"SHA256SUMS\"]"
      )
    case .keepList:
      (
        .boolean, "Keep a checksum list beside the files that it names, put in place after them", "true",
        "false"
      )
    case .portableNames:
      (
        .boolean,
        "Refuse names that other systems cannot store; unset: only the names that RSS, Atom and JSON Feed get are made to fit",
        nil, "true"
      )
    case .format:
      (
        .choice(FormatChoice.allCases.map(\.rawValue)),
        "What the feed is read as; links: the links that lead below a web page", "\"auto\"", "\"links\""
      )
    default: networkRow
    }
  }

  private var networkRow: Row {
    let network = NetworkSettings()
    switch self {
    case .connections:
      return (.number(1...256, or: nil), "Connections in all", String(network.connections), "4")
    case .connectionsPerHost:
      return (.number(1...64, or: nil), "Connections to one host", String(network.connectionsPerHost), "2")
    case .retries:
      return (.number(0...100, or: nil), "Attempts after the first", String(PassPolicy().retries), "3")
    case .limitRate: return (.rate, "Bytes per second of this mirror", "\"off\"", "\"2MiB/s\"")
    case .reserve: return (.reserve, "Leave so much of the file system free", "\"1%\"", "\"10GiB\"")
    case .headerFile:
      return (
        .secretFile, "Send the 'Name: value' lines of this file, to the feed's own host only", nil,
        "{ credential = \"iso-headers\" }"
      )
    case .cookies:
      return (
        .secretFile, "Send cookies of a Netscape cookie file", nil,
        "{ file = \"/etc/tarn/secret/cookies.txt\" }"
      )
    case .netrc: return (.boolean, "Take names and passwords from ~/.netrc", "false", "true")
    case .netrcFile: return (.secretFile, "Take them from this file", nil, "\"/etc/tarn/secret/netrc\"")
    case .cacert:
      return (.path, "Trust these certificate authorities (PEM)", nil, "\"/etc/ssl/certs/example.pem\"")
    case .proxy:
      return (.secretURL, "http://host:port or socks5h://host:port", nil, "\"http://proxy.example.org:3128\"")
    case .userAgent:
      return (
        .text(PassOptions.userAgentRule), "What servers are told who asks, in place of tarn/VERSION", nil,
        "\"Mozilla/5.0 (compatible)\""
      )
    case .delete, .include, .exclude, .keep, .maxAge, .template, .deleteLimit, .keepTrash, .localChanges,
      .publishLast, .keepList, .portableNames, .format:
      return row
    }
  }
}
