package hookexec

import (
	"io"
	"os"
	"sync"
	"time"
)

// Runner runs hooks, and owns what they leave open: the outputs held by daemons
// that hooks left behind. Those are read on and thrown away, so that such a
// daemon neither blocks nor dies of a full or closed pipe while the agent lives.
type Runner struct {
	mu     sync.Mutex
	left   map[*os.File]bool
	closed bool
	wg     sync.WaitGroup
}

// Close stops reading what daemons write. It waits for its goroutines. No hook
// may be running.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	for f := range r.left {
		f.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// outputs are the two readers of one hook's output.
type outputs struct {
	runner   *Runner
	files    []*os.File
	patience time.Duration
	wg       sync.WaitGroup
}

// capture begins to read both outputs.
func (r *Runner) capture(p *process, s Spec) *outputs {
	o := &outputs{runner: r, files: []*os.File{p.stdout, p.stderr}, patience: s.Patience}
	if o.patience == 0 {
		o.patience = Patience
	}
	for i, stream := range []Stream{Stdout, Stderr} {
		f := o.files[i]
		o.wg.Go(func() { o.read(f, s.sink(stream)) })
	}
	return o
}

// sink takes one output: line by line, and as it is if that is asked for.
type sink struct {
	lines
	raw func(data []byte) // may be nil
}

func (s Spec) sink(stream Stream) *sink {
	to := &sink{lines: lines{emit: func(line string) { s.Output(stream, line) }}}
	if s.Raw != nil {
		to.raw = func(data []byte) { s.Raw(stream, data) }
	}
	return to
}

// Write never fails.
func (s *sink) Write(p []byte) (int, error) {
	if s.raw != nil {
		s.raw(p)
	}
	return s.lines.Write(p)
}

// read passes lines on until the end, or until the deadline that finish sets.
func (o *outputs) read(f *os.File, to *sink) {
	_, err := io.Copy(to, f)
	to.flush()
	if os.IsTimeout(err) {
		o.runner.drain(f)
		return
	}
	f.Close()
}

// finish waits for the end of both outputs, at most for the hook's patience.
func (o *outputs) finish() {
	for _, f := range o.files {
		_ = f.SetReadDeadline(time.Now().Add(o.patience))
	}
	o.wg.Wait()
}

// drain reads and forgets what a left-over process still writes.
func (r *Runner) drain(f *os.File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		f.Close()
		return
	}
	if r.left == nil {
		r.left = make(map[*os.File]bool)
	}
	r.left[f] = true
	r.wg.Go(func() {
		_ = f.SetReadDeadline(time.Time{})
		_, _ = io.Copy(io.Discard, f)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.left, f)
		f.Close()
	})
}
