package provision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"bijou/state"
	"bijou/state/backoff"
	"bijou/state/logs"
)

const (
	bootFlushInterval = time.Second // how often boot output is flushed
	maxBootChunk      = 64 << 10    // the maximum size of one flush in bytes; more lines are dropped and counted
	maxBootLine       = 4 << 10     // the maximum size of a line in bytes; the rest is dropped
)

// bootOutput writes the output of a starting instance to the state. The last line becomes the machine's
// message in juju status, and all complete lines go to the machine's log.
type bootOutput struct {
	leader  *leader
	machine string
	stop    context.CancelFunc
	flusher sync.WaitGroup

	mu      sync.Mutex
	partial []byte // an incomplete line, or the part of it after the last carriage return
	returns int    // how many carriage returns with a text before them the incomplete line has
	first   string // the text before the first of these carriage returns
	last    string // the last line
	shown   string // the line that was last recorded in the status
	lines   []logs.Line
	size    int // the size of lines in bytes
	omitted int // the number of dropped lines
}

// newBootOutput returns a writer for the output of a machine's instance while it boots. A goroutine flushes
// the lines to the state every bootFlushInterval, until the caller calls close or ctx is done.
func newBootOutput(ctx context.Context, l *leader, machine string) *bootOutput {
	ctx, stop := context.WithCancel(ctx)
	b := &bootOutput{leader: l, machine: machine, stop: stop}
	b.flusher.Go(func() {
		for {
			_ = backoff.Sleep(ctx, bootFlushInterval)
			if ctx.Err() != nil {
				return
			}
			b.flush(ctx)
		}
	})

	return b
}

// close flushes the remaining output, and the error of the start if the start has failed.
func (b *bootOutput) close(ctx context.Context, failure error) {
	b.stop()
	b.flusher.Wait()

	b.mu.Lock()
	const logged = true
	b.endLine(logged)
	// The start is over, so this flush must not show progress in the status.
	b.last = b.shown
	if failure != nil {
		b.addLog("ERROR", "cannot start: "+failure.Error())
	}
	b.mu.Unlock()

	b.flush(ctx)
}

// flush writes the output since the last call: its last line to the machine's status, and its log lines to the
// machine's log. If this fails, the output is lost, since a retry would delay the start.
func (b *bootOutput) flush(ctx context.Context) {
	lines, progress := b.takePending()

	var statusErr error
	if progress != "" {
		statusErr = b.leader.recorder.record(ctx, func(tx *state.Tx) error {
			return tx.SetStartProgress(b.machine, progress)
		})
	}

	var logErr error
	if len(lines) > 0 {
		logErr = logs.Append(ctx, b.leader.State, state.MachineAgent(b.machine), lines)
	}

	if err := errors.Join(statusErr, logErr); err != nil && ctx.Err() == nil {
		b.leader.Log.Warn("boot output is lost", "machine", b.machine, "error", err)
	}
}

// Write adds output from a machine's boot. It logs each line that ends in a line feed, also after one carriage return.
// A line with more carriage returns is a progress display, which the program overwrites: it appears only in the status.
// Write never fails, and never waits for the store. It drops what exceeds maxBootLine or maxBootChunk.
func (b *bootOutput) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	for rest := p; len(rest) > 0; {
		at := bytes.IndexAny(rest, "\r\n")
		if at < 0 {
			b.appendPartial(rest)
			break
		}

		b.appendPartial(rest[:at])
		switch {
		case rest[at] == '\r':
			// The program overwrites the line, or a line feed follows.
			const logged = false
			text := b.endLine(logged)
			if text == "" { // nothing to overwrite
				break
			}
			if b.returns == 0 {
				b.first = text
			}
			b.returns++
		case len(b.partial) == 0 && b.returns == 1:
			// The line ended in a carriage return and a line feed, and nothing has overwritten it.
			b.addLog("INFO", b.first)
			b.returns = 0
		default:
			const logged = true
			b.endLine(logged)
			b.returns = 0
		}
		rest = rest[at+1:]
	}

	return len(p), nil
}

// appendPartial adds text to the incomplete line, up to maxBootLine. It drops the rest of a longer line. The
// caller holds the lock.
func (b *bootOutput) appendPartial(p []byte) {
	b.partial = append(b.partial, p[:min(len(p), maxBootLine-len(b.partial))]...)
}

// endLine ends the incomplete line, and returns its text. It ignores a line without text. The argument logged is false for a line
// that the program overwrites, such as a progress bar. Such a line can appear only in the status. The caller
// holds the lock.
func (b *bootOutput) endLine(logged bool) (text string) {
	text = stripControls(string(b.partial))
	b.partial = b.partial[:0]
	if text == "" {
		return ""
	}

	b.last = text
	if logged {
		b.addLog("INFO", text)
	}
	return text
}

// addLog adds a line for the machine's log. If the next flush has no space for the line, addLog only counts
// it as omitted. The caller holds the lock.
func (b *bootOutput) addLog(level, text string) {
	if b.size+len(text) > maxBootChunk {
		b.omitted++
		return
	}
	b.size += len(text)
	b.lines = append(b.lines, logs.Line{Time: b.leader.Now().UTC(), Level: level, Message: text})
}

// stripControls returns the line without control characters, escape sequences, invalid UTF-8 and surrounding
// white space. It replaces tabs by spaces.
func stripControls(line string) string {
	var b strings.Builder
	escaped := false // within an escape sequence, which ends with the next letter

	for _, r := range strings.ToValidUTF8(line, "") {
		switch {
		case escaped:
			escaped = !unicode.IsLetter(r)
		case r == '\x1b':
			escaped = true
		case r == '\t':
			b.WriteByte(' ')
		case !unicode.IsControl(r):
			b.WriteRune(r)
		}
	}

	return strings.TrimSpace(b.String())
}

// takePending returns the log lines since the last call, and empties the buffer. If lines were dropped, it
// adds a warning with their number. The result progress is the last line of output, which juju status shows.
// It is "" if that line has not changed.
func (b *bootOutput) takePending() (lines []logs.Line, progress string) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.omitted > 0 {
		b.lines = append(b.lines, logs.Line{
			Time: b.leader.Now().UTC(), Level: "WARNING", Message: fmt.Sprintf(
				"%d lines were left out, because too many came at once",
				b.omitted,
			),
		})
	}

	lines = b.lines
	b.lines = nil
	b.size = 0
	b.omitted = 0

	if b.last != b.shown {
		progress = b.last
	}
	b.shown = b.last

	return lines, progress
}
