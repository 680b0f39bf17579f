package hookexec

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"bijou/state/text"
)

// lineSink passes on one output, in lines, and also as it is if that is asked for.
type lineSink struct {
	text.LineWriter
	spec   Spec
	stream Stream
	readAt time.Time // when the last of it was read
}

func (s Spec) newSink(stream Stream) *lineSink {
	to := &lineSink{LineWriter: text.LineWriter{Max: MaxLine}, spec: s, stream: stream}
	to.Emit = func(line string) { s.Output(stream, to.readAt, text.EscapeInvalid(line)) }
	return to
}

// readOnce reads what there is in the pipe. over says that the pipe has ended.
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

// MaxLine is the longest line passed on, in bytes of output; a longer one is split, never lost: the
// environment's log takes one of so many bytes uncut.
const MaxLine = 60 << 10
