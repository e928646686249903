internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// A little HTTP server on 127.0.0.1 that does to each download what a test wants: it finishes, fails, hangs, breaks off, wants an answer,
/// or goes slowly. It ends with the object.
///
/// ```swift
/// let server = try await TestServer()
/// server.serve("map.bin", Array(repeating: 7, count: 1000), .asks("Authorization: Bearer right"))
/// try await session.download(DownloadRequest(server.url("map.bin"), to: folder + "/"))
/// // ... the session tells .needsRequest
/// ```
///
/// A file may be given another behaviour at any time; requests that hang are answered by it. Ranges, `ETag` and `If-Range` are served, so
/// that downloads are resumed.
public final class TestServer: Sendable {
  /// What becomes of the requests for a file.
  public enum Behaviour: Sendable, Hashable {
    /// The file is sent.
    case finishes
    /// It is refused with this status, such as 404 or 503.
    case fails(status: Int)
    /// Nothing is answered until the file behaves otherwise.
    case hangs
    /// The connection is closed after so many bytes of each answer.
    case breaksOff(after: Int)
    /// 401, unless the request has this header line, `Name: value`.
    case asks(String)
    /// The file is sent at this speed, for as long as it behaves so; then the rest comes at once.
    case goesSlowly(bytesPerSecond: Int)
  }

  /// A request that came.
  public struct Request: Sendable, Hashable {
    public var method: String
    /// With its query.
    public var target: String
    /// Names in small letters.
    public var headers: [String: String]
  }

  private let files: ServedFiles
  private let channel: any Channel
  /// Where it listens.
  public let port: Int

  /// Listens at a free port.
  ///
  /// - Throws: `TestKitError` where it cannot.
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

  /// Of a file, whether it is there or not. Names may have a query; it counts for nothing.
  public func url(_ name: String) -> String { "http://127.0.0.1:\(port)/\(name)" }

  /// - Parameters:
  ///   - name: its path without the first slash.
  ///   - contents: of the file; other contents have another `ETag`.
  ///   - tellsLength: false for an answer without a length, which has no ranges either.
  public func serve(
    _ name: String, _ contents: [UInt8], _ behaviour: Behaviour = .finishes, tellsLength: Bool = true
  ) {
    files.set(name, ServedFile(contents: contents, behaviour: behaviour, tellsLength: tellsLength))
  }

  /// The file behaves otherwise from now on. Nothing where there is none.
  public func change(_ name: String, to behaviour: Behaviour) { files.change(name, behaviour) }

  /// All that came, in their order.
  public var requests: [Request] { files.requests }
}
