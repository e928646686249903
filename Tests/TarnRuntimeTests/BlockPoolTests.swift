import TarnRuntime
import Testing

@Suite struct BlockPoolTests {
  private let pool = BlockPool(size: 1000, most: 2500)

  private func fill(_ block: ByteBlock, _ count: Int) {
    [UInt8](repeating: 7, count: count).withUnsafeBytes { block.append($0) }
  }

  @Test func aBlockThatCameBackIsEmptyAndGoesOutAgain() {
    let block = pool.borrow(800)
    fill(block, 900)
    #expect(block.count == 900 && block.capacity == 1000)
    pool.give(block)
    let again = pool.borrow(1000)
    #expect(again === block && again.count == 0)
    #expect(pool.borrow(1000) !== again)
  }

  /// What grew is kept as it is, and a block may be asked for more than those that are kept have.
  @Test func blocksGrow() {
    let block = pool.borrow(700)
    fill(block, 1500)
    #expect(block.capacity >= 1500)
    pool.give(block)
    #expect(pool.borrow(1800) === block)
    #expect(pool.borrow(1800).capacity == 1800)
  }

  @Test func noMoreIsKeptThanAllowed() {
    let blocks = (0..<3).map { _ in pool.borrow(1000) }
    for block in blocks { pool.give(block) }
    #expect(pool.borrow(1000) === blocks[1] && pool.borrow(1000) === blocks[0])
    #expect(!blocks.contains { $0 === pool.borrow(1000) })
  }

  @Test func smallOnesAreNotKept() {
    let small = pool.borrow(100)
    #expect(small.capacity == 100)
    pool.give(small)
    #expect(pool.borrow(1000) !== small)
  }
}
