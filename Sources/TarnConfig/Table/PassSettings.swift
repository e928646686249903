import TarnCore

extension PassOptions.Name {
  /// The option as a setting of a mirror. `PassOptions` itself checks the values. The bounds here serve
  /// editors, and a test keeps both the same.
  var setting: Setting {
    let form = form
    return Setting(
      scope: .mirror, name: rawValue, kind: form.kind, help: help, standard: form.standard,
      example: form.example, option: self)
  }

  /// The kind of the setting, its standard value and an example, the last two as TOML.
  private var form: (kind: SettingKind, standard: String?, example: String) {
    let network = NetworkSettings()
    return switch self {
    case .delete: (.boolean, "false", "true")
    case .include: (.patterns, nil, "[\"*.iso\", \"docs/\"]")
    case .exclude: (.patterns, nil, "[\"*.tmp\", \"old/\"]")
    case .keep: (.number(1...1_000_000, or: "all"), "\"all\"", "20")
    case .maxAge: (.span(or: "off"), "\"off\"", "\"90d\"")
    case .template:
      (.text(NameTemplate.help), "\"{date} {title}.{ext}\"", "\"{date} {title} {id8}.{ext}\"")
    case .deleteLimit: (.limit, nil, "\"25%\"")
    case .keepTrash: (.span(or: "all"), "\"7d\"", "\"30d\"")
    case .localChanges: (.choice(PassPolicy.LocalChanges.allCases.map(\.rawValue)), nil, "\"report\"")
    case .publishLast: (.patterns, nil, "[\"index.html\", \"SHA256SUMS\"]")
    case .keepList: (.boolean, "true", "false")
    case .portableNames: (.boolean, nil, "true")
    case .format: (.choice(FormatChoice.allCases.map(\.rawValue)), "\"auto\"", "\"links\"")
    case .connections: (.number(1...256, or: nil), String(network.connections), "4")
    case .connectionsPerHost: (.number(1...64, or: nil), String(network.connectionsPerHost), "2")
    case .retries: (.number(0...100, or: nil), String(PassPolicy().retries), "3")
    case .limitRate: (.rate, "\"off\"", "\"2MiB/s\"")
    case .reserve: (.reserve, "\"1%\"", "\"10GiB\"")
    case .headerFile: (.secretFile, nil, "{ credential = \"iso-headers\" }")
    case .cookies: (.secretFile, nil, "{ file = \"/etc/tarn/secret/cookies.txt\" }")
    case .netrc: (.boolean, "false", "true")
    case .netrcFile: (.secretFile, nil, "\"/etc/tarn/secret/netrc\"")
    case .cacert: (.path, nil, "\"/etc/ssl/certs/example.pem\"")
    case .proxy: (.secretURL, nil, "\"http://proxy.example.org:3128\"")
    case .userAgent: (.text(PassOptions.userAgentRule), nil, "\"Mozilla/5.0 (compatible)\"")
    }
  }

  private var help: String {
    switch self {
    case .delete: "Move to the trash what a complete feed no longer names"
    case .include: "Only paths that match, as in .gitignore"
    case .exclude: "No paths that match"
    case .keep: "Of RSS, Atom and JSON Feed: the newest so many files"
    case .maxAge: "Of these, none older than that"
    case .template: "How new files of these are named"
    case .deleteLimit:
      "How many files may be lost within 24 hours; more deletions wait for approval; unset: 10%, at most 1000"
    case .keepTrash: "How long deleted and replaced files stay in the trash; what you wrote stays longer"
    case .localChanges:
      "What to do with edited or vanished files; unset: restore, for RSS, Atom and JSON Feed keep"
    case .publishLast:
      "Files that name others, put in place after them; unset: the index files that Tarn knows"
    case .keepList: "Keep a checksum list beside the files that it names, put in place after them"
    case .portableNames:
      "Refuse names that other systems cannot store; unset: only the names that RSS, Atom and JSON Feed get are made to fit"
    case .format: "What the feed is read as; links: the links that lead below a web page"
    case .connections: "Connections in all"
    case .connectionsPerHost: "Connections to one host"
    case .retries: "Attempts after the first"
    case .limitRate: "Bytes per second of this mirror"
    case .reserve: "Leave so much of the file system free"
    case .headerFile: "Send the 'Name: value' lines of this file, to the feed's own host only"
    case .cookies: "Send cookies of a Netscape cookie file"
    case .netrc: "Take names and passwords from ~/.netrc"
    case .netrcFile: "Take them from this file"
    case .cacert: "Trust these certificate authorities (PEM)"
    case .proxy: "http://host:port or socks5h://host:port"
    case .userAgent: "What servers are told who asks; unset: tarn/VERSION"
    }
  }
}
