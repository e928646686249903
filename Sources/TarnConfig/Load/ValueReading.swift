import TarnCore
import TarnSchedule

/// The reason why a value is refused.
struct Refusal: Error, Equatable {
  var code: SettingsProblem.Code
  /// The message, which follows the setting's name: `takes a whole number ..., and this is a string`.
  var message: String
  var hint: String?
  /// The position inside the value; `nil` for its beginning.
  var position: SettingPosition?
  /// The refusals of other parts of the same value, in order; these have no others themselves.
  var others: [Refusal] = []
}

/// Reads the value of one setting from a document and checks its type, unit and range.
struct ValueReading {
  /// The directory `$HOME`, for paths that begin with `~/`.
  var home: String?
  var schedules: ScheduleCheck

  func read(_ node: SettingNode, as setting: Setting) throws(Refusal) -> SettingValue {
    do throws(Refusal) {
      let value = try value(node, as: setting)
      if let option = setting.option { try check(value, as: option) }
      return value
    } catch {
      var refusal = error
      // A misplaced value may be the secret itself.
      if setting.kind.isSecret, refusal.code == .badValue { refusal.message = "takes \(setting.kind.takes)" }
      throw refusal
    }
  }

  /// Returns a warning about an accepted value.
  func warning(_ value: SettingValue, _ setting: Setting) -> Refusal? {
    switch (setting.kind, value) {
    case (.calendar, .texts(let texts)): return schedules.warning(texts)
    case (.rate, .text(let text)): return Self.doubt([text])
    case (.rates, .rates(let rates)): return Self.doubt(rates.map(\.limit))
    default: return nil
    }
  }

  private static func doubt(_ rates: [String]) -> Refusal? {
    guard let doubt = rates.lazy.compactMap(Units.doubt(ofRate:)).first else { return nil }
    return Refusal(.badValue, "is very low: \(doubt)", hint: "write the unit, also where it is B/s")
  }

  /// Reads each part of a list.
  ///
  /// - Throws: the first fault, with those of the other parts.
  func each<Part, Value>(
    _ parts: [Part], _ read: (Part) throws(Refusal) -> Value
  ) throws(Refusal) -> [Value] {
    var values: [Value] = []
    var faults: [Refusal] = []
    for part in parts where faults.count < DocumentWalk.mostProblems {
      do throws(Refusal) {
        values.append(try read(part))
      } catch {
        var fault = error
        fault.others = []
        faults += [fault] + error.others
      }
    }
    guard var first = faults.first else { return values }
    first.others = Array(faults.dropFirst())
    throw first
  }

  private func value(_ node: SettingNode, as setting: Setting) throws(Refusal) -> SettingValue {
    switch (setting.kind, node.value) {
    case (.boolean, .boolean(let value)): return .boolean(value)
    case (.number(let range, _), .integer(let number)):
      guard range.contains(number) else { throw range.refusal(setting, number: number) }
      return .number(number)
    case (.number(_, let word), .text(let text)) where text == word: return .text(text)
    case (.reserve, .integer(let bytes)): return .text(String(bytes))
    case (.limit, .integer(let count)): return .text(try checked(String(count), as: setting))
    case (.reserve, .text(let text)), (.limit, .text(let text)), (.rate, .text(let text)),
      (.span, .text(let text)),
      (.interval, .text(let text)), (.choice, .text(let text)), (.text, .text(let text)),
      (.socketAddress, .text(let text)):
      return .text(try checked(text, as: setting))
    case (.patterns, .array(let nodes)):
      return .texts(try each(nodes) { node throws(Refusal) in try text(node, setting) })
    case (.command, .array(let nodes)), (.words, .array(let nodes)), (.names, .array(let nodes)):
      return .texts(try list(nodes, setting))
    case (.address, .text(let text)): return .text(try FeedRule.checkAddress(text, setting))
    case (.path, .text(let text)): return .text(try path(text))
    case (.feed, .text(let text)): return .text(try FeedRule.check(text))
    case (.secretFile, .text(let text)): return .secret(.file(try path(text)))
    case (.secretURL, .text(let text)):
      try FeedRule.refusePassword(
        text, hint: "write the whole URL into a file of its own: proxy = { file = \"/path\" }")
      guard URLPort.isSound(text) else {
        throw Refusal(
          .badValue, "has a port that is out of range",
          hint: "a port is a number from 1 to 65535: write for example \(setting.name) = \(setting.example)")
      }
      return .text(text)
    case (.secretFile, .table(let members)), (.secretURL, .table(let members)),
      (.address, .table(let members)):
      return .secret(try secret(members, setting))
    case (.rates, .array(let nodes)): return .rates(try rates(nodes))
    case (.calendar, .text(let text)):
      try schedules.check(text, at: node.position)
      return .texts([text])
    case (.calendar, .array(let nodes)):
      let texts = try each(nodes) { node throws(Refusal) in
        let text = try text(node, setting)
        try schedules.check(text, at: node.position)
        return text
      }
      guard !texts.isEmpty else { throw Refusal(.badValue, "is an empty list", hint: "leave it out instead") }
      return .texts(texts)
    default: throw wrongType(node, setting)
    }
  }

