package hookexec

import (
	"io"
	"os"
	"sync"
)

// Runner runs hooks, and owns the outputs that daemons hold open which hooks have left
// behind. It reads them on and discards what it reads, so that such a daemon neither blocks
// nor dies of a full or closed pipe while the agent lives.
type Runner struct {
	mu       sync.Mutex
	leftOpen map[*os.File]bool
	closed   bool
	wg       sync.WaitGroup
}

// Close stops to read the output of daemons, and waits for its goroutines. No hook may be running.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	for f := range r.leftOpen {
		f.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// discardOutput reads on from a pipe that a hook's child holds open, so that the child does not block.
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
		_, _ = io.Copy(io.Discard, f)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.leftOpen, f)
		f.Close()
	})
}
