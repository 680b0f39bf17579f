package nspawn

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"bijou/state/lazyregexp"
)

// controls matches what a terminal would not print.
var controls = lazyregexp.New("\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\][^\a\x1b]*(\a|\x1b\\\\)|[\x00-\x08\x0b-\x1f\x7f]")

// console follows what a container prints while it boots.
type console struct {
	path      string
	f         *os.File
	rest      []byte // of a line that has no end yet
	lastLines []string
}

func (l launch) openConsole() (*console, error) {
	path := filepath.Join(l.dir(), "console.log")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		f.Close()
		return nil, err
	}
	return &console{path: path, f: f}, nil
}

func (c *console) close() { _ = c.f.Close() }

func (c *console) copyTo(w io.Writer) {
	data, _ := io.ReadAll(c.f) // what cannot be read is not shown
	lines := bytes.SplitAfter(append(c.rest, data...), []byte{'\n'})
	c.rest = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		c.addLine(w, string(line))
	}
}

func (c *console) addLine(w io.Writer, line string) {
	line = strings.TrimSpace(controls.Compiled().ReplaceAllString(line, ""))
	if line == "" {
		return
	}
	fmt.Fprintln(w, line)
	c.lastLines = append(c.lastLines[max(0, len(c.lastLines)-2):], line)
}

func (c *console) lastOutput() string {
	if len(c.rest) > 0 {
		c.addLine(io.Discard, string(c.rest))
		c.rest = nil
	}
	if len(c.lastLines) == 0 {
		return "nothing"
	}
	return strings.Join(c.lastLines, "; ")
}
