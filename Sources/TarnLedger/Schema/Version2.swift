extension Schema {
  /// Adds the names of the files of windows. Units are as in version 1.
  static let version2 = """
    CREATE TABLE names (
      -- The name that a file of a window got at first sight, and what it is known by again.
      path BLOB NOT NULL PRIMARY KEY,  -- below the folder
      guid BLOB,                       -- of the item, as the feed gives it; NULL when it gives none
      ordinal INTEGER NOT NULL,        -- of the file within its item, from 0
      place BLOB NOT NULL,             -- its URL without query and fragment
      url BLOB NOT NULL,               -- its URL when the place was last another
      title BLOB NOT NULL,             -- of the item, at first sight; may be empty
      date INTEGER,                    -- of the item, at first sight; NULL when it has none
      first INTEGER NOT NULL,          -- when it was first seen
      rule TEXT NOT NULL               -- how it was last recognised: new, guid, url or title-date
    ) STRICT, WITHOUT ROWID;

    CREATE INDEX names_by_guid ON names (guid) WHERE guid IS NOT NULL;

    CREATE INDEX names_by_place ON names (place);

    CREATE INDEX names_by_url ON names (url);

    CREATE INDEX names_by_title ON names (title, date) WHERE date IS NOT NULL;
    """
}
