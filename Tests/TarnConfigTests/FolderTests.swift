import Testing

@testable import TarnConfig

@Suite struct FolderTests {
  private func load(_ mirrors: [(folder: String, state: String?)], links: [String: String] = [:])
    -> LoadedSettings
  {
    var text = ""
    for (index, mirror) in mirrors.enumerated() {
      text += "[mirror.m\(index)]\nfeed = \"/feed\"\nfolder = \"\(mirror.folder)\"\n"
      if let state = mirror.state { text += "state = \"\(state)\"\n" }
    }
    var files = FakeFiles([Sample.main: text])
    files.links = links
    return Sample.load(files)
  }

  @Test(
    arguments: [
      (["/srv/a", "/srv/b"], nil), (["/srv/a", "/srv/ab"], nil), (["/srv/a", "/srv/A"], nil),
      (
        ["/srv/a", "/srv/a"],
        "6:10: error: the folder of 'm1' is the folder of 'm0' (/etc/tarn/tarn.toml:3:10)"
      ),
      (["/srv/a", "//srv/./a/"], "6:10: error: the folder of 'm1' is the folder of 'm0'"),
      (["/srv/a", "/srv/a/b/c"], "6:10: error: the folder of 'm1' lies in the folder of 'm0'"),
      (["/srv/a/b", "/srv/a"], "3:10: error: the folder of 'm0' lies in the folder of 'm1'"),
      (["/srv/caf\u{E9}", "/srv/cafe\u{301}"], nil),
    ] as [([String], String?)]) func foldersLieBesideOneAnother(_ folders: [String], _ message: String?)
  {
    let loaded = load(folders.map { ($0, nil) })
    #expect((loaded.settings == nil) == (message != nil))
    #expect(loaded.problems.map(\.code) == (message == nil ? [] : [.folderOverlap]))
    if let message { #expect(loaded.problems.first?.text.contains(message) == true, "\(loaded.problems)") }
  }

  @Test func recordsLieBesideThemToo() {
    #expect(load([("/srv/a", "/var/s"), ("/srv/b", "/var/t")]).problems == [])
    #expect(load([("/srv/a", "/var/s"), ("/srv/b", "/var/s")]).problems.map(\.code) == [.folderOverlap])
    #expect(load([("/srv/a", "/srv/b/s"), ("/srv/b", nil)]).problems.map(\.code) == [.folderOverlap])
    #expect(load([("/srv/a", "/srv/a/.tarn")]).problems.map(\.code) == [.folderOverlap])
    #expect(load([("/srv/a", "/srv")]).problems.map(\.code) == [.folderOverlap])
  }

  @Test func linksAreSeenThrough() {
    let links = ["/srv": "/srv", "/srv/a": "/disk/x", "/data": "/disk", "/disk": "/disk"]
    #expect(
      load([("/srv/a/new", nil), ("/data/x/new", nil)], links: links).problems.map(\.code) == [.folderOverlap]
    )
    #expect(
      load([("/srv/a", nil), ("/data/x/deep", nil)], links: links).problems.map(\.code) == [.folderOverlap])
    #expect(load([("/srv/a", nil), ("/data/y", nil)], links: links).problems == [])
    #expect(load([("/to/top", nil)], links: ["/to/top": "/"]).problems.map(\.code) == [.folderRefused])
    #expect(
      load([("/to/top/srv", nil), ("/srv", nil)], links: ["/to/top": "/"]).problems.map(\.code) == [
        .folderOverlap
      ])
    #expect(
      load([("/to/ann", nil)], links: ["/to/ann": "/disk/ann", "/users/ann": "/disk/ann"]).problems.map(
        \.code)
        == [.folderRefused])
  }

  @Test(arguments: ["/", "//", "/./", "~", "~/", "/users/ann", "/users/ann/."])
  func theRootAndTheHomeAreNoMirrors(folder: String) {
    #expect(load([(folder, nil)]).problems.map(\.code) == [.folderRefused])
    #expect(load([("/srv/a", folder)]).problems.map(\.code) == [.folderRefused])
  }

  @Test func otherErrorsHideNoOverlap() {
    let text = Sample.mirror("kepe = 1") + "[mirror.b]\nfeed = 7\nfolder = \"/srv/a/b\""
    #expect(Sample.load(text).problems.map(\.code) == [.unknownSetting, .wrongType, .folderOverlap])
  }

  @Test func manyMirrorsAreNoMatter() {
    let loaded = load((0..<1000).map { ("/srv/deep/er/m\($0)", nil) })
    #expect(loaded.problems == [] && loaded.settings?.mirrors.count == 1000)
  }
}
