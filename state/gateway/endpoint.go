package gateway

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"bijou/state/osutil"
	"bijou/state/store/remote/protocol"
)

// What one endpoint has at most, whoever is behind its socket.
const (
	maxConns     = 16
	maxStreams   = 4096 // calls at once, of one connection
	maxSnapshots = 128  // at once; others wait for their turn
	maxLeases    = 64   // at once
	maxRequest   = 4 << 20
)

// How often a silent client is asked whether it is there, and how long it has for the answer.
const (
	clientPingInterval = 10 * time.Second
	clientPingTimeout  = 10 * time.Second
)

// Endpoint is one identity's socket.
type Endpoint struct {
	server *grpc.Server
	served sync.WaitGroup
}

// Listen makes the identity's socket at the path, in place of one that another process has left
// there, and serves it until the endpoint is closed. Only the owner can open the socket; its
// directory is the caller's affair.
func (g *Gateway) Listen(who Identity, path string) (*Endpoint, error) {
	l, err := listen(path)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for %s: %w", who, err)
	}

	e := &Endpoint{server: grpc.NewServer(
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: clientPingInterval, Timeout: clientPingTimeout}),
		// Clients ask every ten seconds at most.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)}

	protocol.RegisterStoreServer(e.server, &session{g: g, who: who, snapshots: make(chan struct{}, maxSnapshots)})
	e.served.Go(func() {
		err := e.server.Serve(newBoundedListener(l, maxConns))
		if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			slog.Error("the gateway's socket is no longer served", "identity", string(who), "error", err)
		}
	})

	return e, nil
}

// Close ends the endpoint with its connections, snapshots and watches, and waits for them. Leases
// live on for their TTL. It is idempotent.
//
// The socket's file stays: another process may have made its own there meanwhile.
func (e *Endpoint) Close() {
	e.server.Stop()
	e.served.Wait()
}

// listen replaces a socket by rename, so that there always is one, and never one that others may
// open.
func listen(path string) (net.Listener, error) {
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}

	var l *net.UnixListener
	err := osutil.WithShortPath(fresh, func(short string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, err
	}

	l.SetUnlinkOnClose(false)
	if err := os.Chmod(fresh, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if err := os.Rename(fresh, path); err != nil {
		return nil, errors.Join(err, l.Close())
	}

	return l, nil
}

// boundedListener accepts so many connections at once; others wait in the kernel. Closing it closes them: the
// server would wait for one that has said nothing yet.
type boundedListener struct {
	net.Listener
	slots     chan struct{} // buffered: one for each connection
	closeOnce sync.Once
	closed    chan struct{}

	mu    sync.Mutex
	conns map[*boundedConn]bool
}

func newBoundedListener(l net.Listener, conns int) *boundedListener {
	return &boundedListener{
		Listener: l, slots: make(chan struct{}, conns), closed: make(chan struct{}), conns: map[*boundedConn]bool{},
	}
}

func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}

	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}

	c := &boundedConn{Conn: conn}
	c.release = sync.OnceFunc(func() { l.remove(c) })
	if err := l.add(c); err != nil {
		return nil, err
	}
	return c, nil
}

// add returns net.ErrClosed, and closes the connection, if the listener was closed meanwhile.
func (l *boundedListener) add(c *boundedConn) error {
	l.mu.Lock()
	l.conns[c] = true
	l.mu.Unlock()

	select {
	case <-l.closed:
		_ = c.Close()
		return net.ErrClosed
	default:
		return nil
	}
}

func (l *boundedListener) remove(c *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	<-l.slots
}

func (l *boundedListener) Close() error {
	l.closeOnce.Do(func() { close(l.closed) })
	err := l.Listener.Close()

	l.mu.Lock()
	conns := slices.Collect(maps.Keys(l.conns))
	l.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	return err
}

type boundedConn struct {
	net.Conn
	release func()
}

func (c *boundedConn) Close() error {
	c.release()
	return c.Conn.Close()
}
