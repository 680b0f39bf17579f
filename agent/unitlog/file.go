package unitlog

import (
	"fmt"
	"os"

	"bijou/state"
	"bijou/state/sanitize"
)

// The file is renamed to .1 and begun again when it has more than maxFile bytes
// between two hooks, or more than maxWhole within one: what a single hook says
// stays together, unless it threatens the disk that others need, too.
const (
	maxFile  = 10 << 20
	maxWhole = 256 << 20
)

// file is the full text.
type file struct {
	path string
	f    *os.File
	size int64
	ends bool // a hook has ended: what comes is another's
	said bool // that it cannot be written
}

// rotate begins the file again if it has more than so many bytes.
func (f *file) rotate(most int64) error {
	if f.f == nil || f.size <= most {
		return nil
	}
	f.close()
	return os.Rename(f.path, f.path+".1")
}

// write adds a line, whatever the message holds, without secrets: files are copied
// about. Without a path there is no file.
func (f *file) write(l state.LogLine) error {
	if f.path == "" {
		return nil
	}
	most := int64(maxWhole)
	if f.ends {
		most = maxFile
	}
	f.ends = false
	if err := f.rotate(most); err != nil {
		return err
	}
	if f.f == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	n, err := fmt.Fprintf(f.f, "%s %s %s: %s\n", l.Time.Format("2006-01-02T15:04:05.000Z"), l.Level, l.Hook, sanitize.Escape(sanitize.HideSecrets(l.Message)))
	f.size += int64(n)
	return err
}

func (f *file) open() error {
	opened, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	info, err := opened.Stat()
	if err != nil {
		opened.Close()
		return err
	}
	f.f, f.size = opened, info.Size()
	return nil
}

func (f *file) close() {
	if f.f != nil {
		f.f.Close()
		f.f = nil
	}
}
