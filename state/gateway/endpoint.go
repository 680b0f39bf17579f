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

// The limits of one endpoint.
const (
	maxConns     = 16
	maxStreams   = 1024    // simultaneous calls of one connection; more than maxWatches, so that reads are possible beside watches
	maxSnapshots = 128     // open snapshots; further requests wait
	maxWatches   = 512     // watches of the identity; each of its units has a few
	maxLeases    = 64      // leases of the identity
	maxRequest   = 4 << 20 // the size of a request, in bytes
)

const (
	// clientPingInterval is how long a client is silent before the server pings it.
	clientPingInterval = 10 * time.Second
	// clientPingTimeout is how long the server waits for the answer to a ping.
	clientPingTimeout = 10 * time.Second
)

// Endpoint is the socket of an identity.
type Endpoint struct {
	server *grpc.Server
	served sync.WaitGroup
}

// Listen creates the identity's socket at the path, and serves it until the endpoint is closed. It replaces a
// socket that is already there. Only the user who owns the socket can open it. The caller is responsible for
// the permissions of the socket's directory.
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
		// Clients ping at most every ten seconds.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)}

	protocol.RegisterStoreServer(e.server, newSession(g, who))
	e.served.Go(func() {
		err := e.server.Serve(newBoundedListener(l, maxConns))
		if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			slog.Error("the gateway no longer serves its socket", "identity", string(who), "error", err)
		}
	})

	return e, nil
}

// Close closes the endpoint with its connections, snapshots and watches, and waits for them. Leases stay
// until their TTL expires. Close is idempotent.
//
// Close does not remove the socket's file, since another process may have replaced it in the meantime.
func (e *Endpoint) Close() {
	e.server.Stop()
	e.served.Wait()
}

// listen creates a socket that only its owner can open, and renames it to the path. So a socket that is already
// at the path is replaced in one step, and processes always find one of the two there.
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

	// Otherwise Close would remove the file with the name under which the socket was created. After the rename,
	// a file with that name is not this socket.
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(fresh, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if err := os.Rename(fresh, path); err != nil {
		return nil, errors.Join(err, l.Close())
	}

	return l, nil
}

// boundedListener limits the number of open connections. Further connections wait in the kernel. Close closes
// all connections, since the server would otherwise wait for a connection that has not sent anything yet.
type boundedListener struct {
	net.Listener
	slots     chan struct{} // has an element for each open connection; its buffer is the limit
	closeOnce sync.Once
	closed    chan struct{}

	mu    sync.Mutex
	conns map[*boundedConn]bool
}

// newBoundedListener returns a listener that accepts the connections of l, at most conns at the same time.
func newBoundedListener(l net.Listener, conns int) *boundedListener {
	return &boundedListener{
		Listener: l, slots: make(chan struct{}, conns), closed: make(chan struct{}), conns: map[*boundedConn]bool{},
	}
}

// Accept waits until fewer connections are open than the limit, and then for the next connection. It returns
// an error that wraps net.ErrClosed if the listener is closed.
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
		return nil, err // add has closed the connection, which frees the slot
	}
	return c, nil
}

// add records a connection. If the listener has been closed, it closes the connection and returns
// net.ErrClosed.
func (l *boundedListener) add(c *boundedConn) error {
	l.mu.Lock()
	l.conns[c] = true
	l.mu.Unlock()

	// Check this after the connection is recorded: Close either finds it in conns, or has closed the channel
	// before.
	select {
	case <-l.closed:
		_ = c.Close()
		return net.ErrClosed
	default:
		return nil
	}
}

// remove forgets a connection, so that another can be accepted.
func (l *boundedListener) remove(c *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	<-l.slots
}

// Close closes the listener and all its connections.
func (l *boundedListener) Close() error {
	// The channel is closed before conns is read, so that add closes connections that it records later.
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

// boundedConn is a connection of a boundedListener. Its Close removes it from the listener.
type boundedConn struct {
	net.Conn
	release func()
}

// Close removes the connection from its listener, and closes it.
func (c *boundedConn) Close() error {
	c.release()
	return c.Conn.Close()
}
