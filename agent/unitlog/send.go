package unitlog

import (
	"fmt"
	"time"

	"bijou/state"
)

// send sends batches until nothing is kept any more. While the store is away the
// pauses grow to five seconds.
func (l *Log) send() {
	delay := batchDelay
	for {
		l.pause(delay)
		batch := l.batch()
		if batch == nil {
			return
		}
		err := l.State.AppendLog(l.ctx, l.Unit, batch)
		switch {
		case l.ctx.Err() != nil:
			return
		case err != nil:
			l.Log.Debug("cannot send the unit's log; it is tried again", "error", err)
			delay = min(2*delay, 5*time.Second)
		default:
			l.sent(len(batch))
			delay = batchDelay
		}
	}
}

// pause waits for lines to come together.
func (l *Log) pause(delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	if delay > batchDelay {
		select {
		case <-timer.C:
		case <-l.ctx.Done():
		}
		return
	}
	select {
	case <-timer.C:
	case <-l.full:
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

// sent forgets lines that are in the store, and says which never will be.
func (l *Log) sent(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.kept[:n] {
		l.size -= len(line.Message)
	}
	l.kept = l.kept[n:]
	if l.dropped > 0 {
		text := fmt.Sprintf("%d lines were too many for this log; %s on the unit's machine has them", l.dropped, l.Path)
		l.kept = append(l.kept, state.LogLine{Time: time.Now().UTC(), Level: "WARNING", Message: text})
		l.size += len(text)
		l.dropped = 0
	}
}
