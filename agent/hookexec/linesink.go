package hookexec

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"bijou/state/text"
)

// lineSink passes one output of a hook on to Spec.Output, line by line, and to Spec.Raw.
type lineSink struct {
	text.LineWriter
	spec   Spec
	stream Stream
	readAt time.Time // when the latest data was read
}

// newSink returns a sink for one output of the hook.
func (s Spec) newSink(stream Stream) *lineSink {
	sink := &lineSink{LineWriter: text.LineWriter{Max: MaxLine}, spec: s, stream: stream}
	sink.Emit = func(line string) { s.Output(stream, sink.readAt, text.EscapeInvalid(line)) }
	return sink
}

// readOnce reads once from the pipe fd, and passes the data on. over is true at the end of the output, and
// after an error. If the pipe has no data now, or a signal has interrupted the read, over is false.
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

// MaxLine is the length of the longest line that Spec.Output gets, in bytes. Longer lines are split, since the
// environment's log would shorten them.
const MaxLine = 60 << 10
