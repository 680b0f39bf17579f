// Package server is the agent's end of the hook tools' socket: it decodes AMP,
// finds the hook of the client id, and has hookenv run the tool or the seed's
// command. It knows no grammar and no store. agent imports it.
package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"bijou/hookenv/hookapi"
)

// Server serves the hooks that are registered with it over one unix socket.
type Server struct {
	path     string
	listener *net.UnixListener
	limits   limits
	now      func() time.Time
	log      *slog.Logger
	wait     sync.WaitGroup // the accepting goroutine and one a connection
	places   chan bool      // one taken a connection: its room is how many there may be
	closing  chan struct{}  // closed by Close

	mu     sync.Mutex
	hooks  map[string]*registration
	conns  map[net.Conn]time.Time // since when it waits for its client; zero: it is being answered
	closed bool
}

// limits are how many clients there may be, and how long and how large one may
// be before it is cut off.
type limits struct {
	conns    int           // connections at once; more of them wait
	idle     time.Duration // after which a connection makes room for others, if there is none
	box      int           // bytes of one box
	complete time.Duration // from a box's first byte to its last
	greet    time.Duration // from the connection to the first box
	write    time.Duration // for an answer to be taken
}

var standardLimits = limits{
	conns:    256, // no unit may use up the descriptors that all units of the process share
	idle:     time.Second,
	box:      18 << 20, // a value of 16 MiB, what stands around it, and its chunks
	complete: 30 * time.Second,
	greet:    30 * time.Second,
	write:    30 * time.Second,
}

// Listen serves at a path of at most 107 bytes, in a folder that it makes if
// there is none; only its owner may enter either. A socket that nobody serves
// any more is replaced.
func Listen(path string) (*Server, error) { return listen(path, standardLimits) }

func listen(path string, l limits) (*Server, error) {
	listener, err := bind(path)
	if err != nil {
		return nil, err
	}
	s := &Server{
		path: path, listener: listener, limits: l, now: time.Now, log: slog.With("part", "amp", "socket", path),
		hooks: map[string]*registration{}, conns: map[net.Conn]time.Time{},
		places: make(chan bool, l.conns), closing: make(chan struct{}),
	}
	s.wait.Go(s.accept)
	return s, nil
}

// Path is where the server listens.
func (s *Server) Path() string { return s.path }

// Register makes a hook reachable under a new client id, which nobody can
// guess: 128 random bits in hexadecimal.
func (s *Server) Register(hook hookapi.Hook) (clientID string) {
	bits := make([]byte, 16)
	rand.Read(bits) // it never fails; crypto/rand crashes the program first
	clientID = hex.EncodeToString(bits)
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks[clientID] = &registration{hook: hook, ctx: ctx, cancel: cancel}
	return clientID
}

// Unregister ends a client id. Calls that run are cancelled and answered that
// their hook is gone; when it returns none of them touches the hook any more.
// An unknown id is ignored.
func (s *Server) Unregister(clientID string) {
	s.mu.Lock()
	r := s.hooks[clientID]
	delete(s.hooks, clientID)
	s.mu.Unlock()
	if r != nil {
		r.end()
	}
}

// Close stops serving: it ends all client ids, closes all connections, removes
// the socket, and returns when every goroutine is done. Closing twice is fine.
func (s *Server) Close() error {
	s.mu.Lock()
	again := s.closed
	ids := make([]string, 0, len(s.hooks))
	for id := range s.hooks {
		ids = append(ids, id)
	}
	s.closed = true
	s.mu.Unlock()
	for _, id := range ids {
		s.Unregister(id)
	}
	var err error
	if !again {
		close(s.closing)
		err = s.listener.Close()
	}
	s.mu.Lock()
	for conn := range s.conns {
		conn.Close()
	}
	s.mu.Unlock()
	s.wait.Wait()
	return err
}

// accept takes connections until the listener is closed. A shortage, of
// descriptors for instance, passes.
func (s *Server) accept() {
	for s.place() {
		conn, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Warn("cannot accept a hook tool", "error", err)
			<-s.places
			s.rest()
			continue
		}
		if s.keep(conn) {
			s.wait.Go(func() { s.serve(conn) })
		}
	}
}

// rest pauses accepting for a moment, or until the server closes.
func (s *Server) rest() {
	timer := time.NewTimer(50 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.closing:
	}
}

// keep notes a connection for Close, unless that has come first.
func (s *Server) keep(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.Close()
		return false
	}
	s.conns[conn] = s.now()
	return true
}

func (s *Server) drop(conn net.Conn) {
	conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
	<-s.places
}

// find returns the registration of a client id.
func (s *Server) find(clientID string) (*registration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.hooks[clientID]
	return r, ok
}
