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
    case .delete: "Whether files that a complete feed no longer names go to the trash"
    case .include: "Mirror only paths that match, as in .gitignore"
    case .exclude: "Leave out paths that match"
    case .keep: "How many of the newest files of an RSS, Atom or JSON feed to keep"
    case .maxAge: "How old files of such a feed may be"
    case .template: "How to name new files of such a feed"
    case .deleteLimit:
      "How many files may be lost within 24 hours; further deletions wait for approval; unset: 10%, at least 3 and at most 1000"
    case .keepTrash:
      "How long deleted and replaced files stay in the trash; what you wrote stays until you empty it"
    case .localChanges:
      "What to do with edited or deleted files; unset: restore; keep for RSS, Atom and JSON Feed"
    case .publishLast:
      "Put matching files in place after all others; unset: well-known index files"
    case .keepList:
      "Whether to keep a checksum list beside the files that it names, and publish it after them"
    case .portableNames:
      "Whether to refuse names that other systems cannot store; unset: only names made for RSS, Atom and JSON Feed are changed to fit"
    case .format: "How to read the feed; links: the links of a web page that lead below it"
    case .connections: "How many connections the mirror uses"
    case .connectionsPerHost: "How many connections the mirror uses to one host"
    case .retries: "How many attempts follow the first"
    case .limitRate: "The rate of this mirror, in bytes per second"
    case .reserve: "How much of the file system to leave free"
    case .headerFile: "Send the 'Name: value' lines of this file, to the feed's host only"
    case .cookies: "Send the cookies of a Netscape cookie file"
    case .netrc: "Whether to take names and passwords from ~/.netrc"
    case .netrcFile: "Take names and passwords from this file"
    case .cacert: "Trust the certificate authorities in this PEM file"
    case .proxy: "Use a proxy: http://host:port or socks5h://host:port"
    case .userAgent: "The user agent to send; unset: tarn/VERSION"
    }
  }
}
