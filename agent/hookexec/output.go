package hookexec

import (
	"cmp"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// outputReader reads both outputs of one hook. It uses one goroutine for both. So if the hook writes to its two
// outputs in turn, the lines usually keep their order.
type outputReader struct {
	pipes   [2]pipe
	wakeFD  int // an eventfd that awaitEnd writes when the hook's process has ended
	timeout time.Duration
	done    chan struct{} // closed when the goroutine ends

	heldFor  time.Duration // see Outcome.Held
	leftOpen []int         // the agent's ends of the pipes that other processes still hold open
}

// newOutputReader creates the pipes for stdout and stderr, and an eventfd that wakes their reader. A timeout
// of 0 stands for [OutputTimeout].
func newOutputReader(timeout time.Duration) (r *outputReader, err error) {
	r = &outputReader{timeout: cmp.Or(timeout, OutputTimeout), done: make(chan struct{})}
	if r.wakeFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return nil, fmt.Errorf("cannot create an eventfd: %w", err)
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

// startReading closes the agent's copies of the hook's ends, and starts the goroutine that reads the output.
func (r *outputReader) startReading(s Spec) {
	for _, p := range r.pipes {
		p.hookEnd.Close()
	}
	go r.readUntilClosed([2]*lineSink{s.newSink(Stdout), s.newSink(Stderr)})
}

// readUntilClosed reads the hook's stdout and stderr, and passes their data to the two sinks. It returns when
// both outputs are closed, or r.timeout after the hook's process has ended. It leaves pipes that other
// processes still hold open in r.leftOpen, and sets r.heldFor as [Outcome].Held says.
func (r *outputReader) readUntilClosed(sinks [2]*lineSink) {
	defer close(r.done)
	buffer := make([]byte, MaxLine)

	// The first two entries are for stdout and stderr, in the order of sinks. poll ignores a negative Fd.
	fds := []unix.PollFd{
		{Fd: int32(r.pipes[0].agentEnd), Events: unix.POLLIN},
		{Fd: int32(r.pipes[1].agentEnd), Events: unix.POLLIN},
		{Fd: int32(r.wakeFD), Events: unix.POLLIN},
	}
	wake := &fds[2]
	var ended time.Time // when the hook's process ended; zero before that
	open := len(sinks)  // the number of outputs that are not closed

	for open > 0 {
		n, err := unix.Poll(fds, r.pollTimeout(ended))
		if n == 0 {
			break // the timeout has passed
		}
		if err != nil {
			continue // a signal interrupted poll
		}

		open -= readReady(fds, sinks, buffer)
		if wake.Revents != 0 {
			ended = time.Now()
			wake.Fd = -1
		}
		// A daemon that writes without pause keeps poll from returning 0.
		if !ended.IsZero() && time.Since(ended) >= r.timeout {
			break
		}
	}

	for i, sink := range sinks {
		sink.Close()
		if fds[i].Fd >= 0 {
			r.leftOpen = append(r.leftOpen, int(fds[i].Fd))
		}
	}

	if ended.IsZero() {
		return // the outputs were closed before the process ended, so no other process held them open
	}
	// heldFor stays 0 if the outputs were closed within a second.
	held := time.Since(ended)
	if len(r.leftOpen) > 0 || held >= time.Second {
		r.heldFor = held
	}
}

// readReady reads once from each output that poll has found ready, and passes the data to the output's sink. It
// closes the outputs that have ended, sets their Fd to -1, and returns their number.
func readReady(fds []unix.PollFd, sinks [2]*lineSink, buffer []byte) (closed int) {
	for i, sink := range sinks {
		if fds[i].Revents == 0 {
			continue
		}
		if over := sink.readOnce(int(fds[i].Fd), buffer); over {
			unix.Close(int(fds[i].Fd))
			fds[i].Fd = -1
			closed++
		}
	}

	return closed
}

// pollTimeout returns the timeout for the next poll in milliseconds, rounded up. It is the part of r.timeout
// that remains. r.timeout begins at ended, when the hook's process ended. If ended is zero, the process has not
// ended, and pollTimeout returns -1, which means no timeout.
func (r *outputReader) pollTimeout(ended time.Time) int {
	if ended.IsZero() {
		return -1
	}
	remaining := r.timeout - time.Since(ended)
	roundedUp := (remaining + time.Millisecond - 1) / time.Millisecond
	return max(0, int(roundedUp))
}

// awaitEnd signals to the reader that the hook's process has ended, and waits for the reader's end.
func (r *outputReader) awaitEnd() {
	// A single write to an eventfd cannot fail. It adds the eight bytes, read as one number, to a counter.
	_, _ = unix.Write(r.wakeFD, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	<-r.done
	unix.Close(r.wakeFD)
}
