extension Schema {
  /// Adds the origin of bytes: which files were adopted, and the identity of files in the trash after the move. Units are as in
  /// version 1.
  ///
  /// For rows of older versions the journal decides: a row is Tarn's when its newest event that brought bytes says so. When that
  /// event was dropped, the validators of a response show that Tarn fetched it. Rows without validators count as adopted. The trash
  /// of older versions stays until it is emptied, because nobody checked the files after the move.
  static let version3 = """
    ALTER TABLE rows ADD COLUMN adopted INTEGER NOT NULL DEFAULT 0;  -- 1 when somebody else placed these bytes

    ALTER TABLE intents ADD COLUMN adopted INTEGER NOT NULL DEFAULT 0;  -- of the row

    ALTER TABLE trash ADD COLUMN device INTEGER;  -- of what lies there, after the move; NULL, and not own: unknown

    ALTER TABLE trash ADD COLUMN inode INTEGER;  -- as device

    ALTER TABLE trash ADD COLUMN modified INTEGER;  -- mtime; as device

    ALTER TABLE trash ADD COLUMN changed INTEGER;  -- ctime; as device

    -- OR FAIL: no journal of the statement in memory; the transaction takes everything back in any case.
    UPDATE OR FAIL rows SET adopted = 1 WHERE etag IS NULL AND last_modified IS NULL;

    CREATE TEMP TABLE newest AS SELECT path, max(number), code FROM events
    WHERE code IN ('adopted', 'fetched', 'updated', 'restored', 'replaced', 'copied', 'published') GROUP BY path;

    UPDATE OR FAIL rows SET adopted = newest.code = 'adopted' FROM newest WHERE newest.path = rows.path;

    DROP TABLE newest;

    UPDATE intents SET adopted = 1
    WHERE kind = 2 AND EXISTS (SELECT 1 FROM rows WHERE rows.path = intents.path AND rows.adopted = 1);

    UPDATE trash SET own = 0;
    """
}
