package hookexec

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// pipe carries one output of a hook to the agent.
type pipe struct {
	agentEnd int      // the agent's end, which does not block
	hookEnd  *os.File // the hook's
}

// newPipe makes a pipe whose hook's end is open for reading as well as writing. A daemon that a hook left
// behind can so outlive the agent: it writes into the pipe's own buffer, and SIGPIPE does not kill it. The
// agent's end still reports the end of the output once nobody holds the hook's end.
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
