package unitlog

import (
	"fmt"

	"bijou/agent/logfile"
	"bijou/state"
	"bijou/state/sanitize"
)

// maxWhole is how large the file may become within one hook, in bytes; between two it is
// begun again above logfile.MaxSize. What a single hook says stays together, unless it
// threatens the disk that others need, too.
const maxWhole = 256 << 20

// file is the full text.
type file struct {
	logfile.File
	ends bool // a hook has ended: what comes is another's
	said bool // that it cannot be written
}

// write adds a line, whatever the message holds, without secrets: files are copied
// about. Without a path there is no file.
func (f *file) write(l state.LogLine) error {
	if f.Path == "" {
		return nil
	}
	maxSize := int64(maxWhole)
	if f.ends {
		maxSize = logfile.MaxSize
	}
	f.ends = false
	if _, err := f.Rotate(maxSize); err != nil {
		return err
	}
	_, err := fmt.Fprintf(f, "%s %s %s: %s\n", l.Time.Format("2006-01-02T15:04:05.000Z"), l.Level, l.Hook,
		sanitize.Escape(sanitize.HideSecrets(l.Message)))
	return err
}
