import Testing

@testable import TarnCore

@Suite struct Base64Tests {
  /// RFC 4648 10.
  @Test(
    arguments: [
      ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
      ("foobar", "Zm9vYmFy"),
    ])
  func theVectorsOfTheStandard(plain: String, text: String) {
    #expect(Base64.encode(Array(plain.utf8)) == text)
    #expect(Base64.decode(Array(text.utf8)) == Array(plain.utf8))
  }

  @Test func everyByteComesBack() {
    for length in 0..<7 {
      for byte in UInt8.min...UInt8.max {
        let bytes = [UInt8](repeating: byte, count: length)
        #expect(Base64.decode(Array(Base64.encode(bytes).utf8)) == bytes)
      }
    }
  }
}
