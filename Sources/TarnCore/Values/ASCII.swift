extension UInt8 {
  package var isASCIIDigit: Bool { (0x30...0x39).contains(self) }
  package var isASCIILetter: Bool { (0x61...0x7A).contains(self | 0x20) }

  /// The value of a hexadecimal digit of either case; `nil` for any other byte.
  package var hexDigitValue: UInt8? {
    switch self {
    case 0x30...0x39: self - 0x30
    case 0x41...0x46: self - 0x41 + 10
    case 0x61...0x66: self - 0x61 + 10
    default: nil
    }
  }
}
