import Foundation

/// A real nginx on 127.0.0.1, one process, with a port, a configuration and a log of its own. Ended by its pid.
final class Nginx {
  /// One request as the access log has it.
  struct Request: Decodable {
    var status: String
    var method: String
    var uri: String
    /// Bytes of the body that were sent.
    var sent: String
    var range: String
    var complete: String
    /// When it ended, and how long it took: seconds.
    var ended: String
    var took: String
    var connection: String
    /// `HTTP/2.0`.
    var spoken: String

    var bytes: UInt64 { UInt64(sent) ?? 0 }
    /// A body of the resource itself, whole or in part; an error page is none.
    var isBody: Bool { method == "GET" && (status == "200" || status == "206") && bytes > 0 }
  }

  static let path = Program.find("nginx")

  let files: TemporaryDirectory
  private let directory: TemporaryDirectory
  let port: UInt16
  private var program: Program
  /// Starts it at a port.
  private let launch: (UInt16) throws -> Program

  /// Serves `files` as they are below `/`, and by autoindex below `/html/` and `/json/`.
  ///
  /// - Parameter locations: more of nginx's `location` blocks.
  init(files: TemporaryDirectory? = nil, locations: String = "") throws {
    self.files = try files ?? TemporaryDirectory()
    directory = try TemporaryDirectory()
    guard let nginx = Self.path else { throw Program.TimedOut(description: "nginx is not installed") }
    let files = self.files.path
    let directory = directory
    launch = { port in
      let configuration = Self.configuration(
        port: port, root: files, prefix: directory.path, locations: locations)
      let file = try directory.write(configuration, to: "nginx.conf")
      return try Program(
        nginx, ["-p", directory.path, "-c", file.path, "-e", directory.path + "/error.log"])
    }
    (program, port) = try Loopback.start("nginx", in: directory, launch)
  }

  deinit {
    Loopback.end(program)
  }

  private static func configuration(port: UInt16, root: String, prefix: String, locations: String) -> String {
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
      "\($0)_temp_path \(prefix)/\($0);"
    }
    return """
      daemon off; master_process off; pid \(prefix)/nginx.pid; error_log \(prefix)/error.log warn;
      events { worker_connections 512; }
      http {
        \(temporary.joined(separator: " "))
        types { text/html html; application/json json; text/plain txt; application/metalink4+xml meta4; }
        default_type application/octet-stream;
        log_format json escape=json '{"status":"$status","method":"$request_method","uri":"$request_uri",'
          '"sent":"$body_bytes_sent","range":"$http_range","complete":"$request_completion",'
          '"ended":"$msec","took":"$request_time","connection":"$connection","spoken":"$server_protocol"}';
        access_log \(prefix)/access.log json;
        server {
          listen 127.0.0.1:\(port);
          root \(root);
          index .no-index;
          location /html/ { alias \(root)/; autoindex on; autoindex_format html; }
          location /json/ { alias \(root)/; autoindex on; autoindex_format json; }
          \(locations)
        }
      }
      """
  }

  /// It is held still: connections are taken, as the kernel does, and nothing is answered.
  func pause() { program.signal(SIGSTOP) }

  func proceed() { program.signal(SIGCONT) }

  /// Its port refuses from now on.
  func stop() { Loopback.end(program) }

  /// At the same port as before.
  func startAgain() throws {
    (program, _) = try Loopback.start("nginx", in: directory, at: port, launch)
  }

  func url(_ path: String) -> String { "http://127.0.0.1:\(port)/\(path)" }

  /// Everything in the log so far. A request of its own goes last: when the log has that one, it has all before it.
  func requests() throws -> [Request] {
    let marker = "/marker-\(UUID().uuidString)"
    try Loopback.head(marker, port: port)
    var lines: [Request] = []
    try waitUntil("the access log has the marker") {
      let text = directory.text("access.log") ?? ""
      guard text.contains(marker) else { return false }
      lines = text.split(separator: "\n").compactMap {
        try? JSONDecoder().decode(Request.self, from: Data($0.utf8))
      }
      return true
    }
    return lines.filter { !$0.uri.hasPrefix("/marker-") }
  }

  /// What was sent while `body` ran.
  func requests(during body: () throws -> Void) throws -> [Request] {
    let before = try requests().count
    try body()
    return Array(try requests().dropFirst(before))
  }
}
