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

// The pragmas of every connection. Other pragmas have SQLite's defaults, or are stored in the file by Create
// (journal_mode=WAL).
var (
	// A reader waits only while another process has the file exclusively, which is rare: during recovery
	// after a crash, and during the checkpoint of the last process that closes the file.
	readerPragmas = []string{"busy_timeout(10000)", "query_only(1)"}

	writerPragmas = []string{
		// A commit is synced before it returns, since the effects of a hook that exited 0 must survive a
		// power cut. With NORMAL, a power cut could undo the last commits.
		"synchronous(FULL)",
		// The writer waits in Go. SQLite's own backoff sleeps up to 100 ms. In this time a busy second
		// process can take the lock a hundred times.
		"busy_timeout(0)",
		// A charm's blobs make the WAL large. SQLite shortens it when it starts the WAL again.
		"journal_size_limit(4194304)",
	}
)

// openSQL opens the file with mode=rw, which never creates a file. It escapes the path, since a question mark
// would end the path.
func openSQL(path string, pragmas []string) (*sql.DB, error) {
	query := url.Values{"mode": {"rw"}, "_pragma": pragmas}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	return sql.Open("sqlite", dsn.String())
}

// conn is one connection with its prepared statements. Only one goroutine at a time may use it. It runs
// statements without a context, since a context would cost a goroutine for each statement.
type conn struct {
	sql        *sql.Conn
	statements map[string]*sql.Stmt
}

// newConn opens a connection, or reuses one that package sql keeps.
func newConn(ctx context.Context, from *sql.DB) (*conn, error) {
	c, err := from.Conn(ctx)
	if err != nil {
		return nil, storeError(err)
	}
	return &conn{c, map[string]*sql.Stmt{}}, nil
}

// prepare returns the prepared statement of a query. The connection prepares each query once.
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

// queryRow reads the first row of the query into the variables. It returns false if the query has no rows.
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

// queryRows calls f with each row of the query, until f returns false or an error.
func (c *conn) queryRows(query string, args []any, f func(*sql.Rows) (more bool, err error)) error {
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
		more, err := f(rows)
		if err != nil {
			return storeError(err)
		}
		if !more {
			return nil
		}
	}

	return storeError(rows.Err())
}

// close closes the statements, and returns the connection to package sql.
func (c *conn) close() {
	for _, s := range c.statements {
		s.Close()
	}
	c.sql.Close()
}

// connPool holds connections for reading, with their prepared statements. If all connections are in use, a reader
// usually waits for one. Reads are short, so this costs less than another connection, for which SQLite would keep
// another open file.
type connPool struct {
	sql  *sql.DB
	idle chan *conn
	puts atomic.Int64 // how often a connection was returned

	mu     sync.Mutex
	open   int // idle or in use
	closed bool
}

const (
	// poolSize is how many connections the pool opens without need, and how many of them can be idle.
	poolSize = 8
	// maxStall is how long a reader waits for a connection before it opens another. If none is returned
	// within this time, long reads or the waiting goroutine itself hold all connections.
	maxStall = 250 * time.Millisecond
)

// get returns an idle connection. If there is none, it opens a connection if the pool is not full, and
// otherwise waits for a connection. If none is returned to the pool within maxStall, it opens a connection
// although the pool is full. It returns ErrClosed if the pool is closed, or ctx's error if ctx ends. The
// caller must call put or discard.
func (p *connPool) get(ctx context.Context) (*conn, error) {
	select {
	case c := <-p.idle:
		return c, nil
	default:
	}

	// Wait while the pool is full, unless no connection comes back or ctx is done. If ctx is done, newConn
	// returns ctx's error.
	isStalled := false
	for !p.reserve(isStalled || ctx.Err() != nil) {
		putsBefore := p.puts.Load()
		select {
		case c := <-p.idle:
			return c, nil
		case <-time.After(maxStall):
			// If a connection came back, it went to another waiter, and this call waits on.
			isStalled = p.puts.Load() == putsBefore
		case <-ctx.Done():
		}
	}

	c, err := newConn(ctx, p.sql)
	if err != nil {
		p.release()
		// The store may have been closed after the caller's check. Package sql does not have an error for that.
		if p.isClosed() {
			return nil, store.ErrClosed
		}
		return nil, err
	}

	return c, nil
}

// reserve counts a connection that is about to be opened. If the pool is full, it counts nothing and returns
// false, unless force is set.
func (p *connPool) reserve(force bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open >= poolSize && !force {
		return false
	}

	p.open++
	return true
}

// isClosed reports whether close was called.
func (p *connPool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// release stops counting a connection.
func (p *connPool) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
}

// put returns a connection to the pool. If the pool is closed, or enough connections are idle, it closes the
// connection instead.
func (p *connPool) put(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.puts.Add(1)
	if p.closed || len(p.idle) == poolSize {
		c.close()
		p.open--
		return
	}
	p.idle <- c
}

// discard closes a connection after an error. It rolls back the connection's transaction first, since package
// sql keeps and reuses the underlying connection.
func (p *connPool) discard(c *conn) {
	// This fails if no transaction is open.
	_, _ = c.exec("ROLLBACK")
	c.close()
	p.release()
}

// withConn calls f with a connection from the pool, and puts the connection back.
func (p *connPool) withConn(ctx context.Context, f func(*conn) error) error {
	c, err := p.get(ctx)
	if err != nil {
		return err
	}
	defer p.put(c)
	return f(c)
}

// close closes the pool and its idle connections. Connections that are returned later are closed then.
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

// storeError translates an error from SQLite into one of package store, or adds an explanation in plain
// words. It returns nil and other errors unchanged.
func storeError(err error) error {
	if errors.Is(err, sql.ErrConnDone) || errors.Is(err, driver.ErrBadConn) {
		return store.ErrClosed
	}
	if resultCode(err) == codes.SQLITE_BUSY {
		return store.AwayError("another process has the store locked", err)
	}
	if t, ok := troubles[resultCode(err)]; ok {
		t.err = err
		return t
	}

	return err
}

// trouble explains an error from SQLite in plain words.
type trouble struct {
	meaning string
	hint    string
	err     error
}

func (t trouble) Error() string { return t.meaning + ": " + t.err.Error() }
func (t trouble) Unwrap() error { return t.err }

// Hint returns advice about the error.
func (t trouble) Hint() string { return t.hint }

// troubles holds the explanations by primary result code. Only SQLITE_CORRUPT can mean that commits were lost.
var troubles = map[int]trouble{
	codes.SQLITE_FULL: {meaning: "the disk is full", hint: "free some disk space; agents then continue automatically"},
	codes.SQLITE_IOERR: {
		meaning: "the disk reports errors",
		hint:    "look for the disk's errors in dmesg; agents continue automatically once the disk works",
	},
	codes.SQLITE_READONLY: {
		meaning: "no permission to write the file or its directory",
		hint:    "run the command as the file's owner, and check that its disk is mounted for writing",
	},
	codes.SQLITE_CANTOPEN: {
		meaning: "cannot open the file or its directory",
		hint:    "run the command as the file's owner",
	},
	codes.SQLITE_NOTADB: {meaning: "this is not a bijou store", hint: "check the path of the state"},
	codes.SQLITE_CORRUPT: {
		meaning: "the file is damaged",
		hint:    "if the error persists, stop the agents and restore a backup: juju restore FILE --replace",
	},
}

// resultCode returns the primary result code of an error that comes directly from SQLite. For other errors it
// returns 0.
func resultCode(err error) int {
	if e, ok := err.(*sqlite3.Error); ok {
		return e.Code() & 0xff
	}
	return 0
}
