internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// A test server is a small HTTP server on 127.0.0.1 whose files behave as a test wants: a download finishes, fails, hangs, breaks
/// off, asks for credentials, or is slow. The server ends with the object. Any thread may use it.
///
/// ```swift
/// let server = try await TestServer()
/// server.serve("map.bin", Array(repeating: 7, count: 1000), .asks("Authorization: Bearer right"))
/// try await session.download(DownloadRequest(server.url("map.bin"), to: folder + "/"))
/// // ... the session tells .needsRequest
/// ```
///
/// A file's behaviour may be changed at any time; hanging requests are then answered. Ranges, `ETag` and `If-Range` are supported,
/// so that downloads can resume.
public final class TestServer: Sendable {
  /// The behaviour of a file says how the server treats requests for it.
  public enum Behaviour: Sendable, Hashable {
    /// The file is sent.
    case finishes
    /// The request is refused with this status, such as 404 or 503.
    case fails(status: Int)
    /// The request gets no answer until the behaviour is changed.
    case hangs
    /// The connection is closed after this many bytes of each answer.
    case breaksOff(after: Int)
    /// The request is refused with 401 unless it has this header line, `Name: value`.
    case asks(String)
    /// The file is sent at this speed, in about twenty pieces a second. When the behaviour is changed, the rest comes at once.
    case goesSlowly(bytesPerSecond: Int)
  }

  /// The server received a request like this.
  public struct Request: Sendable, Hashable {
    /// The request has this method, such as `GET`.
    public var method: String
    /// The request has this target, with its query, such as `/map.bin?v=2`.
    public var target: String
    /// The request has these header fields, with lowercase names. Of several with one name, the last one is here.
    public var headers: [String: String]
  }

  private let files: ServedFiles
  private let channel: any Channel
  /// The server listens on this port.
  public let port: Int

  /// Makes a server that listens on a free port. It serves no file yet, and answers 404.
  ///
  /// - Throws: `TestKitError` when no port can be bound.
  public init() async throws(TestKitError) {
    let files = ServedFiles()
    self.files = files
    do {
      channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .serverChannelOption(.backlog, value: 128)
        .childChannelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.configureHTTPServerPipeline()
            try channel.pipeline.syncOperations.addHandler(FileHandler(files))
          }
        }
        .bind(host: "127.0.0.1", port: 0).get()
    } catch {
      throw TestKitError("cannot listen on any port of 127.0.0.1: \(error)")
    }
    port = channel.localAddress?.port ?? 0
  }

  deinit {
    channel.close(promise: nil)
    files.closeAll()
  }

  /// Returns the URL of a file, whether it exists or not. The name may have a query, which is ignored.
  public func url(_ name: String) -> String { "http://127.0.0.1:\(port)/\(name)" }

  /// Serves a file, in place of one that has the same name already. Requests that hang for it are answered again.
  ///
  /// - Parameters:
  ///   - name: the path without the first slash.
  ///   - contents: the file's contents; other contents have another `ETag`.
  ///   - behaviour: how the server treats requests for the file.
  ///   - tellsLength: false for an answer without a length, which supports no ranges either.
  public func serve(
    _ name: String, _ contents: [UInt8], _ behaviour: Behaviour = .finishes, tellsLength: Bool = true
  ) {
    files.set(name, ServedFile(contents: contents, behaviour: behaviour, tellsLength: tellsLength))
  }

  /// Changes the behaviour of a file, and answers requests that hang for it. It does nothing when there is no such file.
  public func change(_ name: String, to behaviour: Behaviour) { files.change(name, behaviour) }

  /// The server has received these requests, in this order.
  public var requests: [Request] { files.requests }
}
