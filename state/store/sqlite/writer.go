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

// These times make SQLite's lock fair between processes. The lock does not have a queue, so a process that
// releases it and soon requests it again usually gets it. Therefore a writer that has held the lock for
// maxBurst pauses for burstPause. Waiting writers try again every lockRetryInterval.
const (
	maxBurst          = 4 * time.Millisecond
	burstPause        = time.Millisecond
	lockRetryInterval = 500 * time.Microsecond
)

// maxGroupJobs is the largest number of jobs that are committed together. It limits the memory of a group,
// and the time that other processes wait for the lock.
const maxGroupJobs = 64

// writer is the goroutine that writes for all callers. Jobs that wait at the same time share one SQLite
// transaction and its sync. Each job has its own result.
type writer struct {
	d    *db
	jobs chan *job
	sql  *sql.DB
	conn *conn // opened by the first job

	hasGeneration bool // whether the table head has the column generation

	burstBegan time.Time // when the current burst of transactions began
	released   time.Time // when the last transaction ended
}

// job is one change. If the writer claims it first, the writer runs it. If its caller claims it first, the job is
// cancelled.
type job struct {
	run     func(*writeTxn) (int64, error)
	claimed atomic.Bool
	done    chan struct{} // closed once result and err are set

	result int64
	err    error
}

// tryClaim claims the job. It returns false if the job was already claimed.
func (j *job) tryClaim() bool { return j.claimed.CompareAndSwap(false, true) }

// refusal is an error of one job that has written nothing. The other jobs of its group are still committed.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// runJob passes a job to the writer, and blocks until its changes are durable. It returns the result of run.
// If ctx ends before the writer has started the job, runJob returns ctx's error, which is also ErrAway after
// a deadline, and run is not called. If the store is closed before the writer has received the job, runJob
// returns ErrClosed.
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
		// The writer has already started the job.
		<-j.done
		return j.result, j.err
	}
}

// overdueMessage returns the reason why a job could not begin in time.
func (w *writer) overdueMessage() string {
	return fmt.Sprintf("cannot write to store %q in time: another process has the store locked, or the store is overloaded",
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

// gatherJobs returns the first job and the jobs that are waiting, at most maxGroupJobs in all.
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

// commitGroup commits a group of jobs in one transaction, sets the result of each job, and ends the jobs.
// After a long burst of commits it pauses, so that other processes get the lock.
func (w *writer) commitGroup(group []*job) {
	// In a pause of this length, other processes could get the lock. So a new burst begins.
	if time.Since(w.released) >= burstPause {
		w.burstBegan = time.Now()
	}

	t, err := w.tryGroup(group)
	w.released = time.Now()
	switch {
	case err != nil:
		err = fmt.Errorf("cannot write to store %q: %w", w.d.file.path, err)
	case t.logged:
		w.d.tailer.wakeUp()
		// The bell must ring before the callers get their results, since they may end the process.
		w.d.doorbell.ring()
	}

	for _, j := range group {
		// A refused job keeps its own error.
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

// tryGroup runs the jobs in one transaction, and returns the transaction. It sets the results of the jobs,
// and the errors of refused jobs. If it returns an error, all other jobs have failed, and the caller must set
// their errors.
func (w *writer) tryGroup(group []*job) (*writeTxn, error) {
	if err := w.acquireLock(); err != nil {
		return nil, w.d.explain(err)
	}

	t := &writeTxn{c: w.conn, keepCommits: w.d.options.KeepCommits}
	committed, err := w.writeGroup(t, group)
	if !committed {
		// ROLLBACK fails if SQLite has already rolled back, or if the disk fails. The next transaction
		// then has a new connection.
		if _, rollbackErr := w.conn.exec("ROLLBACK"); rollbackErr != nil {
			w.close()
		}
	}
	if err != nil {
		return t, w.d.explain(err)
	}

	// If the file was deleted in the meantime, the commit went to the deleted file without an error.
	return t, w.d.checkFile()
}

// writeGroup runs the jobs and commits their changes. It first adds the column generation if an older binary has
// created the store, and checks that the store was not replaced. If it was replaced, writeGroup marks it as
// gone. If the jobs have changed nothing, or after an error, it returns committed false. The caller must then
// roll back.
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

	if err := t.runJobs(group); err != nil {
		return false, err
	}
	if !t.changed {
		return false, nil
	}

	after, err := t.writeHead()
	if err != nil {
		return false, err
	}
	if _, err := w.conn.exec("COMMIT"); err != nil {
		return false, err
	}

	// Only now: without the commit, the new column is rolled back.
	w.hasGeneration = true
	w.d.guard.committed(after)
	return true, nil
}

// acquireLock begins a write transaction. It retries while another process holds the lock. It returns ErrAway
// after LockTimeout, and ErrClosed if the store is closed during the wait.
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

// tryBegin begins a write transaction, and opens the connection if there is none. It returns ErrAway if another
// process holds the lock.
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

// close closes the writer's connection. Only run may call it while run is active.
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
