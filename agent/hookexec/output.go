package hookexec

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"bijou/state/lines"
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

// Close stops reading what daemons write, and waits for its goroutines. No hook may be running.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	for f := range r.leftOpen {
		f.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// outputReader reads both outputs of one hook in one goroutine: what is written to them in
// turn, with a moment in between, keeps its order.
type outputReader struct {
	pipes   [2]pipe
	wakeFD  int // an eventfd; written to when the hook's process has ended
	timeout time.Duration
	done    chan struct{}

	heldFor  time.Duration // Outcome.Held
	leftOpen []int         // the agent's ends of the pipes that somebody still holds
}

func newOutputReader(timeout time.Duration) (r *outputReader, err error) {
	r = &outputReader{timeout: cmp.Or(timeout, OutputTimeout), done: make(chan struct{})}
	if r.wakeFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return nil, fmt.Errorf("cannot make an eventfd: %w", err)
	}
	for i := range r.pipes {
		if r.pipes[i], err = newPipe(); err != nil {
			for _, p := range r.pipes[:i] {
				p.hookEnd.Close()
				unix.Close(p.agentEnd)
			}
			unix.Close(r.wakeFD)
			return nil, err
		}
	}
	return r, nil
}

// startReading closes the agent's copies of the hook's ends, which the hook has by now.
func (r *outputReader) startReading(s Spec) {
	for _, p := range r.pipes {
		p.hookEnd.Close()
	}
	go r.readUntilClosed([2]*lineSink{s.newSink(Stdout), s.newSink(Stderr)})
}

func (r *outputReader) readUntilClosed(to [2]*lineSink) {
	defer close(r.done)
	buffer := make([]byte, MaxLine)
	fds := []unix.PollFd{{Fd: int32(r.pipes[0].agentEnd)}, {Fd: int32(r.pipes[1].agentEnd)}, {Fd: int32(r.wakeFD)}}
	for i := range fds {
		fds[i].Events = unix.POLLIN
	}
	var ended time.Time
	for open := 2; open > 0; {
		timeout := -1
		if !ended.IsZero() {
			timeout = max(0, int((r.timeout-time.Since(ended)+time.Millisecond-1)/time.Millisecond))
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
			if over := sink.readOnce(int(fds[i].Fd), buffer); over {
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
		sink.Close()
		if fds[i].Fd >= 0 {
			r.leftOpen = append(r.leftOpen, int(fds[i].Fd))
		}
	}
	if held := time.Since(ended); !ended.IsZero() && (len(r.leftOpen) > 0 || held >= time.Second) {
		r.heldFor = held
	}
}

func (r *outputReader) awaitEnd() {
	_, _ = unix.Write(r.wakeFD, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	<-r.done
	unix.Close(r.wakeFD)
}

// lineSink passes on one output, in lines, and also as it is if that is asked for.
type lineSink struct {
	lines.Writer
	spec   Spec
	stream Stream
	readAt time.Time // when the last of it was read
}

func (s Spec) newSink(stream Stream) *lineSink {
	to := &lineSink{Writer: lines.Writer{Max: MaxLine}, spec: s, stream: stream}
	to.Emit = func(line string) { s.Output(stream, to.readAt, lines.EscapeInvalid(line)) }
	return to
}

func (s *lineSink) readOnce(fd int, buffer []byte) (over bool) {
	n, err := unix.Read(fd, buffer)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return false
	}
	if n <= 0 {
		return true
	}
	s.readAt = time.Now().UTC()
	if s.spec.Raw != nil {
		s.spec.Raw(s.stream, buffer[:n])
	}
	_, _ = s.Write(buffer[:n]) // never fails
	return false
}

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

// MaxLine is the longest line passed on, in bytes of output; a longer one is split, never lost: the
// environment's log takes one of so many bytes uncut.
const MaxLine = 60 << 10

// pipe carries one output of a hook to the agent.
type pipe struct {
	agentEnd int      // the agent's end, which does not block
	hookEnd  *os.File // the hook's
}

// newPipe opens the hook's end for reading as well as writing. So whoever still holds it after the
// agent has gone (a daemon that a hook left behind) writes into the pipe's own buffer, and is not
// killed by SIGPIPE. The agent's end still sees its end once nobody holds the hook's.
func newPipe() (pipe, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return pipe{}, fmt.Errorf("cannot make a pipe: %w", err)
	}
	defer unix.Close(ends[1])
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", ends[1]), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(ends[0])
		return pipe{}, fmt.Errorf("cannot open a pipe for both ways: %w", err)
	}
	return pipe{agentEnd: ends[0], hookEnd: os.NewFile(uintptr(fd), "hook output")}, nil
}
