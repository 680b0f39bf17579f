package unitlog

import (
	"errors"
	"fmt"
	"time"

	"bijou/state"
	"bijou/state/backoff"
)

func (l *Log) sendBatches() {
	var retry backoff.Exponential
	for {
		l.awaitBatch()
		batch := l.nextBatch()
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
			l.throttleSender(l.removeSent(len(batch)))
			retry.Reset()
		}
	}
}

// awaitBatch waits for lines to come together, unless no more will come.
func (l *Log) awaitBatch() {
	select {
	case <-time.After(batchDelay):
	case <-l.sendNow:
	case <-l.ending:
	case <-l.ctx.Done():
	}
}

// nextBatch returns nil when the sender is to end.
func (l *Log) nextBatch() []state.LogLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		l.sending = false
		return nil
	}
	return l.pending[:len(l.pending):len(l.pending)]
}

// throttleSender pauses after more than one batch was sent at once, unless the log ends.
func (l *Log) throttleSender(sent int) {
	if sent <= batchSize {
		return
	}
	select {
	case <-time.After(time.Duration(sent) * time.Second / maxRate):
	case <-l.ending:
	}
}

// removeSent also adds a line for those that were dropped. It returns how much was sent, in
// bytes.
func (l *Log) removeSent(n int) (bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.pending[:n] {
		bytes += lineSize(line)
	}
	l.pendingSize -= bytes
	l.pending = l.pending[n:]
	if l.dropped > 0 {
		text := fmt.Sprintf("%d lines were too many for this log; %s on the unit's machine has them", l.dropped, l.Path)
		line := state.LogLine{Time: time.Now().UTC(), Level: "WARNING", Message: text}
		l.pending = append(l.pending, line)
		l.pendingSize += lineSize(line)
		l.dropped = 0
	}
	return bytes
}
