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

// batchDelay is how long lines are waited for to come together, unless some are urgent.
const batchDelay = 100 * time.Millisecond

// Sender sends the lines of a process's logs to the store, those of many logs in one
// transaction: a unit whose hooks print nothing costs no commits of its own.
type Sender struct {
	State *state.State
	Log   *slog.Logger

	ctx    context.Context // ends sending
	cancel context.CancelFunc
	now    chan struct{} // buffered: one wake-up is as good as many
	wg     sync.WaitGroup

	mu      sync.Mutex
	waiting []*Log // with lines to be sent
	running bool
}

// NewSender returns a sender; Close ends it.
func NewSender(st *state.State, log *slog.Logger) *Sender {
	s := &Sender{State: st, Log: log, now: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close ends sending; logs are closed before.
func (s *Sender) Close() {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.wg.Wait()
}

// addLog adds a log with unsent lines, and starts the sender if it does not run.
func (s *Sender) addLog(l *Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, l)
	if !s.running && s.ctx.Err() == nil {
		s.running = true
		s.wg.Go(s.run)
	}
}

func (s *Sender) wake() {
	select {
	case s.now <- struct{}{}:
	default:
	}
}

// run sends the waiting logs in batches until there are none, Close was called, or the store is gone. After
// an error it waits, longer each time, and sends them again.
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

		switch err := s.sendEach(group); {
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

// take returns the next logs to send. If it returns none, the sender's goroutine must end.
func (s *Sender) take() (group []*Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.waiting), logs.MaxPerUpdate)
	group, s.waiting = s.waiting[:n:n], s.waiting[n:]
	s.running = n > 0
	if len(s.waiting) > 0 {
		s.wake()
	}

	return group
}

// sendEach sends the logs together. If that fails it sends them one by one, so that one bad log does not
// hold up the others.
func (s *Sender) sendEach(group []*Log) (err error) {
	if s.send(group) == nil {
		return nil
	}

	for _, l := range group {
		if e := s.send([]*Log{l}); e != nil {
			s.addLog(l)
			err = e
		}
	}

	return err
}

func (s *Sender) send(group []*Log) error {
	lines := make(map[string][]logs.Line, len(group))
	counts := make([]int, len(group))
	for i, l := range group { // one unit may have two, if its agent began again while the store was away
		batch := l.batch()
		lines[l.Unit] = append(lines[l.Unit], batch...)
		counts[i] = len(batch)
	}

	err := logs.AppendAll(s.ctx, s.State, lines)
	if errors.Is(err, state.ErrDenied) && len(group) == 1 {
		// The machine does not have the unit any more. Its file has the lines.
		s.Log.Debug("a log's lines are dropped: the machine has no right to it", "unit", group[0].Unit, "error", err)
		err = nil
	}
	if err != nil {
		return err
	}

	for i, l := range group {
		l.removeSent(counts[i])
	}
	return nil
}
