/// The steps that make the database, and the number of the last one.
struct Schema: Sendable {
  /// "Tarn" in ASCII, at offset 68 of the file (SQLite file format, 1.3): tells Tarn's files from others.
  static let applicationID: Int64 = 0x5461_726E

  /// This program's.
  static let current = Schema(
    steps: [version1, version2, version3, version4, version5], objects: 12_102_223_173_980_577_857)

  /// Step n (from 1) brings a database of version n - 1 to version n. A step that was released never changes.
  let steps: [String]

  /// `Migrator.code` of what all steps make; nil where nobody worked it out. Without it each opening of a ledger makes all tables
  /// once more in memory, to hold them against those of the file: 3 ms.
  var objects: UInt64?

  /// `user_version` of a database that has all steps.
  var version: Int64 { Int64(steps.count) }
}
