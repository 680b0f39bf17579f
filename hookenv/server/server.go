// Package server is the agent's end of the hook tools' socket. It decodes AMP, finds the hook of the client id, and
// calls hookenv/tools, which runs the tool or a command of Python Juju.
//
// It does not parse a tool's arguments, and does not use the store.
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

// Server serves registered hooks over one unix socket.
type Server struct {
	path       string
	listener   *net.UnixListener // only used by Renew and Close
	socketInfo os.FileInfo       // the socket's file as the server has created it
	limits     limits
	now        func() time.Time
	log        *slog.Logger
	goroutines sync.WaitGroup  // the accepting goroutine, and one for each connection
	slots      chan bool       // holds a value for each connection; its capacity limits their number
	ctx        context.Context // done once Close is called
	cancel     context.CancelFunc
	outside    Outside // serves programs outside of hooks; nil if they are not served

	mu     sync.Mutex
	hooks  map[string]*registration // by client id
	conns  map[net.Conn]time.Time   // when each connection began to wait for a request; zero during a request
	closed bool
}

// limits limit the number of connections, and the size and duration of what a client sends. The server closes a
// connection that exceeds them.
type limits struct {
	maxConns        int           // connections at once; further clients wait
	idleTimeout     time.Duration // how long a connection can be idle while other clients wait
	maxBox          int           // the size of one box, in bytes
	boxTimeout      time.Duration // from the first byte of a box to its last
	firstBoxTimeout time.Duration // from the beginning of the connection to the first box
	writeTimeout    time.Duration // how long the client can take to read an answer
}

var defaultLimits = limits{
	maxConns:        256, // one unit must not use up the descriptors that all units of the process share
	idleTimeout:     time.Second,
	maxBox:          18 << 20, // a value of 16 MiB in chunks, and the other pairs
	boxTimeout:      30 * time.Second,
	firstBoxTimeout: 30 * time.Second,
	writeTimeout:    30 * time.Second,
}

// Listen returns a server at the path. The path can have at most 107 bytes. Listen creates the socket's
// directory if it is missing. Only the owner can use the directory and the socket. Listen replaces a socket
// that no process serves.
func Listen(path string) (*Server, error) { return listen(path, defaultLimits) }

// ListenFor does what [Listen] does, and also serves programs outside of hooks.
func ListenFor(path string, o Outside) (*Server, error) {
	s := newServer(path, defaultLimits)
	s.outside = o
	return s, s.Renew()
}

// listen does what [Listen] does, with the given limits.
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
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Renew creates the socket, unless the server's socket is still at its path. A program that clears temporary
// directories may have removed it. Hooks stay registered. The caller must not call Renew or Close at the same time.
func (s *Server) Renew() error {
	if s.ownsSocket() {
		return nil
	}
	listener, info, err := bindSocket(s.path)
	if err != nil {
		return err
	}

	if s.listener != nil {
		s.listener.Close() // also ends the goroutine that accepts its connections
	}
	s.listener = listener
	s.socketInfo = info
	s.goroutines.Go(func() { s.acceptConns(listener) })
	return nil
}

// ownsSocket reports whether the file at the server's path is the socket that the server has created.
func (s *Server) ownsSocket() bool {
	current, err := os.Lstat(s.path)
	return err == nil && s.socketInfo != nil && os.SameFile(current, s.socketInfo)
}

// Path returns the path of the server's socket.
func (s *Server) Path() string { return s.path }

// NewClientID returns a new client id that cannot be guessed: 128 random bits in hexadecimal.
func NewClientID() string {
	bits := make([]byte, 16)
	rand.Read(bits) // never fails: crypto/rand crashes the program instead
	return hex.EncodeToString(bits)
}

// Register makes a hook reachable under a client id, which must be new.
func (s *Server) Register(clientID string, hook hookapi.Hook) {
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks[clientID] = &registration{hook: hook, ctx: ctx, cancel: cancel}
}

