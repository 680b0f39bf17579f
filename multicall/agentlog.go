package multicall

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"bijou/agent/logfile"
)

// agentLog is the file that a daemon's stderr is, which its starter has opened. It is
// begun again above maxSize, also for what the runtime writes there.
type agentLog struct {
	file    logfile.File
	fds     []int // of this process that lead there
	maxSize int64
}

// rotating returns what a daemon logs to instead of that stderr: itself, unless it is an
// agent.log. What is the journal's, or a file of somebody else's, is theirs to bound.
func rotating(stderr io.Writer, maxSize int64) io.Writer {
	f, ok := stderr.(*os.File)
	if !ok {
		return stderr
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	info, serr := f.Stat()
	if err != nil || serr != nil || !info.Mode().IsRegular() || filepath.Base(path) != "agent.log" {
		return stderr
	}
	a := &agentLog{file: logfile.File{Path: path, Mode: 0o600}, fds: []int{int(f.Fd())}, maxSize: maxSize}
	if out, err := os.Stdout.Stat(); err == nil && os.SameFile(out, info) {
		a.fds = append(a.fds, int(os.Stdout.Fd()))
	}
	return a
}

// Write is called by one goroutine at a time, as slog's handlers do.
func (a *agentLog) Write(p []byte) (int, error) {
	n, err := a.file.Write(p)
	if rotated, rerr := a.file.Rotate(a.maxSize); rotated && rerr == nil {
		_ = a.file.Redirect(a.fds...) // or else they go on in the other file
	}
	return n, err
}
