package juju

import (
	"fmt"
	"io"
	"os"
)

// readFile is bounded, since the operator may name a device or a pipe that never ends.
func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%q has more than %d bytes", path, most)
	}
	return data, nil
}
