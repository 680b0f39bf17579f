package unitlog

import (
	"errors"
	"fmt"
	"time"

	"bijou/agent/backoff"
	"bijou/state"
)

// send sends batches until nothing is kept any more.
func (l *Log) send() {
	var retry backoff.Exponential
	for {
		l.gather()
		batch := l.batch()
		if batch == nil {
			return
		}
		err := l.State.AppendLog(l.ctx, l.Unit, batch)
		switch {
		case l.ctx.Err() != nil, errors.Is(err, state.ErrStoreGone):
			return // for ever
		case err != nil:
			l.Log.Debug("cannot send the unit's log; it is tried again", "error", err)
			_ = retry.Wait(l.ctx)
		default:
			l.rest(l.sent(len(batch)))
			retry.Reset()
		}
	}
}

// gather waits for lines to come together, unless no more will come.
func (l *Log) gather() {
	timer := time.NewTimer(batchDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.full:
	case <-l.ending:
	case <-l.ctx.Done():
	}
}

// batch is what is kept; with nil the sender has ended.
func (l *Log) batch() []state.LogLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) == 0 {
		l.sending = false
		return nil
	}
	return l.kept[:len(l.kept):len(l.kept)]
}

// rest pauses after more than one batch was sent at once, unless the log ends.
func (l *Log) rest(sent int) {
	if sent <= batchSize {
		return
	}
	timer := time.NewTimer(time.Duration(sent) * time.Second / rate)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.ending:
	}
}

// sent forgets lines that are in the store, and says which never will be. It
// answers how much was sent, in bytes.
func (l *Log) sent(n int) (bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.kept[:n] {
		bytes += size(line)
	}
	l.size -= bytes
	l.kept = l.kept[n:]
	if l.dropped > 0 {
		text := fmt.Sprintf("%d lines were too many for this log; %s on the unit's machine has them", l.dropped, l.Path)
		line := state.LogLine{Time: time.Now().UTC(), Level: "WARNING", Message: text}
		l.kept = append(l.kept, line)
		l.size += size(line)
		l.dropped = 0
	}
	return bytes
}
