extension Schema {
  /// The schema of a session's ledger.
  static let session = Schema(steps: [
    sessionVersion1, sessionVersion2, sessionVersion3, sessionVersion4, sessionVersion5,
    sessionVersion6, sessionVersion7,
  ])

  private static let sessionVersion7 = """
    -- 1 when a client has changed the destination, else 0.
    ALTER TABLE tasks ADD COLUMN is_moved INTEGER NOT NULL DEFAULT 0;
    """

  private static let sessionVersion6 = """
    -- FileOrigin of the finished file as JSON; NULL when it is not known.
    ALTER TABLE tasks ADD COLUMN origin TEXT;
    -- The last answer has brought the file, or the same bytes again. It need not where a digest was asked for: a file that has it is
    -- finished without an answer.
    UPDATE tasks SET origin = json_object(
        'url', coalesce(json_extract(response, '$.redirects[0]'), json_extract(response, '$.url')),
        'etag', json_extract(response, '$.etag'), 'lastModified', json_extract(response, '$.lastModified'))
      WHERE state = 'finished' AND file IS NOT NULL AND json_extract(request, '$.digest') IS NULL
        AND json_extract(response, '$.status') IN (200, 206)
        AND coalesce(json_extract(response, '$.contentLength'), bytes) IS bytes
        AND coalesce(json_extract(response, '$.etag'), json_extract(response, '$.lastModified')) IS NOT NULL;
    """

  private static let sessionVersion5 = """
    -- ID of the file system that its partial file is on (f_fsid in hexadecimal); NULL when unknown.
    ALTER TABLE tasks ADD COLUMN disk TEXT;
    -- Tasks that wait for a while, in case a better request for them arrives.
    CREATE INDEX tasks_asked ON tasks (rank, position)
      WHERE state = 'waiting' AND code = 'request-old' AND due IS NOT NULL;
    """

  private static let sessionVersion4 = """
    -- TaskWish as JSON: what a client wants of the running task; NULL for nothing.
    ALTER TABLE tasks ADD COLUMN wish TEXT;
    -- The hook was told of these, or there was none.
    DELETE FROM facts WHERE name = 'told';
    """

  private static let sessionVersion3 = """
    -- The directory that its partial file lies in, where that is not the one that the file is to go to; else NULL.
    ALTER TABLE tasks ADD COLUMN moved_from TEXT;
    -- The number of the event that told its last end; NULL for none.
    ALTER TABLE tasks ADD COLUMN end_event INTEGER;
    UPDATE tasks SET end_event =
      (SELECT max(number) FROM events WHERE events.task = tasks.number AND code IN ('finished', 'failed'));
    CREATE INDEX tasks_by_end_event ON tasks (end_event);

    DELETE FROM facts WHERE name IN ('finished', 'failed') OR name LIKE 'finished:%' OR name LIKE 'failed:%';
    -- The number of the last event that all were delivered, of the session and of its groups.
    INSERT INTO facts SELECT 'delivered', max(number) FROM events WHERE code = 'all-delivered' HAVING count(*) > 0;
    """

  private static let sessionVersion2 = """
    -- When its time is over: seconds of the session's age while it is queued, running or waiting, else seconds that were left.
    ALTER TABLE tasks ADD COLUMN whole INTEGER;
    -- The same without a byte of progress.
    ALTER TABLE tasks ADD COLUMN stall INTEGER;
    -- When its request was known to be good for the last time, in nanoseconds since 1970.
    ALTER TABLE tasks ADD COLUMN fresh INTEGER;
    -- For the program: what it belongs to.
    ALTER TABLE tasks ADD COLUMN task_group TEXT;
    -- FileIdentity of the finished file, as numbers with blanks between.
    ALTER TABLE tasks ADD COLUMN file TEXT;
    -- Inode of the directory that its partial file lies in.
    ALTER TABLE tasks ADD COLUMN directory INTEGER;

    UPDATE tasks SET fresh = added, task_group = json_extract(request, '$.group');

    CREATE INDEX tasks_by_end ON tasks (min(whole, stall)) WHERE state IN ('queued', 'waiting');
    CREATE INDEX tasks_by_group ON tasks (task_group, state) WHERE task_group IS NOT NULL;
    CREATE INDEX tasks_with_partial ON tasks (number) WHERE directory IS NOT NULL;
    CREATE INDEX events_by_code ON events (code, number);

    CREATE TABLE bodies (
      -- The beginnings of answers that were no files: of the newest events only.
      number INTEGER PRIMARY KEY,      -- of the event
      body TEXT NOT NULL
    ) STRICT;
    """

