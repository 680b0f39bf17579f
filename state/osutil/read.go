package osutil

import (
	"fmt"
	"io"
	"os"
	"strconv"
)

// ReadUpTo reads a file whose name comes from a user, and which may be large, a device, or a pipe without end. It
// returns an error once the file has more bytes than the limit.
func ReadUpTo(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	return ReadAllUpTo(f, strconv.Quote(path), limit)
}

// ReadAllUpTo is like [ReadUpTo], for a reader that is open already. Errors call it name.
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
