// Package server is the agent's end of the hook tools' socket: it decodes AMP,
// finds the hook of the client id, and has hookenv/tools run the tool or Python Juju's
// command. It knows no grammar and no store. agent imports it.
package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bijou/hookenv/hookapi"
)

// Server serves the hooks that are registered with it over one unix socket.
type Server struct {
	path       string
	listener   *net.UnixListener // Renew's, which no other method but Close meets
	socketInfo os.FileInfo       // the socket as it was made
	limits     limits
	now        func() time.Time
	log        *slog.Logger
	goroutines sync.WaitGroup  // the accepting goroutine and one a connection
	slots      chan bool       // one taken a connection: its room is how many there may be
	open       context.Context // done once Close is called
	close      context.CancelFunc
	outside    Outside // nil: programs outside of hooks are not served

	mu     sync.Mutex
	hooks  map[string]*registration
	conns  map[net.Conn]time.Time // since when it waits for its client; zero: it is being answered
	closed bool
}

// limits bound how many clients there may be, and how long and how large one may be before it is
// cut off.
type limits struct {
	maxConns        int           // connections at once; more of them wait
	idleTimeout     time.Duration // after which a connection makes room for others, if there is none
	maxBox          int           // bytes of one box
	boxTimeout      time.Duration // from a box's first byte to its last
	firstBoxTimeout time.Duration // from the connection to the first box
	writeTimeout    time.Duration // for an answer to be taken
}

var defaultLimits = limits{
	maxConns:        256, // no unit may use up the descriptors that all units of the process share
	idleTimeout:     time.Second,
	maxBox:          18 << 20, // a value of 16 MiB, what stands around it, and its chunks
	boxTimeout:      30 * time.Second,
	firstBoxTimeout: 30 * time.Second,
	writeTimeout:    30 * time.Second,
}

// Listen serves at a path of at most 107 bytes. It makes the path's directory if there is none. Only the
// owner may enter the directory and the socket. Listen replaces a socket that nobody serves.
func Listen(path string) (*Server, error) { return listen(path, defaultLimits) }

// ListenFor does what [Listen] does, and also serves programs outside of hooks.
func ListenFor(path string, o Outside) (*Server, error) {
	s := newServer(path, defaultLimits)
	s.outside = o
	return s, s.Renew()
}

func listen(path string, l limits) (*Server, error) {
	s := newServer(path, l)
	return s, s.Renew()
}

// newServer returns a server that does not listen yet.
func newServer(path string, l limits) *Server {
	s := &Server{
		path:   path,
		limits: l,
		now:    time.Now,
		log:    slog.With("part", "amp", "socket", path),
		hooks:  map[string]*registration{},
		conns:  map[net.Conn]time.Time{},
		slots:  make(chan bool, l.maxConns),
	}
	s.open, s.close = context.WithCancel(context.Background())
	return s
}

// Renew makes the socket again if its path no longer leads to it, for example after a program has cleared
// temporary directories. Hooks stay registered. Only one goroutine may call it, and not beside Close.
func (s *Server) Renew() error {
	if s.ownsSocket() {
		return nil
	}
	listener, made, err := bindSocket(s.path)
	if err != nil {
		return err
	}

	if s.listener != nil {
		s.listener.Close()
	}
	s.listener = listener
	s.socketInfo = made
	s.goroutines.Go(func() { s.acceptConns(listener) })
	return nil
}

func (s *Server) ownsSocket() bool {
	now, err := os.Lstat(s.path)
	return err == nil && s.socketInfo != nil && os.SameFile(now, s.socketInfo)
}

// Path returns where the server listens.
func (s *Server) Path() string { return s.path }

// NewClientID returns an id that nobody can guess: 128 random bits in hexadecimal.
func NewClientID() string {
	bits := make([]byte, 16)
	rand.Read(bits) // it never fails; crypto/rand crashes the program first
	return hex.EncodeToString(bits)
}

// Register makes a hook reachable under a new client id.
func (s *Server) Register(clientID string, hook hookapi.Hook) {
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks[clientID] = &registration{hook: hook, ctx: ctx, cancel: cancel}
}

// Unregister ends a client id. It cancels calls that run, and answers them that their hook is gone. When it
// returns, none of them touches the hook. It ignores an unknown id.
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
	ids := slices.Collect(maps.Keys(s.hooks))
	s.closed = true
	s.mu.Unlock()
	for _, id := range ids {
		s.Unregister(id)
	}

	var err error
	if !again {
		s.close()
		owned := s.ownsSocket()
		err = s.listener.Close()
		if owned {
			err = errors.Join(err, os.Remove(s.path))
		}
	}

	s.mu.Lock()
	for conn := range s.conns {
		conn.Close()
	}
	s.mu.Unlock()
	s.goroutines.Wait()
	return err
}

// acceptConns accepts connections until the listener is closed, as many at once as there are slots. After
// an error, such as a shortage of descriptors, it waits for a moment and goes on.
func (s *Server) acceptConns(listener *net.UnixListener) {
	for s.acquireSlot() {
		conn, err := listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			<-s.slots
			return
		}

		if err != nil {
			s.log.Warn("cannot accept a hook tool", "error", err)
			<-s.slots
			select {
			case <-time.After(50 * time.Millisecond):
			case <-s.open.Done():
			}
			continue
		}

		if s.addConn(conn) {
			s.goroutines.Go(func() { s.serve(conn) })
		}
	}
}

// addConn adds a connection. It returns false if Close was called before.
func (s *Server) addConn(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.Close()
		return false
	}

	s.conns[conn] = s.now()
	return true
}

func (s *Server) dropConn(conn net.Conn) {
	conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
	<-s.slots
}

func (s *Server) findHook(clientID string) (*registration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.hooks[clientID]
	return r, ok
}

// acquireSlot blocks until one more connection may be open, and reports false if the server closes.
// Idle connections give way: a client that opens many and leaves them so must not keep the unit's
// tools waiting.
func (s *Server) acquireSlot() bool {
	for {
		select {
		case s.slots <- true:
			return true
		case <-s.open.Done():
			return false
		case <-time.After(s.limits.idleTimeout/4 + time.Millisecond):
			s.closeIdle()
		}
	}
}

// closeIdle closes connections that have not sent a request for idleTimeout. It keeps a connection with
// unread bytes, since then the server is slow and not the client.
func (s *Server) closeIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()

	late := s.now().Add(-s.limits.idleTimeout)
	closed := 0
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

// hasUnread reports whether bytes wait on the connection.
func hasUnread(conn net.Conn) bool {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return false // it is closed
	}

	bytes := 0
	err = raw.Control(func(fd uintptr) { bytes, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return err == nil && bytes > 0
}

// markWaiting notes since when the connection waits for a request, or that it does not.
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
