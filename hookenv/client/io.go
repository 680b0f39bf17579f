package client

import "syscall"

// writeAll goes on past interruptions, short writes and descriptors that somebody else has made
// non-blocking.
func writeAll(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := syscall.Write(fd, p)
		if n > 0 {
			p = p[n:]
		}
		switch err {
		case nil, syscall.EINTR:
		case syscall.EAGAIN:
			awaitReady(nil, singleFdSet(fd), fd)
		default:
			return err
		}
	}
	return nil
}

// No bytes without an error are the end.
func readSome(fd int, p []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, p)
		switch err {
		case nil:
			return n, nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			awaitReady(singleFdSet(fd), nil, fd)
		default:
			return 0, err
		}
	}
}

// A descriptor that is too high for select(2) is waited for by a millisecond: whoever calls tries
// again anyway.
func awaitReady(readable, writable *syscall.FdSet, fd int) {
	if readable == nil && writable == nil {
		rest := syscall.NsecToTimespec(1_000_000)
		syscall.Nanosleep(&rest, nil)
		return
	}
	syscall.Select(fd+1, readable, writable, nil, nil)
}

func singleFdSet(fd int) *syscall.FdSet {
	var set syscall.FdSet
	word := syscall.FD_SETSIZE / len(set.Bits)
	if fd >= syscall.FD_SETSIZE {
		return nil
	}
	set.Bits[fd/word] |= 1 << (fd % word)
	return &set
}
