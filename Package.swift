// swift-tools-version: 6.2
//
// One section per layer, targets in the order of ARCHITECTURE.md's table, one dependency a line.

import PackageDescription

/// CI treats every warning as an error; a newcomer with another compiler is only warned.
let strict = Context.environment["CI"] != nil

/// libFuzzer's archive, given by Tests/Tools/fuzz.sh: then all code is built with its coverage counters.
let fuzzer = Context.environment["TARN_FUZZ"]

/// Links Swift's runtime into `tarn`, as --static-swift-stdlib does, where the tests of the same build keep it beside them. The two
/// libraries are those that FoundationEssentials asks for.
let linksRuntime = Context.environment["TARN_STATIC_RUNTIME"] != nil
let runtimeFlags = [
  "-static-stdlib", "-l_FoundationCollections", "-l_FoundationCShims", "-Xlinker", "--no-export-dynamic",
]

let settings: [SwiftSetting] =
  [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
  ] + (strict ? [.treatAllWarnings(as: .error)] : [])
  + (fuzzer == nil ? [] : [.unsafeFlags(["-sanitize=fuzzer", "-enable-testing"])])

/// A system library from Debian, found through pkg-config.
func system(_ name: String, pkgConfig: String, apt: String) -> Target {
  .systemLibrary(
    name: name, path: "Sources/System/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

func library(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

/// A product of a package that only the programs need.
func ofPrograms(_ name: String, package: String) -> Target.Dependency {
  .product(name: name, package: package, condition: .when(traits: ["Program"]))
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

let package = Package(
  name: "tarn",
  products: [
    .executable(name: "tarn", targets: ["tarn"]),
    .executable(name: "tarn-watch", targets: ["tarn-watch"]),
    .library(name: "TarnKit", targets: ["TarnKit"]),
    .library(name: "TarnKitTesting", targets: ["TarnKitTesting"]),
  ],
  // What the programs need and TarnKit does not: a package that wants TarnKit alone says `traits: []`, and none of it is fetched.
  traits: [
    .default(enabledTraits: ["Program"]),
    .trait(name: "Program", description: "The programs tarn and tarn-watch."),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
    // Hummingbird's own dependencies, whose types appear in its interface.
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0", traits: []),
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0", traits: []),
    .package(url: "https://github.com/apple/swift-log", from: "1.14.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.34.1"),
  ],
  targets: [
    // C: one Swift importer each.
    system("CCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
    system("CXML", pkgConfig: "libxml-2.0", apt: "libxml2-dev"),
    system("CCrypto", pkgConfig: "libcrypto", apt: "libssl-dev"),
    system("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev"),
    system("CZlib", pkgConfig: "zlib", apt: "zlib1g-dev"),
    .target(name: "CurlShim", dependencies: ["CCurl"]),
    .target(name: "LinuxShim"),
    // toml++, C++ and headers only: libtomlplusplus-dev. Its pkg-config file is for the shared library.
    .target(
      name: "TOMLShim",
      cxxSettings: fuzzer == nil ? [] : [.unsafeFlags(["-fsanitize=fuzzer-no-link"])]),

    // A program of its own, under GPL-2.0-only as libinotifytools (libinotifytools0-dev): nothing here may depend on it.
    .executableTarget(
      name: "tarn-watch", exclude: ["LICENSE"],
      cSettings: strict ? [.unsafeFlags(["-Wall", "-Wextra", "-Werror"])] : [],
      linkerSettings: [.linkedLibrary("inotifytools")]),

    // The core: values and decisions, no input or output.
    library("TarnCore", []),
    library("TarnRuntime", ["TarnCore"]),
    library("TarnSchedule", ["TarnCore"]),
    library("TarnCrypto", ["TarnCore", "CCrypto"]),

    // Adapters: none imports another.
    library("TarnFeeds", ["TarnCore", "CXML", "CZlib"]),
    library(
      "TarnTransfer",
      [
        "TarnCore", "TarnRuntime", "CurlShim",
        ofPrograms("DequeModule", package: "swift-collections"),
      ]),
    library("TarnFolder", ["TarnCore", "TarnRuntime", "TarnCrypto", "LinuxShim"]),
    library(
      "TarnLedger",
      [
        "TarnCore", "TarnRuntime", "CSQLite", ofPrograms("HeapModule", package: "swift-collections"),
      ]),
    library("TarnWatch", ["TarnCore", "TarnRuntime"]),
    library("TarnConfig", ["TarnCore", "TarnSchedule", "TOMLShim"]),

    // The pass, its composition, the command line.
    library(
      "TarnEngine",
      ["TarnCore", "TarnRuntime", ofPrograms("DequeModule", package: "swift-collections")]),

    // The control socket: its client, which the command line links, and its server, which only the agent does.
    library(
      "TarnControl",
      [
        "TarnCore", "TarnRuntime",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ]),
    // What programs use, and what their tests use: the only public targets.
    library(
      "TarnKit",
      [
        "TarnControl", "TarnCore", "TarnRuntime",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ]),
    library(
      "TarnKitTesting",
      [
        "TarnKit",
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ]),
    library(
      "TarnServer",
      [
        "TarnControl", "TarnCore", "TarnRuntime",
        ofPrograms("HTTPTypes", package: "swift-http-types"),
        ofPrograms("HummingbirdCore", package: "hummingbird"),
        ofPrograms("Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        ofPrograms("NIOHTTPTypes", package: "swift-nio-extras"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ]),
    library(
      "TarnAgent",
      [
        "TarnCore", "TarnRuntime", "TarnSchedule", "TarnCrypto", "TarnFeeds", "TarnTransfer", "TarnFolder",
        "TarnLedger",
        "TarnWatch", "TarnConfig", "TarnEngine", "TarnServer",
        ofPrograms("Logging", package: "swift-log"),
      ]),
    .executableTarget(
      name: "tarn",
      dependencies: [
        "TarnAgent", "TarnConfig", "TarnControl", "TarnCore", "TarnEngine", "TarnRuntime", "TarnSchedule",
        ofPrograms("ArgumentParser", package: "swift-argument-parser"),
        ofPrograms("Logging", package: "swift-log"),
      ],
      swiftSettings: settings,
      linkerSettings: linksRuntime ? [.unsafeFlags(runtimeFlags)] : []),

    // A program that uses TarnKit.
    .executableTarget(
      name: "Fetcher", dependencies: ["TarnKit"], path: "Tests/Examples/Fetcher", swiftSettings: settings),

    // Tests.
    .target(
      name: "TestSupport", dependencies: ["TarnCore", "TarnRuntime"], path: "Tests/TestSupport",
      swiftSettings: settings),
    tests("TarnCoreTests", ["TarnCore", "TestSupport"]),
    tests("TarnScheduleTests", ["TarnSchedule", "TarnCore", "TestSupport"]),
    tests("TarnRuntimeTests", ["TarnRuntime", "TarnCore", "TestSupport"]),
    tests("TarnFeedsTests", ["TarnFeeds", "TarnCore", "TestSupport"]),
    tests("TarnTransferTests", ["TarnTransfer", "TarnCore", "TarnRuntime", "TestSupport"]),
    tests("TarnFolderTests", ["TarnFolder", "TarnCore", "TarnCrypto", "TarnRuntime", "TestSupport"]),
    tests("TarnLedgerTests", ["TarnLedger", "TarnCore", "TestSupport"]),
    tests("TarnWatchTests", ["TarnWatch", "TarnCore", "TarnRuntime", "TestSupport"]),
    tests("TarnConfigTests", ["TarnConfig", "TarnCore", "TarnSchedule", "TestSupport"]),
    tests(
      "TarnEngineTests",
      ["TarnEngine", "TarnCore", "TarnRuntime", "TarnFeeds", "TarnFolder", "TarnLedger", "TestSupport"]),
    tests("TarnControlTests", ["TarnControl", "TarnCore", "TarnRuntime", "TestSupport"]),
    tests(
      "TarnServerTests",
      ["TarnServer", "TarnControl", "TarnCore", "TarnRuntime", "TestSupport"]),
    tests(
      "TarnAgentTests",
      [
        "TarnAgent", "TarnConfig", "TarnCore", "TarnCrypto", "TarnEngine", "TarnFolder", "TarnLedger",
        "TarnRuntime", "TestSupport",
        ofPrograms("Logging", package: "swift-log"),
      ]),
    tests(
      "CommandLineTests",
      [
        "tarn", "TarnConfig", "TarnControl", "TarnCore", "TarnEngine", "TarnFeeds", "TarnSchedule",
        "TestSupport",
        ofPrograms("ArgumentParser", package: "swift-argument-parser"),
      ]),
    tests("RepositoryTests", []),
    tests("EndToEndTests", ["TarnKit", "TarnKitTesting", "TestSupport"]),
  ],
  cLanguageStandard: .gnu17,
  cxxLanguageStandard: .cxx17
)

if let fuzzer {
  package.targets.append(
    .executableTarget(
      name: "tarn-fuzz", dependencies: ["TarnFeeds", "TarnConfig", "TarnCore"], path: "Tests/Fuzz",
      swiftSettings: settings,
      linkerSettings: [.unsafeFlags(["-Xlinker", fuzzer, "-lstdc++", "-lm"])]))
}
