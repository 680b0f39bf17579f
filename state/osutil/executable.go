package osutil

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const retryInterval = 5 * time.Millisecond

// BlockForks keeps this process from forking until the caller calls unblock. It is for the short time in
// which the file of a program is open for writing.
func BlockForks() (unblock func()) {
	syscall.ForkLock.RLock()
	return syscall.ForkLock.RUnlock
}

// RetryBusy calls start, which executes a file. It calls start again, for up to timeout, while start fails
// because a process has the file open for writing.
func RetryBusy(timeout time.Duration, start func() error) error {
	for end := time.Now().Add(timeout); ; time.Sleep(retryInterval) {
		if err := start(); !errors.Is(err, syscall.ETXTBSY) || time.Now().After(end) {
			return err
		}
	}
}

// AwaitNoWriter waits until no process has the file open for writing, at most for timeout. A file that is
// open for writing cannot be executed. AwaitNoWriter uses the fact that the kernel grants a read lease only
// if there is no writer.
func AwaitNoWriter(path string, timeout time.Duration) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()

	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(retryInterval) {
		_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		if err == nil {
			// The lease ends with f in any case.
			_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
			return
		}
		if !errors.Is(err, unix.EAGAIN) {
			return
		}
	}
}
