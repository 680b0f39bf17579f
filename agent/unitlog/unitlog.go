// Package unitlog is the log of one unit: all of it in a file on its machine,
// and as much as the store can take in the environment's log.
//
// It is not the agent's own log (log/slog is). Only the packages of agent import it.
package unitlog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"bijou/state"
)

const (
	batchDelay   = 100 * time.Millisecond // a batch is sent after so long, or once it has
	batchSize    = 64 << 10               // so many bytes
	maxPending   = 1 << 20                // bytes that wait for a store that is away or slow; lines beyond are in the file only
	lineOverhead = 128                    // bytes that a line counts beside its text, which may be empty
)

// maxRate is how many bytes a second a unit that talks without end may send: the store is
// there for all others, too.
const maxRate = 1 << 20

// Options say whose log it is, and where it goes.
type Options struct {
	Unit  string
	Path  string // of the file; empty: none
	State *state.State
	Log   *slog.Logger
}

// Log is one unit's log. Its methods may be called from several goroutines.
type Log struct {
	Options
	ctx     context.Context // ends the sender
	cancel  context.CancelFunc
	sendNow chan struct{} // buffered: one wake-up is as good as many
	ending  chan struct{} // closed by Close
	wg      sync.WaitGroup

	mu          sync.Mutex
	file        logFile
	pending     []state.LogLine // not yet sent
	pendingSize int             // in bytes
	dropped     int             // lines that were neither sent nor are pending
	sending     bool            // a sender runs
	urgent      bool            // Flush is to send at once
	closed      bool
}

// Open returns the log of a unit; the file is opened with the first line.
func Open(o Options) *Log {
	l := &Log{Options: o, file: logFile{path: o.Path}, sendNow: make(chan struct{}, 1), ending: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Write adds a line with the present time.
func (l *Log) Write(level, hook, message string) { l.addLine(time.Now(), level, hook, message, true) }

// WriteAt adds a line with that time. It does not wait for the store, and never fails: a
// hook is worth more than its log.
func (l *Log) WriteAt(at time.Time, level, hook, message string) {
	l.addLine(at, level, hook, message, true)
}

// Note adds a line with the present time that Flush does not send at once: a hook that
// prints nothing is not to cost a commit of its own.
func (l *Log) Note(level, hook, message string) { l.addLine(time.Now(), level, hook, message, false) }

func (l *Log) addLine(at time.Time, level, hook, message string, urgent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.urgent = l.urgent || urgent
	if l.closed {
		return
	}
	line := state.LogLine{Time: at.UTC(), Level: level, Hook: hook, Message: message}
	if err := l.file.write(line); err != nil && !l.file.errorLogged {
		l.file.errorLogged = true
		l.Log.Error("cannot write the unit's log", "error", err)
	}
	l.enqueueLine(line)
}

func (l *Log) enqueueLine(line state.LogLine) {
	if l.pendingSize > maxPending {
		l.dropped++
		return
	}
	l.pending = append(l.pending, line)
	l.pendingSize += lineSize(line)
	if l.pendingSize >= batchSize {
		l.wakeSender()
	}
	if !l.sending {
		l.sending = true
		l.wg.Go(l.sendBatches)
	}
}

func lineSize(l state.LogLine) int { return lineOverhead + len(l.Hook) + len(l.Message) }

// Flush is called between two hooks. It has pending lines sent now: whoever sees that a
// hook is done is to find its lines soon. It does not wait.
func (l *Log) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file.hookEnded = true
	if len(l.pending) > 0 && l.urgent {
		l.wakeSender()
	}
	l.urgent = false
}

func (l *Log) wakeSender() {
	select {
	case l.sendNow <- struct{}{}:
	default:
	}
}

// Close sends what is pending, as far as that takes no longer than two seconds, and waits
// for the sender. It is idempotent.
func (l *Log) Close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.ending)
	}
	l.mu.Unlock()
	timer := time.AfterFunc(2*time.Second, l.cancel)
	defer timer.Stop()
	l.wakeSender()
	l.wg.Wait()
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file.close()
}
