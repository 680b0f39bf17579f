package server

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// acquireSlot waits for room for one more connection; false if the server closes. When
// there is none, who asks for nothing has to go: a client that opens connections
// and leaves them so is not to keep the unit's tools waiting.
func (s *Server) acquireSlot() bool {
	for {
		timer := time.NewTimer(s.limits.idleTimeout/4 + time.Millisecond)
		select {
		case s.slots <- true:
			timer.Stop()
			return true
		case <-s.closing:
			timer.Stop()
			return false
		case <-timer.C:
			s.closeIdle()
		}
	}
}

// closeIdle closes all connections that have been idle for too long. One whose
// words are there, but not read yet, is not idle: it is the server that is slow.
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

// hasUnread says if something has come on the connection that nobody has read.
func hasUnread(conn net.Conn) bool {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return false // it is closed
	}
	bytes := 0
	err = raw.Control(func(fd uintptr) { bytes, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return err == nil && bytes > 0
}

// markWaiting notes that the connection waits for its client, or that it does not.
func (s *Server) markWaiting(conn net.Conn, yes bool) {
	since := time.Time{}
	if yes {
		since = s.now()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.conns[conn]; open {
		s.conns[conn] = since
	}
}
