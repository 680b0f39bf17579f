package hookexec

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
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

// outputs are both outputs of one hook, read by one goroutine: what is written to them
// in turn, with a moment in between, keeps its order.
type outputs struct {
	pipes    [2]pipe
	wake     int // an eventfd; written to when the hook's process has ended
	patience time.Duration
	done     chan struct{}

	held time.Duration // how long what a hook left behind was waited for
	left []int         // the ends of those pipes that somebody still holds
}

// newOutputs makes the pipes.
func newOutputs(patience time.Duration) (o *outputs, err error) {
	o = &outputs{patience: patience, done: make(chan struct{})}
	if o.patience == 0 {
		o.patience = Patience
	}
	if o.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return nil, fmt.Errorf("cannot make an eventfd: %w", err)
	}
	for i := range o.pipes {
		if o.pipes[i], err = newPipe(); err != nil {
			for _, p := range o.pipes[:i] {
				p.inner.Close()
				unix.Close(p.outer)
			}
			unix.Close(o.wake)
			return nil, err
		}
	}
	return o, nil
}

// started closes the hook's ends of the pipes, which it has by now, and begins to read.
func (o *outputs) started(s Spec) {
	for _, p := range o.pipes {
		p.inner.Close()
	}
	go o.read([2]*sink{s.sink(Stdout), s.sink(Stderr)})
}

// read passes lines on until nobody can write any more, or until the time is over that
// finish sets.
func (o *outputs) read(to [2]*sink) {
	defer close(o.done)
	buffer := make([]byte, MaxLine)
	fds := []unix.PollFd{{Fd: int32(o.pipes[0].outer)}, {Fd: int32(o.pipes[1].outer)}, {Fd: int32(o.wake)}}
	for i := range fds {
		fds[i].Events = unix.POLLIN
	}
	var ended time.Time
	for open := 2; open > 0; {
		timeout := -1
		if !ended.IsZero() {
			timeout = max(0, int((o.patience-time.Since(ended)+time.Millisecond-1)/time.Millisecond))
		}
		n, err := unix.Poll(fds, timeout)
		if n == 0 {
			break
		}
		if err != nil {
			continue // a signal
		}
		for i, sink := range to {
			if fds[i].Revents == 0 {
				continue
			}
			if over := sink.take(int(fds[i].Fd), buffer); over {
				unix.Close(int(fds[i].Fd))
				fds[i].Fd = -1
				open--
			}
		}
		if fds[2].Revents != 0 {
			ended, fds[2].Fd = time.Now(), -1
		}
	}
	for i, sink := range to {
		sink.flush()
		if fds[i].Fd >= 0 {
			o.left = append(o.left, int(fds[i].Fd))
		}
	}
	if held := time.Since(ended); !ended.IsZero() && (len(o.left) > 0 || held >= time.Second) {
		o.held = held
	}
}

// finish waits for the end of both outputs, at most for the hook's patience.
func (o *outputs) finish() {
	_, _ = unix.Write(o.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	<-o.done
	unix.Close(o.wake)
}

// sink takes one output: line by line, and as it is if that is asked for.
type sink struct {
	lines
	raw func(data []byte) // may be nil
	at  time.Time         // when the last of it was read
}

func (s Spec) sink(stream Stream) *sink {
	to := &sink{}
	to.emit = func(line string) { s.Output(stream, to.at, line) }
	if s.Raw != nil {
		to.raw = func(data []byte) { s.Raw(stream, data) }
	}
	return to
}

// take reads what is there, and reports whether there will be no more.
func (s *sink) take(fd int, buffer []byte) (over bool) {
	n, err := unix.Read(fd, buffer)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return false
	}
	if n <= 0 {
		return true
	}
	s.at = time.Now().UTC()
	if s.raw != nil {
		s.raw(buffer[:n])
	}
	_, _ = s.Write(buffer[:n]) // never fails
	return false
}

// drain reads and forgets what a left-over process still writes.
func (r *Runner) drain(fd int) {
	f := os.NewFile(uintptr(fd), "hook output")
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
		_, _ = io.Copy(io.Discard, f)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.left, f)
		f.Close()
	})
}
