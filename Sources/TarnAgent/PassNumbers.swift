package import TarnEngine

extension PassCounts {
  /// The counts, by the names of the JSON summary.
  package var named: [String: Int] {
    [
      "wanted": wanted, "inPlace": inPlace, "current": current, "planned": planned.all, "fetched": fetched,
      "updated": updated, "restored": restored, "replaced": replaced, "adopted": adopted, "copied": copied,
      "revalidated": revalidated, "deleted": deleted, "forgotten": forgotten, "unlisted": unlisted,
      "excluded": excluded, "kept": kept, "failed": failed, "refused": refused, "conflict": conflict,
      "held": held, "waiting": waiting,
    ]
  }
}

extension PassBytes {
  /// The bytes, by the names of the JSON summary.
  package var named: [String: UInt64] {
    ["wanted": wanted, "current": current, "planned": planned, "received": received, "published": published]
  }
}
