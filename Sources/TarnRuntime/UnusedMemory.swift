import Glibc

/// Memory that malloc keeps although nobody uses it.
package enum UnusedMemory {
  /// Gives it back to the system: malloc_trim(3), which is not in Swift's Glibc module. Takes some milliseconds. Any thread.
  ///
  /// - Returns: false where the C library has no such function.
  @discardableResult
  package static func giveBack() -> Bool {
    guard let symbol = dlsym(nil, "malloc_trim") else { return false }
    _ = unsafeBitCast(symbol, to: (@convention(c) (Int) -> Int32).self)(0)
    return true
  }

  /// Threads share `count` arenas of malloc, where glibc has eight for each core: what one thread gave back is there for the
  /// next one. mallopt(3), M_ARENA_MAX, which Swift's Glibc module has not. Before other threads are made.
  ///
  /// - Returns: false where the C library has no such function, or refuses.
  @discardableResult
  package static func shareArenas(_ count: Int32) -> Bool {
    guard let symbol = dlsym(nil, "mallopt") else { return false }
    let most: Int32 = -8
    return unsafeBitCast(symbol, to: (@convention(c) (Int32, Int32) -> Int32).self)(most, count) == 1
  }

  /// Program code that is no longer needed leaves this process's memory: what was mapped of the program and its libraries is dropped,
  /// and what runs still comes back page by page from the page cache, in some hundred minor faults. Nothing is written, and no data
  /// are touched: only mappings of files that can be executed and not written. madvise(2), MADV_DONTNEED; proc_pid_maps(5). Any
  /// thread, others may run meanwhile; about a millisecond.
  ///
  /// - Returns: bytes of mappings that were dropped, whatever was resident of them; 0 where /proc cannot be read.
  @discardableResult
  package static func dropCode() -> Int {
    guard let maps = fopen("/proc/self/maps", "re") else { return 0 }
    defer { fclose(maps) }
    var line: UnsafeMutablePointer<CChar>?
    var room = 0
    defer { free(line) }
    var dropped = 0
    while getline(&line, &room, maps) > 0, let line {
      guard let code = codeMapping(String(cString: line)),
        let start = UnsafeMutableRawPointer(bitPattern: code.start)
      else { continue }
      let length = Int(code.end - code.start)
      if madvise(start, length, MADV_DONTNEED) == 0 { dropped += length }
    }
    return dropped
  }

  /// A line of /proc/self/maps, such as `55d0c0000000-55d0c0100000 r-xp 00001000 fd:01 1234 /usr/bin/tarn`; nil when it is not
  /// code of a file.
  package static func codeMapping(_ line: String) -> (start: UInt, end: UInt)? {
    let fields = line.split(separator: " ", maxSplits: 5, omittingEmptySubsequences: true)
    guard fields.count == 6, fields[1] == "r-xp", fields[5].drop(while: { $0 == " " }).first == "/" else {
      return nil
    }
    let ends = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
    return ends.count == 2 && ends[0] < ends[1] ? (ends[0], ends[1]) : nil
  }
}
