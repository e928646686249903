/// A rule for a download, applied to the head of the server's answer. The first rule that matches decides.
package struct ResponseRule: Codable, Sendable, Equatable {
  package enum Action: String, Codable, Sendable, CaseIterable {
    /// The body is the file, whatever the status.
    case accept
    case cancel
    /// The task waits, and a program is asked how to go on: see `SessionOrder.Verb.answer`.
    case hold
    /// The file is put at `to`.
    case place
  }

  /// The statuses that match; `nil` for 200 to 299.
  package var status: [Int]?
  /// The media types that match, such as `audio/mpeg` and `video/*`; `nil` for any.
  package var types: [String]?
  /// The smallest and the largest file that match, in bytes. When one is set, a file of unknown size does not match.
  package var leastBytes: UInt64?
  package var mostBytes: UInt64?
  package var then: Action
  /// The destination of `place`, as in `TaskRequest.to`.
  package var to: String?

  package init(_ then: Action) { self.then = then }

  package func fits(_ head: ResponseHead) -> Bool {
    let size = head.contentRange?.total ?? head.contentLength
    return (status?.contains(head.status) ?? (200..<300).contains(head.status))
      && types.map { Self.fits($0, head.contentType) } ?? true
      && leastBytes.map { least in size.map { $0 >= least } ?? false } ?? true
      && mostBytes.map { most in size.map { $0 <= most } ?? false } ?? true
  }

  private static func fits(_ types: [String], _ said: String?) -> Bool {
    guard let said else { return false }
    let type = said.prefix { $0 != ";" && $0 != " " }.lowercased()
    return types.contains { pattern in
      let pattern = pattern.lowercased()
      return pattern.hasSuffix("/*") ? type.hasPrefix(pattern.dropLast()) : type == pattern
    }
  }

  /// True for `type/subtype` and `type/*` (RFC 9110 8.3.1).
  private static func isType(_ text: String) -> Bool {
    let others = Array("!#$%&'+-.^_`|~".utf8)
    let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    func isToken(_ part: Substring.UTF8View) -> Bool {
      !part.isEmpty && part.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || others.contains($0) }
    }
    return parts.count == 2 && isToken(parts[0]) && (isToken(parts[1]) || Array(parts[1]) == Array("*".utf8))
  }

  /// - Throws: what is wrong with the rule, for its author.
  package func validate() throws(TaskRequest.Refusal) {
    guard (then == .place) == (to != nil), to.map({ TaskPlace($0) != nil }) ?? true else {
      throw TaskRequest.Refusal(
        code: "rule-refused", message: "a rule that places files, and no other, has 'to', an absolute path")
    }
    guard status?.isEmpty != true, types?.isEmpty != true else {
      throw TaskRequest.Refusal(code: "rule-refused", message: "a rule with an empty list never matches")
    }
    guard status?.allSatisfy({ (200...599).contains($0) }) ?? true else {
      throw TaskRequest.Refusal(code: "rule-refused", message: "a rule's status is a number from 200 to 599")
    }
    if let type = types?.first(where: { !Self.isType($0) }) {
      throw TaskRequest.Refusal(
        code: "rule-refused",
        message: "'\(Printable.escape(type))' is no media type: write audio/mpeg or audio/*; "
          + "without 'types' a rule is for all")
    }
  }
}
