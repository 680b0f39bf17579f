package multicall

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxAgentLog is how much an agent.log holds before it is begun again, in bytes.
const maxAgentLog = 10 << 20

// agentLog is the file that a daemon's stderr is, which its starter has opened to append
// to. Above maxSize it is copied beside itself and emptied: so it remains the file that
// the runtime, too, writes to.
type agentLog struct {
	*os.File
	path    string
	maxSize int64
}

// rotating returns what a daemon logs to instead of that stderr: itself, unless it is an
// agent.log. What is the journal's, or a file of somebody else's, is theirs to bound.
func rotating(stderr io.Writer, maxSize int64) io.Writer {
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
