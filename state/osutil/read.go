package osutil

import (
	"fmt"
	"io"
	"os"
	"strconv"
)

// ReadUpTo reads a file. It returns an error if the file has more than limit bytes. It is for files that
// users name, since a user can name a large file, a device or an endless pipe.
func ReadUpTo(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	return ReadAllUpTo(f, strconv.Quote(path), limit)
}

// ReadAllUpTo does what [ReadUpTo] does, for an open reader. Its errors contain name, which describes the
// reader.
func ReadAllUpTo(r io.Reader, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", name, limit)
	}

	return data, nil
}
