import TarnCore
import TarnRuntime

/// What the transfers of a folder are made with.
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