  /// Reads a list that is not empty.
  private func list(_ nodes: [SettingNode], _ setting: Setting) throws(Refusal) -> [String] {
    let texts = try each(nodes) { node throws(Refusal) in
      let text = try text(node, setting)
      if case .words(let words) = setting.kind, !words.contains(text) {
        throw Refusal(
          .badValue, "takes \(setting.kind.takes), not '\(Redaction.short(text))'",
          hint: Spelling.nearest(text, words).map { "write \"\($0)\"" }, position: node.position)
      }
      return text
    }
    guard texts.first?.isEmpty == false else {
      throw Refusal(
        .badValue, "takes \(setting.kind.takes)",
        hint: "write for example \(setting.name) = \(setting.example), or leave it out")
    }
    return texts
  }

  private func checked(_ text: String, as setting: Setting) throws(Refusal) -> String {
    let isTaken =
      switch setting.kind {
      case .reserve: Units.reserve(text) != nil
      case .limit: DeleteLimit(text) != nil
      case .rate: Units.rate(text) != nil
      case .span(let word): text == word || Units.duration(text).map { $0 > 0 } ?? false
      case .interval: try isInterval(text, setting)
      case .socketAddress: ListenAddress(text) != nil
      case .choice(let words): words.contains(text)
      default: true
      }
    guard !isTaken else { return text }
    var hint = "write for example \(setting.name) = \(setting.example)"
    if case .choice(let words) = setting.kind, let near = Self.meant(text, words) {
      hint = "write \(setting.name) = \"\(near)\""
    }
    throw Refusal(.badValue, "takes \(setting.kind.takes), not '\(Redaction.short(text))'", hint: hint)
  }

  /// Finds the word that was meant. Words of other tools precede words with a similar spelling: `revert` is
  /// no misspelled `report`.
  private static func meant(_ text: String, _ words: [String]) -> String? {
    let others = [
      "restore": ["revert", "undo", "reset", "overwrite", "replace", "repair", "force"],
      "keep": ["ignore", "leave", "skip", "preserve"], "report": ["warn", "tell", "error", "notify"],
    ]
    let word = text.lowercased()
    return words.first { others[$0]?.contains(word) == true } ?? Spelling.nearest(text, words)
  }

  private func isInterval(_ text: String, _ setting: Setting) throws(Refusal) -> Bool {
    guard let seconds = Units.duration(text), seconds > 0 else { return false }
    guard !Cadence.bounds.contains(seconds) else { return true }
    let isEvery = setting.name == "every"
    let isShort = seconds < Cadence.bounds.lowerBound
    throw Refusal(
      .outOfRange, "takes \(SettingKind.interval.takes), not '\(Redaction.short(text))'",
      hint: isShort
        ? "write \(setting.name) = \"1min\"" + (isEvery ? "; a pass at any other moment: 'tarn sync'" : "")
        : "write \(setting.name) = \"366d\"" + (isEvery ? ", or a schedule such as \"*-01-01\"" : ""))
  }

