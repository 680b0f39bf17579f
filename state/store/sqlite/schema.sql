PRAGMA journal_mode = WAL;
PRAGMA application_id = %d;
PRAGMA user_version = %d;
BEGIN;

-- The keys that live. lease is 0 for none.
CREATE TABLE kv (
	key   BLOB    NOT NULL PRIMARY KEY,
	value BLOB,
	rev   INTEGER NOT NULL,
	lease INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX kv_lease ON kv (lease) WHERE lease != 0;

-- The change log: what each commit did, but for quiet puts.
CREATE TABLE log (
	rev     INTEGER NOT NULL,
	key     BLOB    NOT NULL,
	deleted INTEGER NOT NULL,
	PRIMARY KEY (rev, key)
) WITHOUT ROWID;

-- One row: the newest revision, up to which the log is trimmed, and which commits
-- have led here. Binaries from before have no generation: a store of theirs gets it
-- with the first commit.
CREATE TABLE head (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	revision INTEGER NOT NULL,
	trimmed  INTEGER NOT NULL,
	generation BLOB
);
INSERT INTO head VALUES (1, 0, 0, NULL);

-- The leases that live, each with the process that holds it. Each refresh
-- counts on. AUTOINCREMENT: an id is never used again.
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
