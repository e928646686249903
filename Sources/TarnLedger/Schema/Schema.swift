/// The steps that make the database. Their number is the newest version.
struct Schema: Sendable {
  /// "Tarn" in ASCII, at offset 68 of the file (SQLite file format, 1.3). It tells Tarn's files from others.
  static let applicationID: Int64 = 0x5461_726E

  /// The schema of this program.
  static let current = Schema(
    steps: [version1, version2, version3, version4, version5], objects: 12_102_223_173_980_577_857)

  /// The SQL of each step. Step n (from 1) updates a database of version n - 1 to version n. A released step never changes.
  let steps: [String]

  /// The `Migrator.code` of the objects that all steps make; `nil` when it was not computed. Without it each opening of a ledger
  /// makes all tables again in memory to compare them, which takes 3 ms.
  var objects: UInt64?

  /// The `user_version` of a database that has all steps.
  var version: Int64 { Int64(steps.count) }
}
