package console

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const orphanPollInterval = time.Second

// UntilUnread returns a context that is cancelled when nobody reads any more what is
// written there, as when `| head -1` has had its line, or when the process that started
// this one has ended: a process that waits for something to print would not notice
// otherwise. The stop function frees what that takes, and must be called.
func UntilUnread(ctx context.Context, w io.Writer) (unread context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	f, ok := w.(*os.File)
	if !ok {
		return ctx, cancel
	}
	endRead, endWrite, err := os.Pipe()
	if err != nil {
		return ctx, cancel // then the next write finds out
	}
	var waiting sync.WaitGroup
	parent := os.Getppid()
	waiting.Go(func() {
		awaitUnread(int(f.Fd()), int(endRead.Fd()), func() bool { return os.Getppid() != parent })
		cancel()
	})
	return ctx, func() {
		endWrite.Close()
		waiting.Wait()
		endRead.Close()
		cancel()
	}
}

// awaitUnread returns when the other end of a pipe, socket or terminal is closed, or the
// other descriptor's is, or this process is an orphan. Without requested events poll
// reports nothing else (poll(2)).
func awaitUnread(fd, end int, orphan func() bool) {
	for !orphan() {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd)}, {Fd: int32(end)}}, int(orphanPollInterval/time.Millisecond))
		if n > 0 || err != nil && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// IsUnread reports whether an error means that nobody reads what is written.
func IsUnread(err error) bool { return errors.Is(err, syscall.EPIPE) }
