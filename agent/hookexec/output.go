package hookexec

import (
	"cmp"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

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

// newOutputReader makes the pipes for stdout and stderr, and an eventfd that wakes their reader.
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

// startReading closes the agent's copies of the hook's ends, and reads the hook's output in a goroutine.
func (r *outputReader) startReading(s Spec) {
	for _, p := range r.pipes {
		p.hookEnd.Close()
	}
	go r.readUntilClosed([2]*lineSink{s.newSink(Stdout), s.newSink(Stderr)})
}

// readUntilClosed reads the hook's stdout and stderr line by line. It ends when both are closed, or at the
// timeout after the hook's process has ended. Pipes that a left process holds open after that are in
// r.leftOpen.
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
			ended = time.Now()
			fds[2].Fd = -1
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
