package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"bijou/hookenv/amp"
	"bijou/hookenv/client/wire"
	"bijou/hookenv/hookapi"
	"bijou/state/wrap"
)

// conn is one connection: boxes in, boxes out, in turn.
type conn struct {
	net     net.Conn
	limits  limits
	now     func() time.Time
	decoder amp.Decoder
	chunk   []byte
}

// serve answers a connection's boxes until it ends or is cut off. What one connection does wrong
// never ends another.
func (s *Server) serve(raw net.Conn) {
	defer s.dropConn(raw)
	c := &conn{
		net: raw, limits: s.limits, now: s.now,
		decoder: amp.Decoder{Limit: s.limits.maxBox}, chunk: make([]byte, 16<<10),
	}
	first := c.now().Add(c.limits.firstBoxTimeout)
	for {
		box, err := c.readBox(context.Background(), first)
		if err == nil {
			s.markWaiting(raw, false)
			err = s.serveBox(c, box)
			s.markWaiting(raw, true)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) { // which the client or Close wanted
				s.log.Warn("cut off a hook tool", "error", err)
			}
			return
		}
		first = time.Time{}
	}
}

// The first byte must come by a deadline (zero: at any time), and the rest soon after it. readBox
// ends with ctx.
func (c *conn) readBox(ctx context.Context, first time.Time) (amp.Box, error) {
	defer context.AfterFunc(ctx, func() { c.net.SetReadDeadline(time.Unix(1, 0)) })()
	deadline := first
	for begun := false; ; {
		box, err := c.decoder.Next()
		if err != nil || box != nil {
			return box, err
		}
		if c.decoder.Pending() && !begun {
			begun, deadline = true, c.now().Add(c.limits.boxTimeout)
		}
		if err := c.net.SetReadDeadline(deadline); err != nil {
			return nil, err
		}
		if ctx.Err() != nil { // it may have set its deadline before ours
			return nil, ctx.Err()
		}
		n, err := c.net.Read(c.chunk)
		c.decoder.Feed(c.chunk[:n])
		if errors.Is(err, io.EOF) && c.decoder.Pending() {
			err = io.ErrUnexpectedEOF
		}
		if n == 0 && err != nil {
			return nil, err
		}
	}
}

// A client that does not take the box is cut off.
func (c *conn) writeBox(box []byte) error {
	if err := c.net.SetWriteDeadline(c.now().Add(c.limits.writeTimeout)); err != nil {
		return err
	}
	_, err := c.net.Write(box)
	return err
}

// The AMP error codes beside wire.CodeUnknownClient. AMP itself knows UNKNOWN,
// for what is the server's own trouble.
const (
	codeBadRequest = "BAD_REQUEST"
	codeKeyError   = "KEY_ERROR"
	codeReserved   = "RESERVED"
	codeInternal   = "UNKNOWN"
)

// refusal is an AMP error as an answer.
type refusal struct{ code, text string }

// pair is a key of an answer with its value.
type pair struct{ key, value string }

func (c *conn) reply(ask string, pairs ...pair) error { return c.writeBox(encodeAnswer(ask, pairs)) }

func encodeAnswer(ask string, pairs []pair) []byte {
	box := amp.Append(nil, wire.KeyAnswer, ask)
	for _, p := range pairs {
		box = amp.Append(box, p.key, p.value)
	}
	return amp.End(box)
}

func (c *conn) refuse(ask string, r refusal) error {
	box := amp.Append(nil, wire.KeyError, ask)
	box = amp.Append(box, wire.KeyErrorCode, r.code)
	box = amp.Append(box, wire.KeyErrorText, r.text)
	return c.writeBox(amp.End(box))
}

// registration is one hook under its client id.
type registration struct {
	hook   hookapi.Hook
	ctx    context.Context // ends with the registration
	cancel context.CancelFunc

	mu    sync.Mutex
	ended bool
	calls sync.WaitGroup
}

// beginCall reports false if the hook has ended. Every call that it has let begin is followed by
// calls.Done.
func (r *registration) beginCall() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.calls.Add(1)
	return true
}

func (r *registration) end() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.cancel()
	r.calls.Wait()
}

func (r *registration) isGone(err error) bool {
	return errors.Is(err, hookapi.ErrGone) || err != nil && r.ctx.Err() != nil
}

// maxSocketPath is the room in a unix socket's address, in bytes.
const maxSocketPath = 107

// The folder is closed to others, so that nobody comes in between the socket's creation and its
// mode.
func bindSocket(path string) (*net.UnixListener, os.FileInfo, error) {
	if len(path) > maxSocketPath {
		return nil, nil, fmt.Errorf("cannot listen at %q: the path has %d bytes, and %d is all a unix socket may have", path, len(path), maxSocketPath)
	}
	if err := prepareFolder(filepath.Dir(path)); err != nil {
		return nil, nil, err
	}
	if err := removeStale(path); err != nil {
		return nil, nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot listen at %q: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("cannot close %q to others: %w", path, err), listener.Close())
	}
	listener.SetUnlinkOnClose(false) // by then another may lie there
	made, err := os.Lstat(path)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("cannot look at %q: %w", path, err), listener.Close())
	}
	return listener, made, nil
}

// prepareFolder makes the folder, and not those above it: who chose them has made sure whose they
// are. A folder of another user is refused, since that user could put a socket in the place of ours.
func prepareFolder(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot make the socket's folder: %w", err)
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return fmt.Errorf("cannot look at the socket's folder: %w", err)
	}

	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("cannot use the socket folder %q: it is not a folder of this user", folder)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("cannot use the socket folder %q: it has mode %#o and must have 0700", folder, mode)
	}
	return nil
}

// A socket that a process serves, or a file of another kind, is never removed.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot look at %q: %w", path, err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("cannot listen at %q: a file that is no socket is there", path)
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
		return fmt.Errorf("cannot listen at %q: another process serves it", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("cannot tell whether %q is served: %w", path, err)
	}
	return wrap.Error(os.Remove(path), "cannot remove the stale socket %q", path)
}