// Unregister ends a client id. It cancels the hook's running calls. If such a call then fails, its client gets the error
// "hook context gone". When Unregister returns, no call uses the hook any longer. Unregister ignores an unknown id.
func (s *Server) Unregister(clientID string) {
	s.mu.Lock()
	r := s.hooks[clientID]
	delete(s.hooks, clientID)
	s.mu.Unlock()
	if r != nil {
		r.end()
	}
}

// Close ends all client ids, closes all connections and removes the socket. It returns when every goroutine has ended.
// It is idempotent.
func (s *Server) Close() error {
	s.mu.Lock()
	wasClosed := s.closed
	ids := slices.Collect(maps.Keys(s.hooks))
	s.closed = true
	s.mu.Unlock()

	for _, id := range ids {
		s.Unregister(id)
	}

	var err error
	if !wasClosed { // only the first Close stops the listener
		err = s.stopListening()
	}

	// Since s.closed is set, addConn adds no more connections.
	s.mu.Lock()
	for conn := range s.conns {
		conn.Close()
	}
	s.mu.Unlock()

	s.goroutines.Wait()
	return err
}

// stopListening ends the server's context and closes the listener. It removes the socket, unless a different file is
// now at the path.
func (s *Server) stopListening() error {
	s.cancel()
	isOwn := s.ownsSocket()
	err := s.listener.Close()
	if isOwn {
		err = errors.Join(err, os.Remove(s.path))
	}
	return err
}

// acceptConns accepts connections until the listener or the server is closed. It keeps at most as many open as there are
// slots. After an error, such as a shortage of descriptors, it frees its slot and continues after a short pause.
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
			case <-s.ctx.Done():
			}
			continue
		}

		// addConn refuses the connection only if the server is closing. Then nobody needs the slot.
		if s.addConn(conn) {
			s.goroutines.Go(func() { s.serve(conn) })
		}
	}
}

// addConn adds a connection. After Close it closes the connection instead, and returns false.
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

// dropConn closes a connection, forgets it, and frees its slot.
func (s *Server) dropConn(conn net.Conn) {
	conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
	<-s.slots
}

// findHook returns the hook that is registered under a client id, or false if there is none.
func (s *Server) findHook(clientID string) (*registration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.hooks[clientID]
	return r, ok
}

// acquireSlot blocks until a slot for a connection is free. It returns false when the server closes. While it
// waits it closes idle connections, so that a client with many idle connections does not block the unit's
// tools.
func (s *Server) acquireSlot() bool {
	// The millisecond keeps the interval above zero, since a zero interval would spin.
	interval := s.limits.idleTimeout/4 + time.Millisecond

	for {
		select {
		case s.slots <- true:
			return true
		case <-s.ctx.Done():
			return false
		case <-time.After(interval):
			s.closeIdle()
		}
	}
}

// closeIdle closes connections that have not sent a request for idleTimeout. It keeps a connection with
// unread bytes, since in that case the server is slow, and not the client.
func (s *Server) closeIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()

	latest := s.now().Add(-s.limits.idleTimeout)
	closed := 0
	for conn, since := range s.conns {
		isServing := since.IsZero() // the server is answering the connection's request
		isIdle := !isServing && since.Before(latest)
		if isIdle && !hasUnread(conn) {
			conn.Close()
			closed++
		}
	}

	if closed > 0 {
		s.log.Warn("disconnected idle hook tools, to accept new ones", "connections", closed)
	}
}

// hasUnread reports whether the connection has received bytes that have not been read yet.
func hasUnread(conn net.Conn) bool {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return false // the connection is closed
	}

	bytes := 0 // also if ioctl fails
	err = raw.Control(func(fd uintptr) { bytes, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return err == nil && bytes > 0
}

// markWaiting records that the connection now waits for a request or, if waiting is false, that the server is
// answering its request.
func (s *Server) markWaiting(conn net.Conn, waiting bool) {
	since := time.Time{}
	if waiting {
		since = s.now()
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	// Do not add a connection that dropConn has removed.
	if _, isOpen := s.conns[conn]; isOpen {
		s.conns[conn] = since
	}
}
