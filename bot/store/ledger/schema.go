package ledger

import "hash/crc32"

// applicationID marks a file as a ledger, so that no other program's database is
// ever deleted by mistake.
const applicationID = 0x6b676c67

// version is derived from the schema, so that no change of it can be forgotten.
func version() int32 { return int32(crc32.ChecksumIEEE([]byte(schema)) >> 1) }

// Times are nanoseconds since 1970, 0 for never. n counts in the order of the
// events, and is the same after every rebuild.
const schema = `
-- Generation 2. Raise it when the same events lead to other rows.
CREATE TABLE progress (
	one   INTEGER PRIMARY KEY CHECK (one = 1),
	seq   INTEGER NOT NULL,
	print TEXT    NOT NULL -- of the event with that sequence: tells one journal from another
);
INSERT INTO progress VALUES (1, 0, '');

CREATE TABLE changes (
	id      TEXT    PRIMARY KEY,
	kind    TEXT    NOT NULL,
	repo_id INTEGER NOT NULL,
	repo    TEXT    NOT NULL,
	number  INTEGER NOT NULL,
	head    TEXT    NOT NULL,
	base    TEXT    NOT NULL,
	before  TEXT    NOT NULL, -- of a push: the commit that it is compared with
	author  TEXT    NOT NULL,
	title   TEXT    NOT NULL,
	open    INTEGER NOT NULL,
	draft   INTEGER NOT NULL,
	merged  INTEGER NOT NULL,
	settled INTEGER NOT NULL,
	seq     INTEGER NOT NULL, -- of the last event
	first   INTEGER NOT NULL,
	updated INTEGER NOT NULL, -- when the last event was
	state   TEXT    NOT NULL
) WITHOUT ROWID;
CREATE INDEX changes_unsettled ON changes (seq) WHERE NOT settled;
CREATE INDEX changes_open ON changes (repo_id, number) WHERE open;
CREATE INDEX changes_pushes ON changes (repo_id, head, before) WHERE kind = 'push';
CREATE INDEX changes_repo ON changes (repo_id, seq, kind, open, settled, repo, updated);

CREATE TABLE heads (
	repo_id INTEGER NOT NULL,
	sha     TEXT    NOT NULL,
	change  TEXT    NOT NULL,
	PRIMARY KEY (repo_id, sha, change)
) WITHOUT ROWID;

CREATE TABLE runs (
	n        INTEGER PRIMARY KEY,
	job      TEXT    NOT NULL UNIQUE,
	change   TEXT    NOT NULL,
	repo_id  INTEGER NOT NULL,
	kernel   TEXT    NOT NULL, -- as it is shown
	folder   TEXT    NOT NULL, -- which kernel it is
	attempt  INTEGER NOT NULL,
	head     TEXT    NOT NULL,
	rule     TEXT    NOT NULL,
	phase    TEXT    NOT NULL,
	outcome  TEXT    NOT NULL,
	reason   TEXT    NOT NULL,
	line     TEXT    NOT NULL,
	device   TEXT    NOT NULL,
	label    TEXT    NOT NULL, -- the device of the policy that the run is for; '' if any one runner is enough
	runner   TEXT    NOT NULL,
	asked    INTEGER NOT NULL,
	begun    INTEGER NOT NULL,
	ended    INTEGER NOT NULL,
	evidence TEXT    NOT NULL, -- blob
	verdict  TEXT    NOT NULL, -- blob
	side     INTEGER NOT NULL,
	was      TEXT    NOT NULL, -- the folder before the change renamed the kernel
	against  TEXT    NOT NULL, -- the commit that it was measured against
	arch     TEXT    NOT NULL,
	unbuildable INTEGER NOT NULL, -- the baseline did not build
	main     INTEGER NOT NULL  -- decided something about the default branch
);
CREATE INDEX runs_change ON runs (change, folder);
CREATE INDEX runs_kernel ON runs (repo_id, folder);
CREATE INDEX runs_repo ON runs (repo_id);
CREATE INDEX runs_main ON runs (repo_id, folder) WHERE main;
CREATE INDEX runs_outcome ON runs (phase, outcome);
CREATE INDEX runs_head ON runs (head);

CREATE TABLE shapes (
	run     INTEGER NOT NULL, -- runs.n
	shape   TEXT    NOT NULL,
	p50     REAL, -- microseconds
	speedup REAL,
	ratio   REAL, -- baseline/candidate
	dims    TEXT    NOT NULL,
	PRIMARY KEY (run, shape)
) WITHOUT ROWID;

CREATE TABLE commands (
	n        INTEGER PRIMARY KEY,
	change   TEXT    NOT NULL,
	repo_id  INTEGER NOT NULL,
	id       TEXT    NOT NULL,
	by       TEXT    NOT NULL,
	text     TEXT    NOT NULL,
	head     TEXT    NOT NULL,
	answered INTEGER NOT NULL,
	ok       INTEGER NOT NULL,
	answer   TEXT    NOT NULL, -- JSON
	at       INTEGER NOT NULL,
	UNIQUE (change, id)
);
CREATE INDEX commands_repo ON commands (repo_id);

CREATE TABLE overrides (
	change  TEXT    NOT NULL,
	command TEXT    NOT NULL, -- commands.id
	scope   TEXT    NOT NULL, -- JSON: what it holds for
	by      TEXT    NOT NULL,
	reason  TEXT    NOT NULL,
	at      TEXT    NOT NULL, -- as the override says
	PRIMARY KEY (change, command)
) WITHOUT ROWID;

CREATE TABLE watched (
	name    TEXT    PRIMARY KEY, -- of the kernel's subject
	repo_id INTEGER NOT NULL,
	folder  TEXT    NOT NULL,
	state   TEXT    NOT NULL
) WITHOUT ROWID;
CREATE INDEX watched_repo ON watched (repo_id, folder);

CREATE TABLE repositories (
	id      INTEGER PRIMARY KEY, -- GitHub's number
	name    TEXT    NOT NULL, -- today's; '' if no event says it
	removed TEXT    NOT NULL  -- why the bot cannot reach it; '' if it can
);

CREATE TABLE public (
	name    TEXT    PRIMARY KEY, -- as in the configuration, in lower case
	repo_id INTEGER NOT NULL     -- the repository that it meant
) WITHOUT ROWID;
`

// tables is every table that holds rows of events.
var tables = [...]string{"changes", "heads", "runs", "shapes", "commands", "overrides", "watched", "repositories", "public"}
