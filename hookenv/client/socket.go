package client

import (
	"syscall"

	"bijou/hookenv/amp"
)

// conn is the connection to the agent: a blocking descriptor, since a process
// that does one thing needs no poller.
type conn struct {
	fd      int
	decoder amp.Decoder
}

func dial(path string) (*conn, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path})
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		syscall.Close(fd)
		return nil, err
	}
	return &conn{fd: fd, decoder: amp.Decoder{Limit: maxAnswer}}, nil
}

// ask sends one box and waits for the answer. An agent that refuses a request
// may close before it has read it all; its answer is worth reading then.
func (c *conn) ask(box []byte) (amp.Box, error) {
	sent := writeAll(c.fd, box)
	if sent != nil && sent != syscall.EPIPE && sent != syscall.ECONNRESET {
		return nil, sent
	}
	chunk := make([]byte, 32<<10)
	for {
		answer, err := c.decoder.Next()
		if answer != nil || err != nil {
			return answer, err
		}
		n, err := read(c.fd, chunk)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, amp.Error("it closed the connection")
		}
		c.decoder.Feed(chunk[:n])
	}
}
