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

  /// Returns the script of a shell. The `#!` line of bash's is removed, for the file is only sourced. bash would
  /// expand the words of `compgen`, and `$(rm x)` in a name would be executed: names go past it.
  static func script(_ shell: Shell) -> String {
    let kind: CompletionShell =
      switch shell {
      case .bash: .bash
      case .zsh: .zsh
      case .fish: .fish
      }
    var script = Root.completionScript(for: kind)
    if shell == .bash {
      script.replace(
        #"__tarn_add_completions -W "$(__tarn_custom_complete"#,
        with: #"__tarn_add_names "$(__tarn_custom_complete"#)
      script.replace("_tarn() {\n", with: names + "_tarn() {\n", maxReplacements: 1)
    }
    guard script.hasPrefix("#!"), let end = script.firstIndex(of: "\n") else { return script + "\n" }
    return script[script.index(after: end)...].drop { $0 == "\n" } + "\n"
  }

  /// The function of bash's script that offers names, which are quoted already.
  private static let names = """
    __tarn_add_names() {
        local name
        while IFS='' read -r name; do
            [[ -n "${name}" ]] && COMPREPLY+=("${name}")
        done <<< "${1}"
        compopt -o noquote 2> /dev/null
        [[ "${COMPREPLY[*]}" != */ ]] || compopt -o nospace 2> /dev/null
    }


    """
}

/// The document of `completion --json`.
private struct CompletionReport: Encodable {
  var schema = "tarn-completion/1"
  var shell: String
  var script: String
}
