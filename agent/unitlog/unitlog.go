// Package unitlog is the log of one unit: all of it in a file on its machine,
// and as much as the store can take in the environment's log.
//
// It is not the agent's own log (log/slog is). Only the packages of agent import it.
package unitlog

import (
	"fmt"
	"sync"
	"time"

	"bijou/state/logs"
	"bijou/state/text"
)

const (
	batchSize    = 64 << 10 // bytes that are sent at once
	maxPending   = 1 << 20  // bytes that wait for a store that is away or slow; lines beyond are in the file only
	lineOverhead = 128      // bytes that a line counts beside its text, which may be empty
)

// maxRate is how many bytes a second a unit that talks without end may send: the store is
// there for all others, too.
const maxRate = 1 << 20

// Log is one unit's log. Its methods may be called from several goroutines.
type Log struct {
	Unit   string
	sender *Sender
	sent   chan struct{} // closed once the log is closed, and nothing is left to be sent

	mu          sync.Mutex
	file        logFile
	key         text.KeyBlock // a private key that a hook prints line by line
	pending     []logs.Line   // not yet sent
	pendingSize int           // in bytes
	dropped     int           // lines that were neither sent nor are pending
	queued      bool          // the sender has the log, or pause has
	pause       *time.Timer   // gives the log back to the sender
	urgent      bool          // Flush is to send at once
	closed      bool
}

// Open returns the log of a unit. It opens the file at path with the first line; an empty path means no
// file.
func (s *Sender) Open(unit, path string) *Log {
	return &Log{Unit: unit, sender: s, file: logFile{path: path}, sent: make(chan struct{})}
}

// Write adds a line with the present time.
func (l *Log) Write(level, hook, message string) { l.addLine(time.Now(), level, hook, message, true) }

// WriteAt adds a line with that time. It does not wait for the store, and never fails: a
// hook is worth more than its log.
func (l *Log) WriteAt(at time.Time, level, hook, message string) {
	l.addLine(at, level, hook, message, true)
}

// Note adds a line with the present time that does not count as urgent: Flush does not send it at once. So
// a hook that prints nothing costs no commit for its log.
func (l *Log) Note(level, hook, message string) { l.addLine(time.Now(), level, hook, message, false) }

// addLine writes a line to the unit's file, and queues it for the state.
func (l *Log) addLine(at time.Time, level, hook, message string, urgent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.urgent = l.urgent || urgent
	if l.closed {
		return
	}

	line := logs.Line{Time: at.UTC(), Level: level, Hook: hook, Message: l.key.Hide(message)}
	if err := l.file.write(line); err != nil && !l.file.errorLogged {
		l.file.errorLogged = true
		l.sender.Log.Error("cannot write the unit's log", "unit", l.Unit, "error", err)
	}
	l.enqueueLine(line)
}

func (l *Log) enqueueLine(line logs.Line) {
	if l.pendingSize > maxPending {
		l.dropped++
		return
	}

	l.pending = append(l.pending, line)
	l.pendingSize += lineSize(line)
	if !l.queued {
		l.queued = true
		l.sender.addLog(l)
	}
	if l.pendingSize >= batchSize {
		l.sender.wake()
	}
}

func lineSize(l logs.Line) int { return lineOverhead + len(l.Hook) + len(l.Message) }

// Flush marks the end of a hook. If the hook has printed lines, it sends them now, since operators expect
// them soon after they see the hook done. It does not wait for the store.
func (l *Log) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file.hookEnded = true
	l.key = text.KeyBlock{}
	if len(l.pending) > 0 && l.urgent {
		l.sender.wake()
	}
	l.urgent = false
}

func (l *Log) batch() []logs.Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending[:len(l.pending):len(l.pending)]
}

// removeSent removes the first n pending lines, which were sent, and adds a line about those that were
// dropped. If a lot was sent at once, the next lines are sent after a pause.
func (l *Log) removeSent(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	bytes := 0
	for _, line := range l.pending[:n] {
		bytes += lineSize(line)
	}

	l.pendingSize -= bytes
	l.pending = l.pending[n:]
	if l.dropped > 0 {
		text := fmt.Sprintf("%d lines were too many for this log; %s on the unit's machine has them",
			l.dropped, l.file.path)
		line := logs.Line{Time: time.Now().UTC(), Level: "WARNING", Message: text}
		l.pending = append(l.pending, line)
		l.pendingSize += lineSize(line)
		l.dropped = 0
	}

	switch {
	case bytes > batchSize && !l.closed:
		l.pause = time.AfterFunc(time.Duration(bytes)*time.Second/maxRate, func() { l.sender.addLog(l) })
	case len(l.pending) > 0:
		l.sender.addLog(l)
	default:
		l.queued = false
		if l.closed {
			close(l.sent)
		}
	}
}

// Close sends the pending lines, for at most two seconds. It is idempotent.
func (l *Log) Close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		if !l.queued {
			close(l.sent)
		} else if l.pause != nil && l.pause.Stop() {
			l.sender.addLog(l)
		}
	}

	l.mu.Unlock()
	l.sender.wake()
	select {
	case <-l.sent:
	case <-time.After(2 * time.Second):
	case <-l.sender.ctx.Done():
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	l.file.close()
}
