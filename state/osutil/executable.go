package osutil

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// retryInterval is the time between two attempts of RetryBusy or AwaitNoWriter.
const retryInterval = 5 * time.Millisecond

// BlockForks keeps this process from forking until the caller calls unblock. It is for the short time in
// which the file of a program is open for writing.
func BlockForks() (unblock func()) {
	syscall.ForkLock.RLock()
	return syscall.ForkLock.RUnlock
}

// RetryBusy calls start, which executes a file, and returns its error. While start fails because a process
// has the file open for writing, RetryBusy calls it again, for up to timeout.
func RetryBusy(timeout time.Duration, start func() error) error {
	deadline := time.Now().Add(timeout)
	for {
		err := start()
		isBusy := errors.Is(err, syscall.ETXTBSY)
		if !isBusy || time.Now().After(deadline) {
			return err
		}
		time.Sleep(retryInterval)
	}
}

// AwaitNoWriter waits until no process has the file open for writing, at most for timeout. A file that is
// open for writing cannot be executed. AwaitNoWriter returns immediately if it cannot find out whether there
// is a writer. It uses the fact that the kernel grants a read lease only if there is no writer.
func AwaitNoWriter(path string, timeout time.Duration) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()

	deadline := time.Now().Add(timeout)
	for time.Now().Before(deadline) {
		_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		if err == nil {
			// Ignore an error: the lease ends at the latest when f is closed.
			_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
			return
		}
		hasWriter := errors.Is(err, unix.EAGAIN)
		if !hasWriter {
			return
		}
		time.Sleep(retryInterval)
	}
}
