package unitlog

import (
	"fmt"
	"os"
	"strings"

	"bijou/state/logs"
	"bijou/state/text"
)

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

// write hides secrets, since files are copied about. Each line of a message begins with the
// message's time, level and hook, so that none passes for another message. Without a path
// there is no file.
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
