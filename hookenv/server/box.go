package server

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"bijou/hookenv/amp"
	"bijou/hookenv/client"
)

// An error ends the connection: its client has lost the thread, or does not listen.
func (s *Server) serveBox(c *conn, box amp.Box) error {
	command, ask := box.Value(client.KeyCommand), box.Value(client.KeyAsk)
	if command == "" || ask == "" {
		return errors.New("a box that asks for nothing")
	}
	s.log.Debug("asked", "command", command, "tool", toolName(box), "directory", box.Value(client.KeyDirectory))
	if refused := checkBox(command, box); refused != nil {
		return c.refuse(ask, *refused)
	}
	r, ok := s.findHook(box.Value(client.KeyClientID))
	if !ok || !r.beginCall() {
		return c.refuse(ask, goneRefusal())
	}
	if command == client.CommandTool {
		return s.runTool(c, r, box)
	}
	pairs, refused := runCommand(r, command, box)
	r.calls.Done()
	if refused != nil {
		return c.refuse(ask, *refused)
	}
	return c.reply(ask, pairs...)
}

// toolName leaves the arguments out: they may be secret.
func toolName(box amp.Box) string {
	name, _, _ := strings.Cut(box.Value(client.KeyArgv), "\x00")
	return name
}

func goneRefusal() refusal { return refusal{client.CodeUnknownClient, "hook context gone"} }

func requiredKeys(command string) (names []string, known bool) {
	switch command {
	case client.CommandTool:
		return []string{client.KeyArgv, client.KeyStdin}, true
	case commandGet:
		return []string{keyUnit, keySetting}, true
	case commandSet:
		return []string{keyUnit, keyBlob}, true
	case commandList, "flush", "sync", "wait":
		return nil, true
	}
	return nil, false
}

// What a tool's argv holds is checked by the tool.
func checkBox(command string, box amp.Box) *refusal {
	names, known := requiredKeys(command)
	if !known {
		return &refusal{codeBadRequest, fmt.Sprintf("unknown command %q", command)}
	}
	for _, name := range append(names, client.KeyClientID) {
		if !box.Has(name) {
			return &refusal{codeBadRequest, fmt.Sprintf("%s needs %s", command, name)}
		}
	}
	if command == client.CommandTool {
		return nil
	}
	for _, name := range []string{client.KeyClientID, keyUnit, keySetting, keyBlob, keyRelation} {
		if !utf8.ValidString(box.Value(name)) {
			return &refusal{codeBadRequest, name + " is not UTF-8"}
		}
	}
	return nil
}

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
