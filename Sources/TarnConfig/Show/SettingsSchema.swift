import TarnCore
import TarnSchedule

/// The settings as a JSON Schema (draft-07), for editors that know TOML. `config/tarn.schema.json` is this
/// text.
///
/// The schema accepts all that the loader accepts from one file, and refuses most of what the loader refuses.
/// Only the loader checks several values or files against one another.
package enum SettingsSchema {
  package static func json() -> String {
    JSONValue.object([
      ("$schema", .text("http://json-schema.org/draft-07/schema#")),
      ("title", .text("Settings of Tarn (tarn.toml, conf.d/*.toml)")),
      ("type", .text("object")),
      ("additionalProperties", .boolean(false)),
      (
        "properties",
        .object([
          ("agent", table(.agent, "Settings of the agent itself")),
          ("limits", table(.limits, "Limits of all mirrors together")),
          (
            "hook",
            tables(
              "Whom to tell what happens to mirrors, one table per hook: [hook.NAME]",
              table(.hook, "A hook has one of command, webhook and ping"))
          ),
          (
            "mirror",
            tables(
              "Mirrors, one table per mirror: [mirror.NAME]",
              table(.mirror, "A mirror has a feed, a folder and a policy"))
          ),
        ])
      ),
    ]).written() + "\n"
  }

  static let namePattern = "^[^-/.:\\s][^/.:\\s]*$"

  /// A table of named tables.
  private static func tables(_ help: String, _ each: JSONValue) -> JSONValue {
    .object([
      ("description", .text(help)), ("type", .text("object")),
      ("propertyNames", .object([("pattern", .text(namePattern)), ("maxLength", .number(64))])),
      ("additionalProperties", each),
    ])
  }

  private static func table(_ scope: Setting.Scope, _ help: String) -> JSONValue {
    var members: [(String, JSONValue)] = [
      ("description", .text(help)),
      ("type", .text("object")),
      ("additionalProperties", .boolean(false)),
      ("properties", .object(Setting.all(in: scope).map { ($0.name, schema(of: $0)) })),
    ]
    if scope == .hook {
      let ways = ["command", "webhook", "ping"].map { JSONValue.object([("required", .list([.text($0)]))]) }
      members.append(("oneOf", .list(ways)))
    }
    if scope == .mirror {
      members.append(("not", .object([("required", .list([.text("every"), .text("schedule")]))])))
    }
    return .object(members)
  }

  private static func schema(of setting: Setting) -> JSONValue {
    let standard = setting.standard.map { " (default: \($0))" } ?? ""
    return .object([("description", .text(setting.help + standard))] + rule(setting.kind))
  }

  private static func rule(_ kind: SettingKind) -> [(String, JSONValue)] {
    switch kind {
    case .boolean: [("type", .text("boolean"))]
    case .number(let range, let word): either(integer(range), word)
    case .reserve:
      [("anyOf", .list([.object(integer(0...Int64.max)), .object(pattern("\(size)|[0-9.]+%"))]))]
    case .limit:
      [
        (
          "anyOf",
          .list([
            .object(integer(Int64(DeletionGuard.least)...Int64.max)), .object(pattern("[0-9.]+%|[0-9]+|off")),
          ])
        )
      ]
    case .rate: pattern("\(size)(/s)?|off")
    case .span(let word): pattern(span + (word.map { "|\($0)" } ?? ""))
    case .interval: pattern(span)
    case .socketAddress: pattern("(([0-9.]+|localhost|\\[[0-9a-fA-F:.]+\\]):)?[0-9]{1,5}")
    case .choice(let words): [("enum", .list(words.map { .text($0) }))]
    case .text: [("type", .text("string"))]
    case .patterns: strings
    case .path: path
    case .secretFile: [("anyOf", .list([.object(path)] + places))]
    case .secretURL: [("anyOf", .list([.object([("type", .text("string"))])] + places))]
    case .command, .names: strings + [("minItems", .number(1))]
    case .words(let words):
      [
        ("type", .text("array")), ("minItems", .number(1)),
        ("items", .object([("enum", .list(words.map { .text($0) }))])),
      ]
    case .address:
      [("anyOf", .list([.object(pattern("[Hh][Tt][Tt][Pp][Ss]?://[^@/?# ]+([/?#][^ ]*)?"))] + places))]
    case .feed:
      pattern(
        "/.*|(\(Self.remoteSchemes))://[^@/?# ]+([/?#][^ ]*)?|[Ff][Ii][Ll][Ee]://(localhost)?/.*")
    case .rates: rates
    case .calendar:
      [
        (
          "anyOf",
          .list([.object([("type", .text("string"))]), .object(strings + [("minItems", .number(1))])])
        )
      ]
    }
  }

  /// The schemes of remote feeds as a pattern for upper and lower case.
  private static let remoteSchemes = URLScheme.allCases.filter(\.isRemote).map { scheme in
    scheme.rawValue.map { $0.isLetter ? "[\($0.uppercased())\($0)]" : String($0) }.joined()
  }.joined(separator: "|")

  // MARK: - Parts

  /// The pattern of a span of the day that `RateTimetable.Row` reads.
  static let daySpan = "([A-Za-z.,-]+ +)?[0-9]+:[0-9]+-[0-9]+:[0-9]+"

  /// The pattern of a size that `Units.bytes` reads.
  static let size =
    "([0-9]+\\.?[0-9]*|\\.[0-9]+) *([Bb]|[KkMmGgTt]([Ii]?[Bb]|[Ii])?)?"
  /// The pattern of a span that `Units.duration` reads.
  static let span =
    "([0-9]+ *(s|sec|seconds?|m|min|minutes?|h|hr|hours?|d|days?|w|weeks?) *)*"
    + "[0-9]+ *(s|sec|seconds?|m|min|minutes?|h|hr|hours?|d|days?|w|weeks?)"

  private static let strings: [(String, JSONValue)] = [
    ("type", .text("array")), ("items", .object([("type", .text("string"))])),
  ]

  private static let path = pattern("/.*|~|~/.*")

  private static let places: [JSONValue] = [
    exactly([("file", .object(path))]),
    exactly([("credential", .object(pattern("[!-.0-9;-~]+")))]),
  ]

  private static let rates: [(String, JSONValue)] = [
    ("type", .text("array")),
    (
      "items",
      exactly([
        ("at", .object(pattern(daySpan))),
        ("limit", .object(pattern("\(size)(/s)?|off"))),
      ])
    ),
  ]

  private static func integer(_ range: ClosedRange<Int64>) -> [(String, JSONValue)] {
    [("type", .text("integer")), ("minimum", .number(range.lowerBound))]
      + (range.upperBound == .max ? [] : [("maximum", .number(range.upperBound))])
  }

  private static func either(_ rule: [(String, JSONValue)], _ word: String?) -> [(String, JSONValue)] {
    guard let word else { return rule }
    return [("anyOf", .list([.object(rule), .object([("const", .text(word))])]))]
  }

  private static func pattern(_ pattern: String) -> [(String, JSONValue)] {
    [("type", .text("string")), ("pattern", .text("^(\(pattern))$"))]
  }

  private static func exactly(_ members: [(String, JSONValue)]) -> JSONValue {
    .object([
      ("type", .text("object")), ("additionalProperties", .boolean(false)),
      ("required", .list(members.map { .text($0.0) })), ("properties", .object(members)),
    ])
  }
}
