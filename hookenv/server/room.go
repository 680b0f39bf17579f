package server

import (
	"net"
	"time"
)

// place waits for room for one more connection; false if the server closes. When
// there is none, who asks for nothing has to go: a client that opens connections
// and leaves them so is not to keep the unit's tools waiting.
func (s *Server) place() bool {
	for {
		timer := time.NewTimer(s.limits.idle/4 + time.Millisecond)
		select {
		case s.places <- true:
			timer.Stop()
			return true
		case <-s.closing:
			timer.Stop()
			return false
		case <-timer.C:
			s.makeRoom()
		}
	}
}

// makeRoom closes all connections that have been idle for too long.
func (s *Server) makeRoom() {
	s.mu.Lock()
	defer s.mu.Unlock()
	late, closed := s.now().Add(-s.limits.idle), 0
	for conn, since := range s.conns {
		if !since.IsZero() && since.Before(late) {
			conn.Close()
			closed++
		}
	}
	if closed > 0 {
		s.log.Warn("cut off hook tools that ask for nothing, to make room", "connections", closed)
	}
}

// waits notes that the connection waits for its client, or that it does not.
func (s *Server) waits(conn net.Conn, yes bool) {
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
