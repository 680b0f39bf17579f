PRAGMA journal_mode = WAL;
PRAGMA application_id = %d;
PRAGMA user_version = %d;
BEGIN;

-- The present keys. lease is 0 for a key without a lease.
CREATE TABLE kv (
	key   BLOB    NOT NULL PRIMARY KEY,
	value BLOB,
	rev   INTEGER NOT NULL,
	lease INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX kv_lease ON kv (lease) WHERE lease != 0;

-- The change log: the keys that each commit has put or deleted, except those of quiet operations.
CREATE TABLE log (
	rev     INTEGER NOT NULL,
	key     BLOB    NOT NULL,
	deleted INTEGER NOT NULL,
	PRIMARY KEY (rev, key)
) WITHOUT ROWID;

-- One row: the newest revision, the revision up to which the log was trimmed, and the
-- generation (see generation.go). Older binaries create stores without a generation. Such
-- a store gets it with the first commit of a newer binary.
CREATE TABLE head (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	revision INTEGER NOT NULL,
	trimmed  INTEGER NOT NULL,
	generation BLOB
);
INSERT INTO head VALUES (1, 0, 0, NULL);

-- The present leases, with the processes that hold them. Each refresh increments the
-- counter. Because of AUTOINCREMENT, an id is never used again.
CREATE TABLE lease (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	ttl_ms  INTEGER NOT NULL,
	counter INTEGER NOT NULL,
	pid     INTEGER NOT NULL,
	start   TEXT    NOT NULL, -- of the process, in clock ticks after boot
	pidns   TEXT    NOT NULL, -- the pid namespace that pid is of
	boot    TEXT    NOT NULL  -- the kernel's boot id
);
COMMIT;
