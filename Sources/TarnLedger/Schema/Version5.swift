extension Schema {
  /// Lowers the cost of each published file. The intents of a group share one row, and two indices go that each event was written
  /// into. The events of one path are searched from the newest on. Deletions, which the guard counts, keep an index.
  static let version5 = """
    CREATE TABLE intent_groups (
      -- Intents that were said together, as those of the table intents.
      number INTEGER PRIMARY KEY,  -- of the group
      body BLOB NOT NULL           -- IntentCodec
    ) STRICT;

    DROP INDEX events_by_path;

    DROP INDEX events_by_code;

    CREATE INDEX deletions ON events (moment) WHERE code = 'deleted';
    """
}