  /// Reads one member of a list of texts.
  private func text(_ node: SettingNode, _ setting: Setting) throws(Refusal) -> String {
    guard case .text(let text) = node.value else {
      var refusal = wrongType(node, setting)
      refusal.message = "takes \(setting.kind.takes), and \(node.kindName) is in it"
      refusal.position = node.position
      throw refusal
    }
    return text
  }

  private func path(_ text: String) throws(Refusal) -> String {
    guard let path = SettingPath.absolute(text, home: home) else {
      throw Refusal(
        .badValue, "takes an absolute path, not '\(Redaction.short(text))'",
        hint: text.hasPrefix("~") && home == nil
          ? "$HOME is not set here: write the whole path" : SettingPath.hint(text))
    }
    return path
  }

  private func secret(_ members: [SettingNode.Member], _ setting: Setting) throws(Refusal)
    -> SettingValue.Secret
  {
    let hint = "write \(setting.name) = { file = \"/path\" } or { credential = \"name\" }"
    guard members.count == 1, let member = members.first else {
      throw Refusal(.badValue, "takes one of file and credential", hint: hint)
    }
    switch (member.key, member.node.value) {
    case ("file", .text(let text)):
      return .file(try path(text))
    case ("credential", .text(let name)):
      guard SecretPlace.isCredentialName(name) else {
        throw Refusal(
          .badValue, "names no credential", hint: "a name is printable ASCII without blanks, / and :",
          position: member.node.position)
      }
      return .credential(name)
    case ("file", _), ("credential", _):
      throw Refusal(
        .wrongType, "takes a string for '\(member.key)', and this is \(member.node.kindName)", hint: hint,
        position: member.node.position)
    default:
      throw Refusal(
        .unknownSetting, "knows no '\(Redaction.short(member.key))', only file and credential", hint: hint,
        position: member.keyPosition)
    }
  }

  /// Checks the value with `PassOptions`, which knows each option's range.
  private func check(_ value: SettingValue, as option: PassOptions.Name) throws(Refusal) {
    guard let texts = value.optionTexts else { return }
    let options = PassOptions(values: [option: texts])
    do throws(PassOptions.Failure) {
      _ = try options.policy()
      _ = try options.network()
    } catch {
      throw Refusal(
        .badValue, "takes \(error.expected), not '\(Redaction.short(error.value))'",
        hint: "write for example \(option.rawValue) = \(option.setting.example)")
    }
  }
}

extension ScheduleTextError {
  /// Describes the error briefly and without secrets: `at its character 4: hour 24 is not in 0..23`.
  func place(in text: String) -> String {
    let before = String(decoding: text.utf8.prefix(offset), as: UTF8.self).unicodeScalars.count
    // The reason may quote a word of the text, of any length.
    let isCut = reason.unicodeScalars.count > 120
    let front = String(String.UnicodeScalarView(reason.unicodeScalars.prefix(120)))
    return "at its character \(before + 1): \(Redaction.doubtful(front, isCut: isCut))"
      + (isCut ? "\u{2026}" : "")
  }
}

extension SettingValue {
  typealias Secret = SecretPlace

  /// The value in the form of `PassOptions`; `nil` for kinds that it does not take.
  var optionTexts: [String]? {
    switch self {
    case .boolean(let value): [String(value)]
    case .number(let value): [String(value)]
    case .text(let text): [text]
    case .texts(let texts): texts
    case .secret, .rates: nil
    }
  }
}

extension Refusal {
  init(_ code: SettingsProblem.Code, _ message: String, hint: String? = nil, position: SettingPosition? = nil)
  {
    self.init(code: code, message: message, hint: hint, position: position)
  }
}

extension ClosedRange<Int64> {
  fileprivate func refusal(_ setting: Setting, number: Int64) -> Refusal {
    Refusal(
      .outOfRange, "takes \(setting.kind.takes), not \(number)",
      hint: "write \(setting.name) = \(Swift.min(Swift.max(number, lowerBound), upperBound))")
  }
}
