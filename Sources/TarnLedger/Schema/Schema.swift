/// The steps that make the database, and the number of the last one.
struct Schema: Sendable {
  /// "Tarn" in ASCII, at offset 68 of the file (SQLite file format, 1.3): tells Tarn's files from others.
  static let applicationID: Int64 = 0x5461_726E

  /// This program's.
  static let current = Schema(steps: [version1, version2, version3, version4, version5])

  /// Step n (from 1) brings a database of version n - 1 to version n. A step that was released never changes.
  let steps: [String]

  /// `user_version` of a database that has all steps.
  var version: Int64 { Int64(steps.count) }
}
