package client

import "syscall"

// writeAll writes it all, past interruptions, short writes and descriptors that
// somebody else has made non-blocking.
func writeAll(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := syscall.Write(fd, p)
		if n > 0 {
			p = p[n:]
		}
		if err = again(err); err != nil {
			return err
		}
	}
	return nil
}

// read reads some bytes; none without error is the end.
func read(fd int, p []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, p)
		if err == nil {
			return n, nil
		}
		if err = again(err); err != nil {
			return 0, err
		}
	}
}

// again drops the errors after which one tries again; before it returns from
// "not now" it rests for a millisecond.
func again(err error) error {
	switch err {
	case syscall.EINTR:
		return nil
	case syscall.EAGAIN:
		rest := syscall.NsecToTimespec(1_000_000)
		syscall.Nanosleep(&rest, nil)
		return nil
	}
	return err
}
