package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
	sqlite3 "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"bijou/state/store"
)

// The pragmas of every connection. What is not here is SQLite's default, or is
// kept in the file since Create (journal_mode=WAL).
var (
	// A reader waits only for the rare exclusive moments: recovery after a
	// crash, and the checkpoint of the last process that closes the file.
	readerPragmas = []string{"busy_timeout(10000)", "query_only(1)"}

	writerPragmas = []string{
		// A commit is synced before it returns: a hook that exited 0 must
		// stay done after a power cut. NORMAL would lose the last commits.
		"synchronous(FULL)",
		// The writer waits in Go: SQLite's own backoff sleeps up to 100 ms, in
		// which a busy second process takes the lock a hundred times.
		"busy_timeout(0)",
		// A charm's blobs make the WAL large; the next round cuts it back.
		"journal_size_limit(4194304)",
	}
)

// openSQL opens the file with mode=rw, which never creates one. It escapes the path, since a ? would end
// it.
func openSQL(path string, pragmas []string) (*sql.DB, error) {
	query := url.Values{"mode": {"rw"}, "_pragma": pragmas}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	return sql.Open("sqlite", dsn.String())
}

// conn is one connection with its prepared statements, for one goroutine at a time.
// Statements run to their end: to watch a context would cost a goroutine for each.
type conn struct {
	sql        *sql.Conn
	statements map[string]*sql.Stmt
}

func newConn(ctx context.Context, from *sql.DB) (*conn, error) {
	c, err := from.Conn(ctx)
	if err != nil {
		return nil, storeError(err)
	}
	return &conn{c, map[string]*sql.Stmt{}}, nil
}

// prepare returns the prepared statement of a query, each of which the connection prepares once.
func (c *conn) prepare(query string) (*sql.Stmt, error) {
	if s := c.statements[query]; s != nil {
		return s, nil
	}
	s, err := c.sql.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, storeError(err)
	}

	c.statements[query] = s
	return s, nil
}

// exec executes a statement, and returns the number of changed rows.
func (c *conn) exec(query string, args ...any) (int64, error) {
	s, err := c.prepare(query)
	if err != nil {
		return 0, err
	}

	result, err := s.Exec(args...)
	if err != nil {
		return 0, storeError(err)
	}
	n, err := result.RowsAffected()
	return n, storeError(err)
}

// queryRow reports whether the query has a row.
func (c *conn) queryRow(query string, args []any, into ...any) (bool, error) {
	s, err := c.prepare(query)
	if err != nil {
		return false, err
	}

	err = s.QueryRow(args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}

	return err == nil, storeError(err)
}

// queryRows stops early if each returns false or an error.
func (c *conn) queryRows(query string, args []any, each func(*sql.Rows) (bool, error)) error {
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	rows, err := s.Query(args...)
	if err != nil {
		return storeError(err)
	}
	defer rows.Close()

	for rows.Next() {
		if more, err := each(rows); err != nil || !more {
			return storeError(err)
		}
	}

	return storeError(rows.Err())
}

func (c *conn) close() {
	for _, s := range c.statements {
		s.Close()
	}
	c.sql.Close()
}

// connPool has connections for reading, with their prepared statements. Reads are short: who
// finds all in use waits for one, since another would cost more, and SQLite keeps each file that
// it has opened.
type connPool struct {
	sql  *sql.DB
	idle chan *conn
	puts atomic.Int64 // how often one was given back

	mu     sync.Mutex
	open   int // idle or in use
	closed bool
}

const (
	maxIdleConns = 8 // plenty for the cores of one machine
	// If nobody has given one back for so long, all are held for something long, or by who waits.
	maxStall = 250 * time.Millisecond
)

// get returns an idle connection, or a new one if that is allowed: the pool is not full, or no connection has
// come back for maxStall.
func (p *connPool) get(ctx context.Context) (*conn, error) {
	select {
	case c := <-p.idle:
		return c, nil
	default:
	}

	for stalled := false; !p.reserve(stalled || ctx.Err() != nil); {
		before := p.puts.Load()
		select {
		case c := <-p.idle:
			return c, nil
		case <-time.After(maxStall):
			stalled = p.puts.Load() == before
		case <-ctx.Done():
		}
	}

	c, err := newConn(ctx, p.sql)
	if err != nil {
		p.release()
	}
	return c, err
}

// reserve counts a connection that is about to be opened. It returns false if there are enough, unless
// one more is needed all the same.
func (p *connPool) reserve(needed bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open >= maxIdleConns && !needed {
		return false
	}

	p.open++
	return true
}

// release counts one that is open no more.
func (p *connPool) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
}

// put gives a connection back. It closes the connection if enough are idle.
func (p *connPool) put(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.puts.Add(1)
	if p.closed || len(p.idle) == maxIdleConns {
		c.close()
		p.open--
		return
	}
	p.idle <- c
}

// discard closes a connection after an error. Package sql gives the connection to whoever opens one next,
// who must not read on in a transaction of before.
func (p *connPool) discard(c *conn) {
	_, _ = c.exec("ROLLBACK") // or there is none
	c.close()
	p.release()
}

func (p *connPool) withConn(ctx context.Context, f func(*conn) error) error {
	c, err := p.get(ctx)
	if err != nil {
		return err
	}
	defer p.put(c)
	return f(c)
}

// close closes all idle connections, and those that are given back later.
func (p *connPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		(<-p.idle).close()
		p.open--
	}
	p.closed = true
	p.sql.Close()
}

// storeError returns the store's own error for one of SQLite's, or an error that explains it in plain
// words. It returns any other error unchanged.
func storeError(err error) error {
	if errors.Is(err, sql.ErrConnDone) || errors.Is(err, driver.ErrBadConn) {
		return store.ErrClosed
	}
	if resultCode(err) == codes.SQLITE_BUSY {
		return store.AwayError("another process has it locked", err)
	}
	if t, ok := troubles[resultCode(err)]; ok {
		t.err = err
		return t
	}

	return err
}

// trouble is what one of SQLite's errors means, in plain words.
type trouble struct {
	meaning string
	hint    string
	err     error
}

func (t trouble) Error() string { return t.meaning + ": " + t.err.Error() }
func (t trouble) Unwrap() error { return t.err }

// Hint returns advice about the error. Of these errors only damage can lose an acknowledged commit.
func (t trouble) Hint() string { return t.hint }

// troubles are by primary result code.
var troubles = map[int]trouble{
	codes.SQLITE_FULL: {meaning: "the disk is full", hint: "make room; agents go on by themselves"},
	codes.SQLITE_IOERR: {
		meaning: "the disk answers with errors",
		hint:    "look for the disk's errors in dmesg; agents go on by themselves once it answers",
	},
	codes.SQLITE_READONLY: {
		meaning: "no permission to write the file or its directory",
		hint:    "run this as the file's owner, and check that its disk is mounted for writing",
	},
	codes.SQLITE_CANTOPEN: {
		meaning: "cannot open the file or its directory",
		hint:    "run this as the file's owner",
	},
	codes.SQLITE_NOTADB: {meaning: "it is not a bijou store", hint: "check the path of the state"},
	codes.SQLITE_CORRUPT: {
		meaning: "the file is damaged",
		hint:    "if the error persists, stop the agents and restore a backup: juju restore FILE --replace",
	},
}

// resultCode returns the primary result code of an error of SQLite's that storeError has
// not seen yet, or 0.
func resultCode(err error) int {
	if e, ok := err.(*sqlite3.Error); ok {
		return e.Code() & 0xff
	}
	return 0
}
