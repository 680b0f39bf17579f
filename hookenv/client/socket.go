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

// An agent that refuses a request may close before it has read it all; its answer is worth reading
// then.
func (c *conn) send(box []byte) error {
	err := writeAll(c.fd, box)
	if err == syscall.EPIPE || err == syscall.ECONNRESET {
		return nil
	}
	return err
}

// take must not keep what it gets.
func (c *conn) receive(take func(key, value []byte)) error {
	chunk := make([]byte, 32<<10)
	for {
		key, value, err := c.decoder.Pair()
		switch {
		case err != nil:
			return err
		case key == nil:
			if err := c.readMore(chunk); err != nil {
				return err
			}
		case len(key) == 0:
			return nil
		default:
			take(key, value)
		}
	}
}

func (c *conn) readMore(chunk []byte) error {
	n, err := readSome(c.fd, chunk)
	// Closed with something of ours unread, a socket is "reset".
	if err == nil && n == 0 || err == syscall.ECONNRESET {
		err = amp.Error("it closed the connection")
	}
	if err != nil {
		return err
	}
	c.decoder.Feed(chunk[:n])
	return nil
}
