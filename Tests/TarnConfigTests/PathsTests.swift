import Testing

@testable import TarnConfig

@Suite struct PathsTests {
  @Test func theSystemsInstance() {
    let paths = Sample.paths()
    #expect(paths.instance == .system && paths.directories == ["/etc/tarn"])
    #expect(paths.state == "/var/lib/tarn" && paths.runtime == "/run/tarn")
    #expect(paths.socket == "/run/tarn/tarn.sock" && paths.credentials == nil && paths.overrides == [])
  }

  @Test func aUsersInstance() {
    let paths = Sample.paths(["XDG_RUNTIME_DIR": "/run/user/7"], isRoot: false)
    #expect(paths.instance == .user && paths.directories == ["/users/ann/.config/tarn"])
    #expect(paths.state == "/users/ann/.local/state/tarn" && paths.socket == "/run/user/7/tarn/tarn.sock")
    let moved = Sample.paths(
      ["XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "relative"], isRoot: false)
    #expect(moved.directories == ["/c/tarn"] && moved.state == "/s/tarn" && moved.socket == nil)
    let bare = Sample.paths(["HOME": ""], isRoot: false)
    #expect(bare.directories == [] && bare.state == nil && bare.socket == nil && bare.home == nil)
  }

  @Test func aService() {
    let service = [
      "CONFIGURATION_DIRECTORY": "/etc/tarn:/etc/more", "STATE_DIRECTORY": "/var/lib/a:/var/lib/b",
      "RUNTIME_DIRECTORY": "/run/a", "CREDENTIALS_DIRECTORY": "/run/credentials/tarn.service",
    ]
    let paths = Sample.paths(service, isRoot: false)
    #expect(paths.instance == .system && paths.directories == ["/etc/tarn", "/etc/more"])
    #expect(paths.state == "/var/lib/a" && paths.socket == "/run/a/tarn.sock")
    #expect(paths.credentials == "/run/credentials/tarn.service")
    let ofUser = Sample.paths(service.merging(["XDG_RUNTIME_DIR": "/run/user/7"]) { $1 }, isRoot: false)
    #expect(ofUser.instance == .user && ofUser.directories == ["/etc/tarn", "/etc/more"])
  }

  @Test func filesOfSeveralDirectoriesInOrder() {
    let files = FakeFiles([
      "/etc/tarn/tarn.toml": "", "/etc/tarn/conf.d/z.toml": "", "/etc/more/conf.d/a.toml": "",
      "/etc/more/conf.d/B.toml": "",
    ])
    let loaded = Sample.load(files, Sample.paths(["CONFIGURATION_DIRECTORY": "/etc/tarn:/etc/more"]))
    #expect(
      loaded.files.map(\.path) == [
        "/etc/tarn/tarn.toml", "/etc/tarn/conf.d/z.toml", "/etc/more/tarn.toml", "/etc/more/conf.d/B.toml",
        "/etc/more/conf.d/a.toml",
      ])
  }

  @Test(
    arguments: [
      ("/", "/"), ("/srv", "/srv"), ("//srv///a//", "/srv/a"), ("/srv/./a/.", "/srv/a"), ("~", "/users/ann"),
      ("~/a", "/users/ann/a"), ("/srv/..a/b..", "/srv/..a/b.."), ("/a b", "/a b"), ("/é", "/é"), ("srv", nil),
      ("", nil), (".", nil), ("/srv/../x", nil), ("~ann/x", nil), ("/a\nb", nil), ("/a\0", nil), ("/..", nil),
    ] as [(String, String?)]) func pathsAreAbsolute(_ text: String, _ path: String?)
  {
    #expect(SettingPath.absolute(text, home: "/users/ann") == path)
  }

  @Test func pathsAreNoLongerThanTheKernelTakesThem() {
    let deep = String(repeating: "/a", count: 2047)
    #expect(SettingPath.absolute(deep, home: nil) == deep)
    #expect(SettingPath.absolute(deep + "/a", home: nil) == nil)
    let loaded = Sample.load(Sample.mirror("state = \"\(String(repeating: "/a", count: 200_000))\""))
    #expect(loaded.problems.first?.hint == "a path has less than 4096 bytes")
    #expect(loaded.problems.first?.text.utf8.count ?? .max < 600)
  }

  @Test func withoutAHomeATildeLeadsNowhere() {
    #expect(SettingPath.absolute("~/a", home: nil) == nil)
  }
}
