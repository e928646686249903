internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// A small HTTP server on 127.0.0.1 whose files behave as a test wants: a download finishes, fails, hangs, breaks off, asks for
/// credentials, or is slow. The server ends with the object.
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
  /// The server's treatment of the requests for a file.
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
    /// The file is sent at this speed. When the behaviour is changed, the rest comes at once.
    case goesSlowly(bytesPerSecond: Int)
  }

  /// A request that the server received.
  public struct Request: Sendable, Hashable {
    public var method: String
    /// The request target, with its query.
    public var target: String
    /// The header fields, with lowercase names.
    public var headers: [String: String]
  }

  private let files: ServedFiles
  private let channel: any Channel
  /// The port that the server listens on.
  public let port: Int

  /// Listens on a free port.
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
      throw TestKitError("no port of 127.0.0.1 can be listened at: \(error)")
    }
    port = channel.localAddress?.port ?? 0
  }

  deinit {
    channel.close(promise: nil)
    files.closeAll()
  }

  /// Returns the URL of a file, whether it exists or not. The name may have a query, which is ignored.
  public func url(_ name: String) -> String { "http://127.0.0.1:\(port)/\(name)" }

  /// - Parameters:
  ///   - name: the path without the first slash.
  ///   - contents: the file's contents; other contents have another `ETag`.
  ///   - tellsLength: false for an answer without a length, which supports no ranges either.
  public func serve(
    _ name: String, _ contents: [UInt8], _ behaviour: Behaviour = .finishes, tellsLength: Bool = true
  ) {
    files.set(name, ServedFile(contents: contents, behaviour: behaviour, tellsLength: tellsLength))
  }

  /// Changes the behaviour of a file. Does nothing when there is no such file.
  public func change(_ name: String, to behaviour: Behaviour) { files.change(name, behaviour) }

  /// All requests that came, in order.
  public var requests: [Request] { files.requests }
}
