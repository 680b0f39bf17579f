package hookexec

import (
	"io"
	"os"
	"sync"
)

// Runner runs hooks. It also reads and discards the output of daemons that hold a hook's output open after
// the hook has ended. So as long as the agent is running, a full pipe does not block a daemon, and a closed
// pipe does not kill a daemon. The zero Runner is ready for use.
type Runner struct {
	mu       sync.Mutex
	leftOpen map[*os.File]bool // the pipes from which the Runner reads
	closed   bool
	wg       sync.WaitGroup
}

// Close stops reading the output of daemons, and waits for the goroutines that read it. Before the call, all
// hooks must have ended.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	for f := range r.leftOpen {
		f.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// discardOutput starts to read and discard the output of a daemon, until the daemon closes the pipe or the
// Runner is closed. It then closes fd.
func (r *Runner) discardOutput(fd int) {
	f := os.NewFile(uintptr(fd), "hook output")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		f.Close()
		return
	}

	if r.leftOpen == nil {
		r.leftOpen = make(map[*os.File]bool)
	}
	r.leftOpen[f] = true

	r.wg.Go(func() {
		// An error also means that no more output can be read.
		_, _ = io.Copy(io.Discard, f)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.leftOpen, f)
		f.Close()
	})
}
