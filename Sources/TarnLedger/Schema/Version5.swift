extension Schema {
  /// What a file that is published costs: the intents of a group in one row, and events without two indexes that each of
  /// them was written into. One path's events are looked for from the newest on; deletions, which the guard counts, keep an index.
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
