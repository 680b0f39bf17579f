package server

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// acquireSlot blocks until one more connection may be open, and reports false if the server closes.
// Idle connections give way: a client that opens many and leaves them so must not keep the unit's
// tools waiting.
func (s *Server) acquireSlot() bool {
	for {
		select {
		case s.slots <- true:
			return true
		case <-s.closing:
			return false
		case <-time.After(s.limits.idleTimeout/4 + time.Millisecond):
			s.closeIdle()
		}
	}
}

// A connection with bytes that are not read yet is not idle: the server is slow.
func (s *Server) closeIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	late, closed := s.now().Add(-s.limits.idleTimeout), 0
	for conn, since := range s.conns {
		if !since.IsZero() && since.Before(late) && !hasUnread(conn) {
			conn.Close()
			closed++
		}
	}
	if closed > 0 {
		s.log.Warn("cut off hook tools that ask for nothing, to make room", "connections", closed)
	}
}

func hasUnread(conn net.Conn) bool {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return false // it is closed
	}
	bytes := 0
	err = raw.Control(func(fd uintptr) { bytes, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return err == nil && bytes > 0
}

func (s *Server) markWaiting(conn net.Conn, waiting bool) {
	since := time.Time{}
	if waiting {
		since = s.now()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.conns[conn]; open {
		s.conns[conn] = since
	}
}
