package daemon

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxAgentLogSize is in bytes.
const maxAgentLogSize = 10 << 20

// agentLog is the file to which a daemon's starter has redirected stderr, opened to
// append. Above maxSize it is copied beside itself and truncated, so that it remains the
// file that the Go runtime, too, writes to.
type agentLog struct {
	*os.File
	path    string
	maxSize int64
}

// rotateAgentLog returns stderr as it is unless that is an agent.log: the journal, or a
// file of somebody else's, is theirs to bound.
func rotateAgentLog(stderr io.Writer, maxSize int64) io.Writer {
	if f, ok := stderr.(*os.File); ok {
		path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
		if info, serr := f.Stat(); err == nil && serr == nil && info.Mode().IsRegular() && filepath.Base(path) == "agent.log" {
			return agentLog{f, path, maxSize}
		}
	}
	return stderr
}

func (a agentLog) Write(p []byte) (int, error) {
	n, err := a.File.Write(p)
	if info, serr := a.Stat(); serr == nil && info.Size() > a.maxSize {
		if data, rerr := os.ReadFile(a.path); rerr == nil && os.WriteFile(a.path+".1", data, 0o600) == nil {
			_ = a.Truncate(0)
		}
	}
	return n, err
}