  private static let sessionVersion1 = """
    CREATE TABLE state (
      -- Whether it was closed in order: one row.
      slot INTEGER PRIMARY KEY CHECK (slot = 1),  -- lets there be one row only
      clean INTEGER NOT NULL           -- 0 while somebody writes
    ) STRICT;

    INSERT INTO state (slot, clean) VALUES (1, 1);

    CREATE TABLE facts (
      -- Small named facts.
      name TEXT NOT NULL PRIMARY KEY,
      value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE tasks (
      -- AUTOINCREMENT: a number is never given twice.
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      state TEXT NOT NULL,             -- suspended, queued, running, waiting, finished, failed or cancelled
      rank INTEGER NOT NULL,           -- of its priority: smaller goes first
      position INTEGER NOT NULL,       -- among those of one rank
      due INTEGER,                     -- when it is tried again, in nanoseconds since 1970; of one that waits
      url TEXT NOT NULL,               -- as it was added
      destination TEXT NOT NULL,       -- as it was added
      client_key TEXT,                 -- the client's own
      request TEXT NOT NULL,           -- TaskRequest as JSON
      path TEXT,                       -- of the file, once it has a name
      bytes INTEGER,                   -- of the finished file
      digest TEXT,                     -- of the finished file
      code TEXT,                       -- why it waits or has failed
      message TEXT,                    -- the same for a person
      attempts INTEGER NOT NULL,       -- failures in a row
      response TEXT,                   -- TaskResponse as JSON, of the last answer
      added INTEGER NOT NULL,          -- when it was added
      ended INTEGER                    -- when it finished, failed or was cancelled
    ) STRICT;

    CREATE UNIQUE INDEX tasks_by_identity ON tasks (url, destination);
    CREATE UNIQUE INDEX tasks_by_key ON tasks (client_key) WHERE client_key IS NOT NULL;
    CREATE INDEX tasks_queued ON tasks (rank, position) WHERE state = 'queued';
    CREATE INDEX tasks_due ON tasks (due) WHERE state = 'waiting';
    CREATE INDEX tasks_by_state ON tasks (state);

    CREATE TABLE partials (
      -- Downloads that are not finished, and what proves that more bytes belong to the same version.
      path BLOB NOT NULL PRIMARY KEY,  -- the number of the task, in digits
      name TEXT NOT NULL,              -- beside the destination
      url TEXT NOT NULL,               -- that it came from
      etag TEXT,                       -- strong, with its quotes
      last_modified TEXT,              -- only when strong by RFC 9110 8.8.2.2
      total INTEGER,                   -- bytes of the whole; NULL when nobody said
      algorithm INTEGER,               -- of the digest; NULL with it
      digest BLOB,                     -- that the file is to have; NULL for none
      fingerprint BLOB NOT NULL,       -- empty
      durable INTEGER NOT NULL,        -- bytes known to be on the disk
      boot_id TEXT NOT NULL            -- of the boot that wrote it; empty when unknown
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE intents (
      -- Files that are about to get their names.
      task INTEGER PRIMARY KEY,
      inode INTEGER NOT NULL,          -- of the file
      size INTEGER NOT NULL,           -- in bytes
      digest TEXT NOT NULL             -- of its contents
    ) STRICT;

    CREATE TABLE events (
      -- AUTOINCREMENT: a number is never given twice.
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      code TEXT NOT NULL,              -- SessionEvent.Code
      task INTEGER,                    -- what it is about
      body TEXT NOT NULL               -- SessionEvent as JSON, without its number
    ) STRICT;
    """
}
