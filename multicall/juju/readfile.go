package juju

import (
	"fmt"
	"io"
	"os"
)

// readFile is bounded, since the operator may name a device or a pipe that never ends.
func readFile(path string, maxSize int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > maxSize {
		return nil, fmt.Errorf("%q has more than %d bytes", path, maxSize)
	}
	return data, nil
}
