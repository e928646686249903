import ArgumentParser
import TarnRuntime

/// The command `tarn completion`.
struct CompletionCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "completion",
    abstract: "Print a script that completes commands, options and names.",
    usage: "tarn completion [options] SHELL",
    discussion: """
      Examples:
        tarn completion bash > ~/.local/share/bash-completion/completions/tarn
        tarn completion zsh > ~/.zsh/_tarn
        tarn completion fish > ~/.config/fish/completions/tarn.fish

      The shell also completes the names of mirrors, sessions and paths. The Debian package installs all three \
      scripts. bash needs the package bash-completion. For zsh, the directory must be in $fpath.
      """)

  enum Shell: String, CaseIterable, ExpressibleByArgument {
    case bash, zsh, fish
  }

  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("bash, zsh or fish.", valueName: "shell")) var shell: Shell

  func run() throws {
    let session = try Session(common)
    let script = Self.script(shell)
    if session.isJSON {
      session.console.data(JSONText.line(CompletionReport(shell: shell.rawValue, script: script)))
    } else {
      session.console.frame(script)
    }
  }

  /// Returns the script of a shell. The `#!` line of bash's is removed, for the file is only sourced.
  static func script(_ shell: Shell) -> String {
    let kind: CompletionShell =
      switch shell {
      case .bash: .bash
      case .zsh: .zsh
      case .fish: .fish
      }
    var script = Root.completionScript(for: kind)
    switch shell {
    case .bash: mendBash(&script)
    case .zsh: mendZsh(&script)
    case .fish: script += "\n" + fishHelp + "\n" + fishTrash
    }
    guard script.hasPrefix("#!"), let end = script.firstIndex(of: "\n") else { return script + "\n" }
    return script[script.index(after: end)...].drop { $0 == "\n" } + "\n"
  }

  /// Mends what argument-parser does in bash's script.
  ///
  /// - bash would expand the words of `compgen`, and `$(rm x)` in a name would be executed: names go past it.
  /// - bash splits words at `:` and `=`, and a URL would count as several: they are joined where the line has no blank between them.
  /// - Only what the file system offers is a file. Any other word that is a directory as well would get a slash.
  /// - `help` offers the commands, and `trash` the mirrors that its usual command takes.
  private static func mendBash(_ script: inout String) {
    script.replace(
      #"__tarn_add_completions -W "$(__tarn_custom_complete"#,
      with: #"__tarn_add_names "$(__tarn_custom_complete"#)
    script.replace("_tarn() {\n", with: functions + "_tarn() {\n", maxReplacements: 1)
    script.replace(
      #"    local -a unparsed_words=("${COMP_WORDS[@]:1:${COMP_CWORD}}")"#,
      with: "    local -a unparsed_words=()\n    __tarn_join_words")
    script.replace(
      #"    local -r prev="${3}""#,
      with: ##"""
            local prev="${3}"
            [[ "${prev}" != '=' || "${COMP_CWORD}" -lt 2 ]] || prev="${COMP_WORDS[COMP_CWORD - 2]}"
        """##)
    script.replace(
      "__tarn_add_completions() {\n",
      with: "__tarn_add_completions() {\n    [[ \"${1}\" != -[df] ]] || compopt -o filenames 2> /dev/null\n")
    script.replace("complete -o filenames -F", with: "complete -F")
    let commands = "compgen -W '\(names(TrashCommand.self))' -- \"${cur}\"))\n"
    script.replace(
      commands,
      with: commands + ##"""
                [[ "${#unparsed_words[@]}" -gt 0 ]] || __tarn_add_names "$(__tarn_custom_complete \##(trashMirror) "${COMP_CWORD}" "$(__tarn_cursor_index_in_current_word)")"

        """##)
    if let start = script.firstRange(of: "_tarn_help() {\n"), let end = script.firstRange(of: "complete -F") {
      script.replaceSubrange(start.lowerBound..<end.lowerBound, with: help)
    }
  }

  /// Functions of bash's script. The first one offers names, which are quoted already.
  private static let functions = """
    __tarn_add_names() {
        local name
        while IFS='' read -r name; do
            [[ -n "${name}" ]] && COMPREPLY+=("${name}")
        done <<< "${1}"
        [[ "${COMPREPLY[*]}" != */ ]] || compopt -o nospace 2> /dev/null
    }

    __tarn_join_words() {
        local word blank rest="${COMP_LINE#*"${COMP_WORDS[0]}"}"
        local -i last=-1
        for word in "${COMP_WORDS[@]:1:${COMP_CWORD}}"; do
            blank="${rest%%[![:space:]]*}"
            rest="${rest#"${blank}"}"
            rest="${rest#"${word}"}"
            if [[ "${last}" -ge 0 && -z "${blank}" && ("${word}" = [:=]* || "${unparsed_words[last]}" = *[:=]) ]]; then
                unparsed_words[last]+="${word}"
            else
                unparsed_words[++last]="${word}"
            fi
        done
    }


    """

  /// The call that completes the mirror of `tarn trash`, which stands for `tarn trash list`.
  private static let trashMirror = "---completion trash list -- positional@0"

  private static func names(_ type: any ParsableCommand.Type) -> String {
    type.configuration.subcommands.compactMap { $0.configuration.commandName }.joined(separator: " ")
  }

  /// The words that may follow `tarn help`, and those that may follow each command with commands of its own.
  private static var helpWords: [(group: String, words: String)] {
    let groups = Root.configuration.subcommands.filter { !$0.configuration.subcommands.isEmpty }
    return [(group: "", words: "\(names(Root.self)) exit-status")]
      + groups.map { (group: $0.configuration.commandName ?? "", words: names($0)) }
  }

  /// The function of bash's script for `tarn help`.
  private static var help: String {
    let cases = helpWords.map { "\($0.group.isEmpty ? "''" : $0.group)) words='\($0.words)' ;;" }
    return """
      _tarn_help() {
          local group='' words=''
          [[ "${#unparsed_words[@]}" -lt 2 ]] || group="${unparsed_words[0]}"
          case "${group}" in
          \(cases.joined(separator: "\n    "))
          esac
          COMPREPLY+=($(compgen -W "${words}" -- "${cur}"))
      }


      """
  }

  /// Lets `help` offer the commands in zsh, where argument-parser's script offers nothing, and `trash` the mirrors.
  private static func mendZsh(_ script: inout String) {
    let cases = helpWords.map { "\($0.group.isEmpty ? "''" : $0.group)) names=(\($0.words)) ;;" }
    script.replace(
      "_tarn_help() {\n",
      with: """
        _tarn_help() {
            local group=''
            local -a names=()
            [[ "${CURRENT}" -lt 3 ]] || group="${words[2]}"
            case "${group}" in
            \(cases.joined(separator: "\n    "))
            esac

        """)
    script.replace("'*:subcommands:'", with: #"'*:command:{__tarn_complete "${names[@]}"}'"#)
    let offer = "_describe -V subcommand subcommands && ret=0\n"
    if let start = script.firstRange(of: "_tarn_trash() {\n")?.upperBound,
      let place = script[start...].firstRange(of: offer)
    {
      script.insert(
        contentsOf: ##"""
                  __tarn_custom_complete \##(trashMirror) "${current_word_index}" "$(__tarn_cursor_index_in_current_word)" && ret=0

          """##, at: place.upperBound)
    }
  }

  /// The line that lets `trash` offer the mirrors in fish.
  private static var fishTrash: String {
    let isMeant = "__tarn_should_offer_completions_for_positional \"tarn trash\" -eq 1"
    let mirrors = "(__tarn_custom_completion \(trashMirror) (count (__tarn_tokens -pc)) (__tarn_tokens -tC))"
    return "complete -c 'tarn' -n '\(isMeant)' -fka '\(mirrors)'"
  }

  /// The lines that let `help` offer the commands in fish.
  private static var fishHelp: String {
    helpWords.map { group, words -> String in
      let isMeant = "__tarn_should_offer_completions_for_positional \"tarn help\" -eq"
      let condition =
        group.isEmpty ? "\(isMeant) 1" : "\(isMeant) 2; and contains \(group) (__tarn_tokens -pc)"
      return "complete -c 'tarn' -n '\(condition)' -fka '\(words)'"
    }.joined(separator: "\n")
  }
}

/// The document of `completion --json`.
private struct CompletionReport: Encodable {
  var schema = "tarn-completion/1"
  var shell: String
  var script: String
}
