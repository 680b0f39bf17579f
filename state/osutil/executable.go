package osutil

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const retryInterval = 5 * time.Millisecond

// BlockForks keeps this process from forking until its caller calls unblock. Call it while a program's file
// is open for writing, and not for long.
func BlockForks() (unblock func()) {
	syscall.ForkLock.RLock()
	return syscall.ForkLock.RUnlock
}

// RetryBusy calls start, which starts a file, again for up to timeout while it fails since the
// file is open for writing, maybe in a child of another process.
func RetryBusy(timeout time.Duration, start func() error) error {
	for end := time.Now().Add(timeout); ; time.Sleep(retryInterval) {
		if err := start(); !errors.Is(err, syscall.ETXTBSY) || time.Now().After(end) {
			return err
		}
	}
}

// AwaitNoWriter waits until no process has the file open for writing, at most for timeout. Executing a file
// fails while it is open for writing. The kernel grants a read lease only if there is no writer.
func AwaitNoWriter(path string, timeout time.Duration) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()

	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(retryInterval) {
		_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		if err == nil {
			_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
			return
		}
		if !errors.Is(err, unix.EAGAIN) {
			return
		}
	}
}
