package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"bijou/state/store"
)

// Fairness between processes: SQLite's lock has no queue, so that a process which has it and wants
// it again mostly wins. After a burst the writer pauses, and the others try more often than that.
const (
	maxBurst          = 4 * time.Millisecond
	burstPause        = time.Millisecond
	lockRetryInterval = 500 * time.Microsecond
)

// maxGroupJobs bounds the memory of a group that is committed together, and the time that
// others wait for the lock.
const maxGroupJobs = 64

// writer is the one goroutine that writes. Jobs that wait at the same time share one
// SQLite transaction and its sync; each has its own result.
type writer struct {
	d    *db
	jobs chan *job
	sql  *sql.DB
	conn *conn // opened by the first job

	hasGeneration bool // the head has the column

	burstBegan, released time.Time
}

// job is one change. Whoever claims it first decides: the writer runs it, or its caller cancels it.
type job struct {
	run     func(*writeTxn) (int64, error)
	claimed atomic.Bool
	done    chan struct{} // closed once result and err are set

	result int64
	err    error
}

func (j *job) tryClaim() bool { return j.claimed.CompareAndSwap(false, true) }

// refusal is an error of one job that leaves the others of its group alone,
// because nothing was written.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// runJob passes a job to the writer, and blocks until the job is durable.
func (w *writer) runJob(ctx context.Context, run func(*writeTxn) (int64, error)) (int64, error) {
	j := &job{run: run, done: make(chan struct{})}
	select {
	case w.jobs <- j:
	case <-ctx.Done():
		return 0, store.OverdueError(ctx, w.overdueMessage())
	case <-w.d.Context().Done():
		return 0, store.ErrClosed
	}

	select {
	case <-j.done:
		return j.result, j.err
	case <-ctx.Done():
		if j.tryClaim() {
			return 0, store.OverdueError(ctx, w.overdueMessage())
		}
		<-j.done // it is being written
		return j.result, j.err
	}
}

func (w *writer) overdueMessage() string {
	return fmt.Sprintf("cannot write to store %q in time: another process has it locked, or it is overloaded",
		w.d.file.path)
}

// run commits jobs in groups until the store is closed.
func (w *writer) run() {
	for {
		select {
		case j := <-w.jobs:
			w.commitGroup(w.gatherJobs(j))
		case <-w.d.Context().Done():
			return
		}
	}
}

// gatherJobs returns the first job and those that wait, at most maxGroupJobs.
func (w *writer) gatherJobs(first *job) []*job {
	group := []*job{first}
	for len(group) < maxGroupJobs {
		select {
		case j := <-w.jobs:
			group = append(group, j)
		default:
			return group
		}
	}

	return group
}

// commitGroup commits a group of jobs in one transaction and reports to each its result. After a long burst
// of commits it pauses, so that other processes get the lock.
func (w *writer) commitGroup(group []*job) {
	if time.Since(w.released) >= burstPause {
		w.burstBegan = time.Now()
	}

	t, err := w.tryGroup(group)
	w.released = time.Now()
	if err != nil {
		err = fmt.Errorf("cannot write to store %q: %w", w.d.file.path, err)
	}
	if err == nil && t.logged {
		w.d.tailer.wakeUp()
		w.d.doorbell.ring() // before the caller, who may end the process, knows
	}

	for _, j := range group {
		if err != nil && j.err == nil {
			j.result = 0
			j.err = err
		}
		close(j.done)
	}

	if w.released.Sub(w.burstBegan) >= maxBurst {
		time.Sleep(burstPause)
		w.burstBegan = time.Now()
	}
}

// tryGroup runs the jobs in one transaction. Its error is the error of all jobs that were not refused.
func (w *writer) tryGroup(group []*job) (*writeTxn, error) {
	if err := w.acquireLock(); err != nil {
		return nil, w.d.explain(err)
	}

	t := &writeTxn{c: w.conn, keepCommits: w.d.options.KeepCommits}
	committed, err := w.writeGroup(t, group)
	if !committed {
		// If even that fails (SQLite has rolled back by itself, or the disk is broken), the next
		// transaction has a new connection.
		if _, err := w.conn.exec("ROLLBACK"); err != nil {
			w.close()
		}
	}

	if err != nil {
		return t, w.d.explain(err)
	}

	// A file that was deleted meanwhile took the commit in silence.
	return t, w.d.checkFile()
}

// writeGroup commits the jobs' changes, if there are any.
func (w *writer) writeGroup(t *writeTxn, group []*job) (committed bool, err error) {
	if !w.hasGeneration {
		if err := t.addGenerationColumn(); err != nil {
			return false, err
		}
	}

	before, err := t.readHead()
	if err != nil {
		return false, err
	}
	if err := w.d.orGone(w.d.guard.admit(w.d.Context(), before)); err != nil {
		return false, err
	}

	if err := t.runJobs(group); err != nil || !t.changed {
		return false, err
	}

	after, err := t.writeHead()
	if err != nil {
		return false, err
	}
	if _, err := w.conn.exec("COMMIT"); err != nil {
		return false, err
	}

	w.hasGeneration = true
	w.d.guard.committed(after)
	return true, nil
}

// acquireLock begins a write transaction. It retries while another process holds the lock, at most for
// LockTimeout.
func (w *writer) acquireLock() error {
	began := time.Now()

	for {
		err := w.tryBegin()
		if !errors.Is(err, store.ErrAway) {
			return err
		}
		if time.Since(began) > w.d.options.LockTimeout {
			return store.AwayError(
				fmt.Sprintf("another process has had it locked for %v", w.d.options.LockTimeout),
				err,
			)
		}

		select {
		case <-time.After(lockRetryInterval + rand.N(lockRetryInterval/2)):
		case <-w.d.Context().Done():
			return store.ErrClosed
		}
	}
}

// tryBegin begins a write transaction, and opens the connection if there is none.
func (w *writer) tryBegin() error {
	if w.conn == nil {
		if err := w.connect(); err != nil {
			return err
		}
	}

	_, err := w.conn.exec("BEGIN IMMEDIATE")
	return err
}

// connect opens the writer's connection.
func (w *writer) connect() (err error) {
	if w.sql == nil {
		if w.sql, err = openSQL(w.d.file.path, writerPragmas); err != nil {
			return err
		}
	}

	w.conn, err = newConn(context.Background(), w.sql)
	return err
}

// close closes the writer's connection. run calls it, or a caller after run has ended.
func (w *writer) close() {
	if w.conn != nil {
		w.conn.close()
	}
	if w.sql != nil {
		w.sql.Close()
	}
	w.conn = nil
	w.sql = nil
}
