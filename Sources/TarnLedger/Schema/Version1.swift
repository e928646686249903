extension Schema {
  /// The first version of the schema. Times are nanoseconds since 1970-01-01T00:00:00Z. Sizes, inodes and devices are 64 bits
  /// unchanged, and read as negative from 2^63 on. Paths are BLOBs, which SQLite orders by `memcmp`, as `RelativePath` does.
  static let version1 = """
    CREATE TABLE rows (
      -- What Tarn placed, or adopted, in the folder: one row per file.
      path BLOB NOT NULL PRIMARY KEY,  -- below the folder
      device INTEGER NOT NULL,         -- of the file, when it was placed; good within one boot
      inode INTEGER NOT NULL,          -- of the file, when it was placed
      size INTEGER NOT NULL,           -- bytes
      modified INTEGER NOT NULL,       -- mtime
      changed INTEGER NOT NULL,        -- ctime, after the rename
      algorithm INTEGER NOT NULL,      -- of the digest: DigestAlgorithm's raw value
      digest BLOB NOT NULL,            -- of the bytes placed
      verified INTEGER NOT NULL,       -- 1 when the feed gave a digest and it fitted
      fingerprint BLOB NOT NULL,       -- what the feed said of this version: Entry.fingerprint
      etag TEXT,                       -- of the response that brought it
      last_modified TEXT,              -- of the same response, as sent
      placed INTEGER NOT NULL          -- when it was placed
    ) STRICT, WITHOUT ROWID;

    CREATE INDEX rows_by_digest ON rows (digest);

    CREATE TABLE intents (
      -- Said before a rename, gone with the row that follows it: what to look at after a crash.
      path BLOB NOT NULL PRIMARY KEY,  -- below the folder; the path of the row, too
      kind INTEGER NOT NULL,           -- 1 install, 2 remove
      partial_name TEXT NOT NULL,      -- in partial/; empty for a removal
      trash_name TEXT NOT NULL,        -- in trash/, for what stands at the path
      displaces_own INTEGER NOT NULL,  -- 1 when Tarn placed what stands there and nobody edited it
      device INTEGER NOT NULL,         -- from here on the row to write, or the row that goes: its device
      inode INTEGER NOT NULL,          -- for an installation: before the rename, like all of these
      size INTEGER NOT NULL,           -- bytes
      modified INTEGER NOT NULL,       -- mtime
      changed INTEGER NOT NULL,        -- ctime
      algorithm INTEGER NOT NULL,      -- of the digest: DigestAlgorithm's raw value
      digest BLOB NOT NULL,            -- of the bytes
      verified INTEGER NOT NULL,       -- 1 when the feed gave a digest and it fitted
      fingerprint BLOB NOT NULL,       -- what the feed said of this version: Entry.fingerprint
      etag TEXT,                       -- of the response that brought it
      last_modified TEXT,              -- of the same response, as sent
      placed INTEGER NOT NULL          -- when it was placed
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE partials (
      -- Downloads that are not finished, and what proves that more bytes belong to the same version.
      path BLOB NOT NULL PRIMARY KEY,  -- where the file will be, below the folder
      name TEXT NOT NULL,              -- in partial/
      url TEXT NOT NULL,               -- that it came from
      etag TEXT,                       -- strong, with its quotes
      last_modified TEXT,              -- only when strong by RFC 9110 8.8.2.2
      total INTEGER,                   -- bytes of the whole; NULL when nobody said
      algorithm INTEGER,               -- of the digest; NULL with it
      digest BLOB,                     -- that the feed gave for this version; NULL for none
      fingerprint BLOB NOT NULL,       -- what the feed said of this version
      durable INTEGER NOT NULL,        -- bytes known to be on the disk
      boot_id TEXT NOT NULL            -- of the boot that wrote it; empty when unknown
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE trash (
      -- What lies in trash/.
      name TEXT NOT NULL PRIMARY KEY,  -- in trash/
      path BLOB NOT NULL,              -- where it was
      reason TEXT NOT NULL,            -- deleted, replaced or edited
      own INTEGER NOT NULL,            -- 1 when Tarn placed these bytes: they expire
      size INTEGER NOT NULL,           -- bytes
      moved INTEGER NOT NULL           -- when it got there
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE problems (
      -- Entries that are not as they should be, until a pass clears them.
      name BLOB NOT NULL PRIMARY KEY,  -- the path, or the refused name as the feed gave it
      kind TEXT NOT NULL,              -- failed, refused, conflict or held
      code TEXT NOT NULL,              -- stable
      message TEXT NOT NULL,           -- for a person
      since INTEGER NOT NULL,          -- when this code was first seen here
      seen INTEGER NOT NULL,           -- when it was last seen
      attempts INTEGER NOT NULL        -- how often
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE events (
      -- The journal. AUTOINCREMENT: a number is never given twice, not even after the newest were dropped.
      number INTEGER PRIMARY KEY AUTOINCREMENT,  -- of the event, from 1
      moment INTEGER NOT NULL,         -- when it happened
      code TEXT NOT NULL,              -- stable: published, deleted ...
      path BLOB,                       -- below the folder; NULL when it is about no file
      bytes INTEGER,                   -- where it applies
      detail TEXT NOT NULL             -- for a person
    ) STRICT;

    CREATE INDEX events_by_code ON events (code, moment);

    CREATE INDEX events_by_path ON events (path) WHERE path IS NOT NULL;

    CREATE TABLE held (
      -- The deletions that wait for an approval: no row or one.
      slot INTEGER PRIMARY KEY CHECK (slot = 1),  -- lets there be one row only
      plan TEXT NOT NULL,              -- its id, eight hexadecimal digits
      since INTEGER NOT NULL,          -- when it was held
      count INTEGER NOT NULL           -- of its paths
    ) STRICT;

    CREATE TABLE held_paths (
      -- What the held plan would delete. Paths may be written before their plan, in other transactions.
      plan TEXT NOT NULL,              -- its id
      path BLOB NOT NULL,              -- below the folder
      PRIMARY KEY (plan, path)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE activity (
      -- The transfers in progress, for a status beside a running pass.
      position INTEGER PRIMARY KEY,    -- in the list
      path BLOB NOT NULL,              -- below the folder
      received INTEGER NOT NULL,       -- bytes
      total INTEGER,                   -- bytes of the whole; NULL when nobody said
      rate INTEGER NOT NULL,           -- bytes per second
      source TEXT NOT NULL             -- URL
    ) STRICT;

    CREATE TABLE facts (
      -- Small named facts: the feed, the policy, times of the last pass, events-dropped.
      name TEXT NOT NULL PRIMARY KEY,  -- of the fact
      value TEXT NOT NULL              -- as text, whatever it is
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE state (
      -- Of the database itself: always one row.
      slot INTEGER PRIMARY KEY CHECK (slot = 1),  -- lets there be one row only
      clean INTEGER NOT NULL           -- 1 when it was closed in order and not written since
    ) STRICT;

    INSERT INTO state (slot, clean) VALUES (1, 1);
    """
}
