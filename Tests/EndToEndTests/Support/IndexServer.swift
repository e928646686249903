import Foundation

/// A real server other than nginx that shows a tree by its directory index, on 127.0.0.1, with a port, a
/// configuration and a log of its own. Ended by its pid.
final class IndexServer {
  enum Kind: CaseIterable {
    case apache, python, caddy

    var program: String {
      switch self {
      case .apache: "apache2"
      case .python: "python3"
      case .caddy: "caddy"
      }
    }

    /// Why it cannot be started; nil when it can.
    var obstacle: String? {
      if Program.find(program) == nil { return "\(program) is not installed" }
      let lacksModules = self == .apache && !FileManager.default.fileExists(atPath: IndexServer.modules)
      return lacksModules ? "apache2 has no modules in \(IndexServer.modules)" : nil
    }

    /// The paths that show the tree, each in another form.
    var paths: [String] { self == .apache ? ["plain/", "pre/", "table/"] : [""] }
  }

  fileprivate static let modules = "/usr/lib/apache2/modules"

  private let directory: TemporaryDirectory
  private let port: UInt16
  private let program: Program

  init(_ kind: Kind, files: TemporaryDirectory) throws {
    directory = try TemporaryDirectory()
    guard let executable = Program.find(kind.program) else {
      throw Program.TimedOut(description: "\(kind.program) is not installed")
    }
    let directory = directory
    (program, port) = try Loopback.start(kind.program, in: directory) { port in
      let arguments = try Self.arguments(kind, root: files.path, port: port, in: directory)
      let home = ["HOME": directory.path, "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"]
      return try Program(executable, arguments, environment: home, in: directory.url)
    }
  }

  deinit {
    Loopback.end(program)
  }

  func url(_ path: String) -> String { "http://127.0.0.1:\(port)/\(path)" }

  private static func arguments(_ kind: Kind, root: String, port: UInt16, in directory: TemporaryDirectory)
    throws -> [String]
  {
    switch kind {
    case .python:
      return ["-m", "http.server", "--bind", "127.0.0.1", "--directory", root, "\(port)"]
    case .caddy:
      return ["file-server", "--browse", "--root", root, "--listen", "127.0.0.1:\(port)"]
    case .apache:
      let text = configuration(root: root, port: port, prefix: directory.path)
      let file = try directory.write(text, to: "apache.conf")
      return ["-d", directory.path, "-f", file.path, "-DFOREGROUND"]
    }
  }

  /// Apache refuses to serve as root.
  private static func configuration(root: String, port: UInt16, prefix: String) -> String {
    let loads = ["mpm_event", "authz_core", "alias", "dir", "autoindex"].map {
      "LoadModule \($0)_module \(modules)/mod_\($0).so"
    }
    let user = geteuid() == 0 ? "User nobody\nGroup nogroup" : ""
    return """
      \(loads.joined(separator: "\n"))
      \(user)
      ServerName 127.0.0.1
      Listen 127.0.0.1:\(port)
      DefaultRuntimeDir \(prefix)
      PidFile \(prefix)/pid
      ErrorLog \(prefix)/error.log
      DocumentRoot \(root)
      DirectoryIndex disabled
      DefaultIcon /icons/any.png
      Alias /plain/ \(root)/
      Alias /pre/ \(root)/
      Alias /table/ \(root)/
      <Directory \(root)>
        Options Indexes FollowSymLinks
        AllowOverride None
        Require all granted
      </Directory>
      <Location /pre/>
        IndexOptions FancyIndexing IconsAreLinks Charset=UTF-8
      </Location>
      <Location /table/>
        IndexOptions FancyIndexing HTMLTable XHTML FoldersFirst NameWidth=*
      </Location>

      """
  }
}
