/// FNV-1a: distinguishes texts that nobody made to collide. http://www.isthe.com/chongo/tech/comp/fnv
package struct FNV1a {
  package private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

  package init() {}

  package mutating func add(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01b3 }
}
