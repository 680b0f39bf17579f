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
	"os"
	"sync"
	"time"

	"bijou/hookenv/hookapi"
)

// Server serves the hooks that are registered with it over one unix socket.
type Server struct {
	path     string
	listener *net.UnixListener // Renew's, which no other method but Close meets
	made     os.FileInfo       // the socket as it was made
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
	s := &Server{
		path: path, limits: l, now: time.Now, log: slog.With("part", "amp", "socket", path),
		hooks: map[string]*registration{}, conns: map[net.Conn]time.Time{},
		places: make(chan bool, l.conns), closing: make(chan struct{}),
	}
	return s, s.Renew()
}

// Renew makes the socket again if what lies at its path is not it any more, as after
// somebody has cleared the folder. Hooks stay registered. It is for one goroutine, and
// not beside Close.
func (s *Server) Renew() error {
	if s.owned() {
		return nil
	}
	listener, made, err := bind(s.path)
	if err != nil {
		return err
	}
	if s.listener != nil {
		s.listener.Close()
	}
	s.listener, s.made = listener, made
	s.wait.Go(func() { s.accept(listener) })
	return nil
}

// owned reports whether the socket at the path is this server's.
func (s *Server) owned() bool {
	now, err := os.Lstat(s.path)
	return err == nil && s.made != nil && os.SameFile(now, s.made)
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
		owned := s.owned()
		if err = s.listener.Close(); owned {
			err = errors.Join(err, os.Remove(s.path))
		}
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
func (s *Server) accept(listener *net.UnixListener) {
	for s.place() {
		conn, err := listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			<-s.places
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
