import Foundation
import TarnCore
import TarnFolder
import Testing

/// A look at the folder that fails says nothing of the folder: it is told as what it is.
@Suite final class IntactTests {
  private let base: String
  private var folder: String { base + "/above/folder" }
  private var state: String { base + "/beside/state" }

  init() throws {
    base = try DiskWorld.makeBase()
  }

  deinit {
    DiskWorld.removeBase(base)
  }

  private func close(_ path: String) {
    chmod(path, 0o000)
  }

  /// On the way to the folder, and to its state.
  @Test(arguments: ["above", "beside"]) func whatMayNotBeLookedAtIsNotCalledReplaced(part: String) throws {
    let opened = try FolderHome.create(folder: folder, state: state).open()
    #expect(try opened.isIntact())
    close(base + "/" + part)
    #expect(code { _ = try asNobody { try opened.isIntact() } } == .permission)
    chmod(base + "/" + part, 0o755)
    #expect(try opened.isIntact())
  }

  @Test(arguments: ["/above/folder/.tarn", "/beside/state/id"])
  func aMarkerThatMayNotBeReadIsNotCalledLost(file: String) throws {
    let opened = try FolderHome.create(folder: folder, state: state).open()
    for path in ["/above", "/above/folder", "/beside", "/beside/state"] { chmod(base + path, 0o755) }
    close(base + file)
    #expect(code { _ = try asNobody { try opened.isIntact() } } == .permission)
    #expect(code { _ = try asNobody { try FolderHome.inspect(folder: folder, state: nil) } } == .permission)
  }

  /// What another object stands in the way of is gone all the same.
  @Test func aFileAboveTheFolderMeansThatItIsGone() throws {
    let opened = try FolderHome.create(folder: folder, state: nil).open()
    rename(base + "/above", base + "/moved")
    #expect(try !opened.isIntact())
    #expect(DiskWorld.store(Array((base + "/above").utf8CString), [1], O_CREAT | O_EXCL))
    #expect(try !opened.isIntact())
  }
}
