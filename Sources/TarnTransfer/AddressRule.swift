import Glibc

/// The addresses that a public source may not send Tarn to. They are checked when the socket is made, so that the resolver's answer
/// counts and not the spelling in the URL.
enum AddressRule {
  /// Returns whether the address is private, local, reserved, or hides another one. True for families other than IPv4 and IPv6.
  static func isPrivate(_ address: UnsafePointer<sockaddr>, length: Int) -> Bool {
    let raw = UnsafeRawBufferPointer(start: address, count: length)
    switch Int32(address.pointee.sa_family) {
    case AF_INET where length >= MemoryLayout<sockaddr_in>.size:
      return isPrivate(v4: Array(raw[4..<8]))
    case AF_INET6 where length >= MemoryLayout<sockaddr_in6>.size:
      return isPrivate(v6: Array(raw[8..<24]))
    default:
      return true
    }
  }

  /// - Parameter bytes: four bytes in network order.
  static func isPrivate(v4 bytes: [UInt8]) -> Bool {
    switch (bytes[0], bytes[1], bytes[2]) {
    case (0, _, _), (10, _, _), (127, _, _): true  // this network, private, loopback
    case (100, 64...127, _): true  // carrier-grade NAT
    case (169, 254, _): true  // link-local, with the clouds' metadata
    case (172, 16...31, _), (192, 168, _): true  // private
    case (192, 0, 0), (198, 18...19, _): true  // protocol assignments, benchmarks
    case (224...255, _, _): true  // multicast, reserved, broadcast
    default: false
    }
  }

  /// - Parameter bytes: sixteen bytes in network order.
  static func isPrivate(v6 bytes: [UInt8]) -> Bool {
    // ::/96 holds the unspecified address, loopback and the old IPv4-compatible form; ::ffff:0:0/96 is IPv4-mapped.
    if bytes[0..<10].allSatisfy({ $0 == 0 }) { return true }
    switch (bytes[0], bytes[1]) {
    case (0xFC...0xFD, _): return true  // unique local
    case (0xFE, 0x80...0xFF): return true  // link-local, site-local
    case (0xFF, _): return true  // multicast
    case (0x20, 0x01) where bytes[2] == 0 && bytes[3] == 0: return true  // Teredo, hides an IPv4 address
    case (0x20, 0x02): return isPrivate(v4: Array(bytes[2..<6]))  // 6to4
    case (0x00, 0x64) where bytes[2] == 0xFF && bytes[3] == 0x9B: return isPrivate(v4: Array(bytes[12..<16]))
    default: return false
    }
  }

  /// Returns the address as text for messages: `192.0.2.1` or `2001:db8::1`.
  static func text(_ address: UnsafePointer<sockaddr>, length: Int) -> String {
    var host = [CChar](repeating: 0, count: 64)
    let code = getnameinfo(
      address, socklen_t(length), &host, socklen_t(host.count), nil, 0, NI_NUMERICHOST)
    guard code == 0 else { return "an unknown address" }
    return String(decoding: host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
