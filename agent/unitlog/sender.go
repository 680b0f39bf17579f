package unitlog

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"bijou/state"
	"bijou/state/backoff"
	"bijou/state/logs"
)

// batchDelay is how long the sender waits for more lines before it sends, unless wake ends the delay early.
const batchDelay = 100 * time.Millisecond

// Sender sends the lines of a process's logs to the environment's log. It sends the lines of many units in
// one transaction, so that a unit whose hooks print nothing needs no additional commits.
type Sender struct {
	State *state.State
	Log   *slog.Logger

	ctx    context.Context // done once the sender is closed, or the store is gone
	cancel context.CancelFunc
	now    chan struct{} // ends batchDelay early; buffered: one pending wake-up is enough
	wg     sync.WaitGroup

	mu      sync.Mutex
	waiting []*Log // logs with unsent lines
	running bool   // the sender's goroutine is running
}

// NewSender returns a sender. The caller must close it.
func NewSender(st *state.State, log *slog.Logger) *Sender {
	s := &Sender{State: st, Log: log, now: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close ends the sender. The caller must have closed all logs of the sender.
func (s *Sender) Close() {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.wg.Wait()
}

// addLog adds a log with unsent lines, and starts the sender's goroutine if it is not running. It starts no
// goroutine once the sender is closed or the store is gone.
func (s *Sender) addLog(l *Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, l)
	if !s.running && s.ctx.Err() == nil {
		s.running = true
		s.wg.Go(s.run)
	}
}

// wake makes the sender send without waiting for the end of batchDelay. It never blocks.
func (s *Sender) wake() {
	select {
	case s.now <- struct{}{}:
	default:
	}
}

// run sends the waiting logs in batches until no log is waiting, Close was called, or the store is gone.
// After an error it retries, with a pause that grows each time.
func (s *Sender) run() {
	var retry backoff.Exponential

	for {
		select {
		case <-time.After(batchDelay):
		case <-s.now:
		case <-s.ctx.Done():
		}

		group := s.take()
		if len(group) == 0 {
			return
		}

		err := s.sendEach(group)
		switch {
		case s.ctx.Err() != nil:
			return
		case errors.Is(err, state.ErrStoreGone):
			s.cancel()
			return
		case err != nil:
			s.Log.Debug("cannot send logs; retrying", "error", err)
			_ = retry.Wait(s.ctx)
		default:
			retry.Reset()
		}
	}
}

// take removes the next logs to send from the waiting logs, and returns them. If it returns no logs, it has
// marked the sender as not running, and the sender's goroutine must end.
func (s *Sender) take() (group []*Log) {
	s.mu.Lock()
	defer s.mu.Unlock()

	n := min(len(s.waiting), logs.MaxPerUpdate)
	group = s.waiting[:n:n]
	s.waiting = s.waiting[n:]
	s.running = n > 0
	if len(s.waiting) > 0 {
		s.wake() // the next batch must not wait for batchDelay
	}

	return group
}

// sendEach sends the logs together. If that fails, it sends them one by one, so that one bad log does not
// delay the other logs. It adds each log that it could not send to the waiting logs again, and returns the
// last error.
func (s *Sender) sendEach(group []*Log) error {
	if s.send(group) == nil {
		return nil
	}

	var lastErr error
	for _, l := range group {
		if err := s.send([]*Log{l}); err != nil {
			s.addLog(l)
			lastErr = err
		}
	}

	return lastErr
}

// send sends the pending lines of the logs. It removes the lines that were written from the logs, also if others
// could not be written. If the group is a single log and the store refuses its lines, send drops them.
func (s *Sender) send(group []*Log) error {
	lines := make(map[string][]logs.Line, len(group))
	counts := make([]int, len(group))
	for i, l := range group {
		// Append the lines, since the group may contain two logs for a unit whose agent was restarted during
		// an outage of the store.
		batch := l.batch()
		lines[l.Unit] = append(lines[l.Unit], batch...)
		counts[i] = len(batch)
	}

	written, err := logs.AppendAll(s.ctx, s.State, lines)
	if errors.Is(err, state.ErrDenied) && len(group) == 1 {
		// The unit is no longer on this machine. The lines remain in its file.
		s.Log.Debug("lines of a log are dropped: the machine has no right to write that log", "unit", group[0].Unit, "error", err)
		err = nil
	}
	if err == nil {
		for i, l := range group {
			l.removeSent(counts[i])
		}
		return nil
	}

	// Many lines take several transactions, of which the last one failed.
	for i, l := range group {
		n := min(written[l.Unit], counts[i]) // of two logs of one unit, the first log's lines were written first
		written[l.Unit] -= n
		l.discard(n)
	}
	return err
}
