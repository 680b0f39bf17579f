package hookexec

import (
	"io"
	"os"
	"sync"
)

// Runner runs hooks, and reads the outputs that their daemons hold open after the hooks have ended. It discards
// the data. So as long as the agent is running, a full pipe does not block a daemon, and a closed pipe does not
// kill it.
type Runner struct {
	mu       sync.Mutex
	leftOpen map[*os.File]bool
	closed   bool
	wg       sync.WaitGroup
}

// Close stops reading the output of daemons, and waits for its goroutines. No hook can be running.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	for f := range r.leftOpen {
		f.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// discardOutput reads and discards the output of a daemon, until the daemon closes the pipe or the Runner is
// closed.
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
