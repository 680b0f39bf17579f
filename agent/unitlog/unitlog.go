// Package unitlog is the log of one unit: all of it in a file on its machine,
// and as much as the store bears in the environment's log.
//
// It is not the agent's own log (log/slog is). Only the packages of agent
// import it.
package unitlog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"bijou/state"
)

// Batches go to the store after so long, or as soon as they have so many bytes.
// What cannot be sent, since the store is away or slower than the unit talks,
// is kept up to maxKept bytes; lines beyond are in the file only. A line counts
// for so much more than its text, which may be empty.
const (
	batchDelay = 100 * time.Millisecond
	batchSize  = 64 << 10
	maxKept    = 1 << 20
	lineSize   = 128
)

// rate is how many bytes a second a unit that talks without end may send: the
// store is there for all others, too.
const rate = 1 << 20

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
	ctx    context.Context // ends the sender
	cancel context.CancelFunc
	full   chan struct{} // buffered: one word that the batch is to go is enough
	ending chan struct{} // closed by Close
	wg     sync.WaitGroup

	mu      sync.Mutex
	file    file
	kept    []state.LogLine // not yet sent
	size    int             // of kept, in bytes
	dropped int             // lines that were not kept
	sending bool            // a goroutine is there to send
	urgent  bool            // Flush is to hurry
	closed  bool
}

// Open makes the log; the file is opened with the first line.
func Open(o Options) *Log {
	l := &Log{Options: o, file: file{path: o.Path}, full: make(chan struct{}, 1), ending: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Write adds a line of now.
func (l *Log) Write(level, hook, message string) { l.add(time.Now(), level, hook, message, true) }

// WriteAt adds a line of that time. It does not wait for the store, and never fails: the
// log is not worth a hook.
func (l *Log) WriteAt(at time.Time, level, hook, message string) {
	l.add(at, level, hook, message, true)
}

// Note adds a line of now that Flush does not hurry for: a hook that says nothing is not
// to cost a commit of its own.
func (l *Log) Note(level, hook, message string) { l.add(time.Now(), level, hook, message, false) }

func (l *Log) add(at time.Time, level, hook, message string, urgent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.urgent = l.urgent || urgent
	if l.closed {
		return
	}
	line := state.LogLine{Time: at.UTC(), Level: level, Hook: hook, Message: message}
	if err := l.file.write(line); err != nil && !l.file.said {
		l.file.said = true
		l.Log.Error("cannot write the unit's log", "error", err)
	}
	l.keep(line)
}

// keep puts a line where the sender finds it, and sees to it that there is one.
func (l *Log) keep(line state.LogLine) {
	if l.size > maxKept {
		l.dropped++
		return
	}
	l.kept = append(l.kept, line)
	l.size += size(line)
	if l.size >= batchSize {
		l.hurry()
	}
	if !l.sending {
		l.sending = true
		l.wg.Go(l.send)
	}
}

// size is what a line takes while it is kept, in bytes.
func size(l state.LogLine) int { return lineSize + len(l.Hook) + len(l.Message) }

// Flush is called between two hooks. It has what is kept sent now: who sees that
// a hook is done is to find its lines soon. It does not wait.
func (l *Log) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file.ends = true
	if len(l.kept) > 0 && l.urgent {
		l.hurry()
	}
	l.urgent = false
}

// hurry ends the sender's wait for more lines.
func (l *Log) hurry() {
	select {
	case l.full <- struct{}{}:
	default:
	}
}

// Close sends what is left, as far as that takes no longer than two seconds, and
// waits for the sender. It is idempotent.
func (l *Log) Close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.ending)
	}
	l.mu.Unlock()
	timer := time.AfterFunc(2*time.Second, l.cancel)
	defer timer.Stop()
	l.hurry()
	l.wg.Wait()
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file.close()
}
