package unitlog

import (
	"fmt"
	"os"
	"strings"

	"bijou/state/logs"
	"bijou/state/text"
)

// If the file is larger than these sizes in bytes, it is renamed to .1 and a new file begins. The limit
// within a hook is much larger, so that the output of a hook usually stays in one file.
const (
	maxSizeBetweenHooks = 10 << 20  // applies before the first line of a hook
	maxSizeWithinHook   = 256 << 20 // applies before all other lines
)

// logFile is the unit's log file. It contains all lines in full.
type logFile struct {
	path        string   // empty if there is no file
	handle      *os.File // nil if the file is not open
	size        int64    // in bytes
	hookEnded   bool     // the next line belongs to the next hook
	errorLogged bool     // a write error has already been logged
}

// rotateAbove closes the file and renames it to .1 if it is open and larger than the limit.
func (f *logFile) rotateAbove(limit int64) error {
	if f.handle == nil || f.size <= limit {
		return nil
	}

	f.close()
	return os.Rename(f.path, f.path+".1")
}

// write appends a message to the file. It hides secrets, since operators share log files. Each line of a
// message begins with the message's time, level and hook, so that it cannot be mistaken for another message.
// If the open file is too large, write first renames it and begins a new one. Without a path, write does
// nothing.
func (f *logFile) write(l logs.Line) error {
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

	n, err := f.handle.WriteString(formatLine(l))
	f.size += int64(n)
	return err
}

// formatLine returns a message as it is written to the file: without secrets, and with the message's time, level
// and hook before each of its lines.
func formatLine(l logs.Line) string {
	head := fmt.Sprintf("%s %s %s: ", l.Time.Format("2006-01-02T15:04:05.000Z"), l.Level, text.Escape(l.Hook))

	var b strings.Builder
	for _, line := range text.EscapeLines(text.HideSecrets(l.Message)) {
		b.WriteString(head)
		b.WriteString(line)
		b.WriteByte('\n')
	}

	return b.String()
}

// openFile opens the file for appending, or creates it, and sets f.handle and f.size.
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

	f.handle = opened
	f.size = info.Size()
	return nil
}

// close closes the file, if it is open. A later write opens it again.
func (f *logFile) close() {
	if f.handle != nil {
		f.handle.Close()
		f.handle = nil
	}
}
