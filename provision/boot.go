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
)

const (
	bootPace  = time.Second // between two times that boot output is passed on
	bootChunk = 64 << 10    // bytes of it each time; what is more is left out, and said
	bootLine  = 4 << 10     // bytes of a line; the rest is left out
)

// boot passes on what an instance says while it starts: the last line is the
// machine's message in juju status, all lines go into the log of the machine.
type boot struct {
	lead    *lead
	machine string
	stop    context.CancelFunc
	passing sync.WaitGroup

	mu      sync.Mutex
	partial []byte // a line without its end
	last    string // line
	shown   string // which was recorded last
	lines   []state.LogLine
	size    int
	omitted int // lines, for there were too many
}

// newBoot begins to pass on; end ends it.
func newBoot(ctx context.Context, l *lead, machine string) *boot {
	ctx, stop := context.WithCancel(ctx)
	b := &boot{lead: l, machine: machine, stop: stop}
	b.passing.Go(func() {
		for {
			pause(ctx, bootPace)
			if ctx.Err() != nil {
				return
			}
			b.pass(ctx)
		}
	})
	return b
}

// end passes on the rest, and why the start has failed, if it has.
func (b *boot) end(ctx context.Context, failure error) {
	b.stop()
	b.passing.Wait()
	b.mu.Lock()
	b.line(true)
	b.last = b.shown // it is over, and the machine's message with it
	if failure != nil {
		b.log("ERROR", "cannot start: "+failure.Error())
	}
	b.mu.Unlock()
	b.pass(ctx)
}

// pass passes on what there is. What cannot be is lost: the start is not held up.
func (b *boot) pass(ctx context.Context) {
	lines, last := b.take()
	var shown, logged error
	if last != "" {
		shown = b.lead.records.record(ctx, func(tx *state.Tx) error { return tx.SetStartProgress(b.machine, last) })
	}
	if len(lines) > 0 {
		logged = b.lead.State.AppendLog(ctx, state.MachineAgent(b.machine), lines)
	}
	if err := errors.Join(shown, logged); err != nil && ctx.Err() == nil {
		b.lead.Log.Warn("boot output is lost", "machine", b.machine, "error", err)
	}
}

// Write takes up output. It never fails, and never waits for the store.
func (b *boot) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for rest := p; len(rest) > 0; {
		at := bytes.IndexAny(rest, "\r\n")
		if at < 0 {
			b.extend(rest)
			break
		}
		b.extend(rest[:at])
		b.line(rest[at] == '\n')
		rest = rest[at+1:]
	}
	return len(p), nil
}

func (b *boot) extend(p []byte) {
	b.partial = append(b.partial, p[:min(len(p), bootLine-len(b.partial))]...)
}

// line ends a line. One that is to be overwritten, as a progress bar, is not logged.
func (b *boot) line(logged bool) {
	text := printable(string(b.partial))
	b.partial = b.partial[:0]
	if text == "" {
		return
	}
	b.last = text
	if logged {
		b.log("INFO", text)
	}
}

// log adds a line to what is to be passed on, if there is room.
func (b *boot) log(level, text string) {
	if b.size+len(text) > bootChunk {
		b.omitted++
		return
	}
	b.size += len(text)
	b.lines = append(b.lines, state.LogLine{Time: b.lead.Now().UTC(), Level: level, Message: text})
}

// printable is a line as a terminal shows it, without what colours it or moves the
// cursor.
func printable(line string) string {
	var b strings.Builder
	escaped := false // within ESC [ ... letter
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

// take is what is to be passed on now.
func (b *boot) take() (lines []state.LogLine, last string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.omitted > 0 {
		b.lines = append(b.lines, state.LogLine{
			Time: b.lead.Now().UTC(), Level: "WARNING", Message: fmt.Sprintf("%d lines were left out: too many at a time", b.omitted),
		})
	}
	lines, last = b.lines, b.last
	if last == b.shown {
		last = ""
	}
	b.shown = b.last
	b.lines, b.size, b.omitted = nil, 0, 0
	return lines, last
}
