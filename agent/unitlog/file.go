package unitlog

import (
	"fmt"
	"os"

	"bijou/state"
)

// maxFile is how long the file becomes, in bytes, before it is renamed to .1 and
// begun again.
const maxFile = 10 << 20

// file is the full text.
type file struct {
	path string
	f    *os.File
	size int64
	said bool // that it cannot be written
}

// write adds a line.
func (f *file) write(l state.LogLine) error {
	if f.f != nil && f.size > maxFile {
		f.close()
		if err := os.Rename(f.path, f.path+".1"); err != nil {
			return err
		}
	}
	if f.f == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	n, err := fmt.Fprintf(f.f, "%s %s %s: %s\n", l.Time.Format("2006-01-02T15:04:05.000Z"), l.Level, l.Hook, l.Message)
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
