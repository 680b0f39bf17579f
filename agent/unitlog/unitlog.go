// Package unitlog writes the log of a unit. It writes all lines to a file on the unit's machine. It also
// sends the lines to the environment's log. If the store is too slow, it leaves out lines there.
//
// It does not write the agent's own log. The agent uses log/slog.
package unitlog

import (
	"fmt"
	"sync"
	"time"

	"bijou/state/logs"
	"bijou/state/text"
)

const (
	batchSize    = 64 << 10 // pending bytes at which the log is sent without delay
	maxPending   = 1 << 20  // pending bytes above which further lines are written only to the file
	lineOverhead = 128      // bytes that each line counts in addition to its text
)

// maxRate limits the bytes that one unit sends per second, so that a unit that logs without pause does not slow
// down the store for other units.
const maxRate = 1 << 20

// Log is one unit's log. Several goroutines can use it at once.
type Log struct {
	Unit   string
	sender *Sender
	sent   chan struct{} // closed once the log is closed and all its lines are sent

	mu          sync.Mutex
	file        logFile
	privateKey  text.KeyBlock // recognizes a private key that a hook prints line by line
	pending     []logs.Line   // lines that were not sent yet
	pendingSize int           // the size of pending, in bytes
	dropped     int           // lines that were left out because pending was full
	queued      bool          // the sender has the log, or pause will add the log to the sender
	pause       *time.Timer   // adds the log to the sender again
	urgent      bool          // a line was added that Flush must send without delay
	closed      bool
}

// Open returns the log of a unit. The log writes its lines to the file at path, which it opens for the first
// line. If path is empty, the log has no file.
func (s *Sender) Open(unit, path string) *Log {
	return &Log{Unit: unit, sender: s, file: logFile{path: path}, sent: make(chan struct{})}
}

// Write adds a line with the current time. It does not wait for the store, and never fails.
func (l *Log) Write(level, hook, message string) {
	l.addLine(time.Now(), level, hook, message, urgentLine)
}

// WriteAt adds a line with the given time. It does not wait for the store and never fails, since a failing
// log must not delay a hook.
func (l *Log) WriteAt(at time.Time, level, hook, message string) {
	l.addLine(at, level, hook, message, urgentLine)
}

// Note adds a line with the current time that is not urgent. Flush does not wake the sender for such a line,
// so a hook that prints nothing needs no commit of its own for its log.
func (l *Log) Note(level, hook, message string) {
	l.addLine(time.Now(), level, hook, message, idleLine)
}

// urgency says whether Flush must send a line without delay.
type urgency bool

const (
	urgentLine urgency = true
	idleLine   urgency = false
)

// addLine writes a line to the unit's file, and queues it for the environment's log. In both, it hides the body of a
// private key that a hook prints line by line. It drops the line if the log is closed. u says whether the next Flush
// must send the line without delay.
func (l *Log) addLine(at time.Time, level, hook, message string, u urgency) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u == urgentLine {
		l.urgent = true
	}
	if l.closed {
		return
	}

	line := logs.Line{Time: at.UTC(), Level: level, Hook: hook, Message: l.privateKey.Hide(message)}
	if err := l.file.write(line); err != nil && !l.file.errorLogged {
		l.file.errorLogged = true
		l.sender.Log.Error("cannot write the unit's log", "unit", l.Unit, "error", err)
	}
	l.enqueueLine(line)
}

// enqueueLine adds a line to the pending lines, or only counts it if too many bytes are pending. It adds the log to
// the sender unless the log is queued already, and wakes the sender for a full batch. The caller holds l.mu.
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

// lineSize returns the bytes that a line counts for batchSize, maxPending and maxRate.
func lineSize(l logs.Line) int { return lineOverhead + len(l.Hook) + len(l.Message) }

// Flush marks the end of a hook. If there are urgent lines, it makes the sender send them without delay, since
// operators expect these lines as soon as they see that the hook is done. It does not wait for the store.
func (l *Log) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file.hookEnded = true
	l.privateKey = text.KeyBlock{} // the next hook does not continue a private key of this hook
	if len(l.pending) > 0 && l.urgent {
		l.sender.wake()
	}
	l.urgent = false
}

// batch returns the pending lines. The caller must not change them.
func (l *Log) batch() []logs.Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending[:len(l.pending):len(l.pending)]
}

// discard removes the first n pending lines, and returns their size in bytes, as [lineSize] counts it.
func (l *Log) discard(n int) (bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.pending[:n] {
		bytes += lineSize(line)
	}
	l.pendingSize -= bytes
	l.pending = l.pending[n:]
	return bytes
}

// removeSent removes the first n pending lines after the sender has sent them. If lines were dropped, it adds
// a line that reports their number. If lines are pending, it adds the log to the sender again. If it has
// removed more than batchSize bytes and the log is open, it first pauses the log, to stay below maxRate. If no lines
// are pending and the log is closed, it tells Close that all lines are sent.
func (l *Log) removeSent(n int) {
	sentBytes := l.discard(n)
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.dropped > 0 {
		message := fmt.Sprintf("%d lines are missing here, because there were too many; they are in %s on the unit's machine",
			l.dropped, l.file.path)
		line := logs.Line{Time: time.Now().UTC(), Level: "WARNING", Message: message}
		l.pending = append(l.pending, line)
		l.pendingSize += lineSize(line)
		l.dropped = 0
	}

	switch {
	case sentBytes > batchSize && !l.closed:
		pause := time.Duration(sentBytes) * time.Second / maxRate
		l.pause = time.AfterFunc(pause, func() { l.sender.addLog(l) })
	case len(l.pending) > 0:
		l.sender.addLog(l)
	default:
		l.queued = false
		if l.closed {
			close(l.sent)
		}
	}
}

// Close makes the sender send the pending lines, waits for that for at most two seconds, and closes the file. It
// does not wait if the sender is closed or the store is gone. Lines that are added later are lost. Close is
// idempotent.
func (l *Log) Close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		if !l.queued {
			close(l.sent)
		} else if l.pause != nil && l.pause.Stop() {
			// The timer would have added the log at the end of the pause.
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
