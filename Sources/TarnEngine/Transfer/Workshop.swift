import TarnCore
import TarnRuntime

/// The threads and buffers that a folder's transfers use.
struct Workshop {
  let lanes: Lanes
  let checkpoints = Checkpoints()
  let publisher: PublishThread
  let blocks = BlockPool(size: FileReceiver.handful, most: 4 << 20)

  init(post: @escaping @Sendable (JobMessage) -> Void) throws {
    lanes = try Lanes(name: "tarn-write", count: 2)
    publisher = PublishThread(post: post)
  }

  func close() {
    publisher.close()
    lanes.close()
    checkpoints.close()
  }
}
