package unitlog

import (
	"errors"
	"fmt"
	"os"
	"time"

	"bijou/state"
	"bijou/state/backoff"
	"bijou/state/sanitize"
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

// removeSent also adds a line for those that were dropped. It returns how much was sent, in bytes.
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

// The file is renamed to .1 and begun again when it has more than maxSizeBetweenHooks bytes
// between two hooks, or more than maxSizeWithinHook within one: what a single hook prints
// stays together, unless it threatens the disk that others need, too.
const (
	maxSizeBetweenHooks = 10 << 20
	maxSizeWithinHook   = 256 << 20
)

// logFile has all lines in full.
type logFile struct {
	path        string
	handle      *os.File
	size        int64
	hookEnded   bool // what comes is another hook's
	errorLogged bool // an error of writing was logged
}

func (f *logFile) rotateAbove(limit int64) error {
	if f.handle == nil || f.size <= limit {
		return nil
	}
	f.close()
	return os.Rename(f.path, f.path+".1")
}

// write hides secrets, since files are copied about. Without a path there is no file.
func (f *logFile) write(l state.LogLine) error {
	if f.path == "" {
		return nil
	}
	limit := int64(maxSizeWithinHook)
	if f.hookEnded {
		limit = maxSizeBetweenHooks
	}
	f.hookEnded = false
	if err := f.rotateAbove(limit); err != nil {
		return err
	}
	if f.handle == nil {
		if err := f.openFile(); err != nil {
			return err
		}
	}
	n, err := fmt.Fprintf(f.handle, "%s %s %s: %s\n", l.Time.Format("2006-01-02T15:04:05.000Z"), l.Level, l.Hook, sanitize.Escape(sanitize.HideSecrets(l.Message)))
	f.size += int64(n)
	return err
}

func (f *logFile) openFile() error {
	opened, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	info, err := opened.Stat()
	if err != nil {
		opened.Close()
		return err
	}
	f.handle, f.size = opened, info.Size()
	return nil
}

func (f *logFile) close() {
	if f.handle != nil {
		f.handle.Close()
		f.handle = nil
	}
}
