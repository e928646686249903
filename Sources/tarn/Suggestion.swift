import ArgumentParser
import TarnCore

/// What a user probably meant by an unknown command.
enum Suggestion {
  /// The commands of other tools, and the words to type for them in Tarn.
  static let otherWords = [
    "pull": "sync", "refresh": "sync", "restart": "reload", "undo": "trash restore", "fetch": "sync",
    "mirror": "sync", "update": "sync", "run": "sync",
    "clone": "sync FEED FOLDER", "download": "get", "wget": "get", "curl": "get",
    "copy": "sync FEED FOLDER", "setup": "init", "create": "add FEED FOLDER", "new": "add FEED FOLDER",
    "import": "feeds", "opml": "feeds", "subscribe": "add FEED FOLDER", "follow": "add FEED FOLDER",
    "diff": "plan", "dry-run": "plan", "ls": "status", "list": "status", "info": "status", "show": "status",
    "top": "status --watch", "watch": "status --watch", "ps": "status", "mirrors": "status", "jobs": "status",
    "why": "explain", "check": "verify", "fsck": "verify", "repair": "verify --repair", "scrub": "verify",
    "rm": "remove", "delete": "remove", "del": "remove", "unfollow": "remove",
    "undelete": "trash restore", "restore": "trash restore", "prune": "trash empty", "clean": "trash empty",
    "gc": "trash empty",
    "log": "events", "logs": "events", "history": "events", "journal": "events", "tail": "events --follow",
    "start": "agent", "daemon": "agent", "serve": "agent", "server": "agent", "service": "agent",
    "enable": "resume", "disable": "pause", "purge": "trash empty", "validate": "config check",
    "stop": "pause --all", "kill": "cancel", "abort": "cancel", "unpause": "resume", "continue": "resume",
    "throttle": "limit", "rate": "limit", "bwlimit": "limit", "priority": "prioritize",
    "settings": "config show", "options": "config show", "set": "config", "unset": "config unset",
    "timer": "schedule", "cron": "schedule", "completions": "completion bash",
    "complete": "completion bash", "diagnose": "doctor", "health": "doctor", "bugreport": "report",
    "support": "report", "bundle": "report", "version": "--version",
  ]

  /// What is no command and has a manual page.
  private static let pages = [
    "hook": "tarn-hooks", "hooks": "tarn-hooks", "webhook": "tarn-hooks", "notify": "tarn-hooks",
    "metrics": "tarn-metrics", "prometheus": "tarn-metrics", "formats": "7 tarn-feeds",
    "manifest": "tarn-manifest", "toml": "tarn.toml",
  ]

  /// The words below a command that has subcommands.
  private static let wordsBelow = [
    "tarn trash": [
      "ls": "list", "show": "list", "status": "list", "rm": "empty", "remove": "empty", "delete": "empty",
      "purge": "empty", "clear": "empty", "clean": "empty", "prune": "empty", "undo": "restore",
      "recover": "restore", "get": "restore",
    ],
    "tarn session": [
      "ls": "list", "sessions": "list", "rm": "forget", "remove": "forget", "delete": "forget",
      "end": "forget", "status": "show", "info": "show", "tasks": "show", "start": "open", "new": "open",
      "create": "open", "make": "open", "config": "set", "log": "events", "watch": "events --follow",
      "add": "tarn get --background --session ID URL", "get": "tarn get --background --session ID URL",
      "cancel": "tarn cancel session:ID", "stop": "tarn pause session:ID", "pause": "tarn pause session:ID",
      "suspend": "tarn pause session:ID", "resume": "tarn resume session:ID",
      "retry": "tarn retry session:ID", "prioritize": "tarn prioritize session:ID",
    ],
    "tarn config": [
      "get": "show", "list": "show", "ls": "show", "cat": "show", "print": "show", "dump": "show",
      "validate": "check", "test": "check", "lint": "check", "verify": "check", "rm": "unset",
      "remove": "unset", "delete": "unset", "reset": "unset",
    ],
  ]

  /// A word that stands for a command and is none.
  struct Unknown: Equatable {
    /// The commands before it: `tarn trash`.
    var command: String
    var word: String
    /// A command below that one, or a whole line.
    var suggestion: String?
    /// True when the word may name a mirror instead: `tarn trash iso` lists the trash of one.
    var mayBeMirror = false
  }

  /// - Parameter arguments: the words without the program's name.
  /// - Returns: `nil` when every command is known.
  static func unknown(_ arguments: [String]) -> Unknown? {
    var type: any ParsableCommand.Type = Root.self
    var path = "tarn"
    for (index, word) in arguments.enumerated() {
      let commands = type.configuration.subcommands
      guard !commands.isEmpty, !word.hasPrefix("-") else { return nil }
      if index == 0, word == "help" { continue }
      guard let next = commands.first(where: { $0.configuration.commandName == word }) else {
        let names = commands.compactMap { $0.configuration.commandName }
        let suggestion = nearest(word, names, below: path)
        let mayBeMirror = type == TrashCommand.self
        guard suggestion != nil || !mayBeMirror else { return nil }
        return Unknown(command: path, word: word, suggestion: suggestion, mayBeMirror: mayBeMirror)
      }
      type = next
      path += " \(word)"
    }
    return nil
  }

  private static func nearest(_ word: String, _ names: [String], below path: String) -> String? {
    let word = word.lowercased()
    let words = path == "tarn" ? otherWords : wordsBelow[path] ?? [:]
    if let known = words[word] { return known }
    if path == "tarn", let page = pages[word] { return "man \(page)" }
    return Spelling.nearest(word, names)
  }
}
