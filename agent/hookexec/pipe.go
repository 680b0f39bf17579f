package hookexec

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// pipe carries one output of a hook to the agent.
type pipe struct {
	agentEnd int      // the end that the agent reads, non-blocking
	hookEnd  *os.File // the end that the hook writes
}

// newPipe creates a pipe whose hook end is open for reading and writing. A daemon that a hook has left behind
// then counts as a reader of its own pipe, so SIGPIPE does not kill the daemon after the agent has died. The
// agent's end still reports the end of the output once no process holds the hook end.
func newPipe() (pipe, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return pipe{}, fmt.Errorf("cannot create a pipe: %w", err)
	}
	defer unix.Close(ends[1]) // the hook gets a different descriptor, which blocks

	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", ends[1]), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(ends[0])
		return pipe{}, fmt.Errorf("cannot open a pipe for reading and writing: %w", err)
	}

	return pipe{agentEnd: ends[0], hookEnd: os.NewFile(uintptr(fd), "hook output")}, nil
}
