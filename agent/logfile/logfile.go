// Package logfile is a file that a process adds lines to, and that is begun again when it
// has become large: what it held is then in the file beside it that ends in .1.
//
// It imports nothing of bijou. agent/unitlog and multicall import it.
package logfile

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// MaxSize is how much a file holds before it is begun again, in bytes.
const MaxSize = 10 << 20

// File is one log. It is opened with the first write, and made if it is missing.
type File struct {
	Path string
	Mode fs.FileMode
	file *os.File
}

// Write adds to the file.
func (f *File) Write(p []byte) (int, error) {
	if err := f.open(); err != nil {
		return 0, err
	}
	return f.file.Write(p)
}

func (f *File) open() (err error) {
	if f.file == nil {
		f.file, err = os.OpenFile(f.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, f.Mode)
	}
	return err
}

// Rotate begins the file again if it is open and has more than so many bytes, whoever
// wrote them, and reports whether it did.
func (f *File) Rotate(maxSize int64) (bool, error) {
	if f.file == nil {
		return false, nil
	}
	info, err := f.file.Stat()
	if err != nil || info.Size() <= maxSize {
		return false, err
	}
	f.Close()
	return true, os.Rename(f.Path, f.Path+".1")
}

// Redirect makes descriptors of this process lead to the file.
func (f *File) Redirect(descriptors ...int) error {
	if err := f.open(); err != nil {
		return err
	}
	for _, fd := range descriptors {
		if err := unix.Dup3(int(f.file.Fd()), fd, 0); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the file; a later write opens it again.
func (f *File) Close() {
	if f.file != nil {
		f.file.Close()
		f.file = nil
	}
}
