package ssh

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"bijou/testscripts/kit/need"
)

// hangingAgent starts an ssh-agent that accepts connections and sends nothing. asked receives each
// connection.
func hangingAgent(t *testing.T) (asked chan net.Conn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", path)
	check(t, err)
	t.Setenv("SSH_AUTH_SOCK", path)
	asked = make(chan net.Conn, 16) // more than the number of connections, so that the sender never blocks
	var listening sync.WaitGroup
	listening.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked <- c
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		listening.Wait()
		for len(asked) > 0 {
			_ = (<-asked).Close()
		}
	})
	return asked
}

// TestHangingAgent checks that a hanging ssh-agent delays a login only until the login's context ends. If
// ssh.identity names a key, the agent is not asked at all.
func TestHangingAgent(t *testing.T) {
	need.Whole(t)
	r := newRig(t, 1)
	asked := hangingAgent(t)
	i, err := r.Start(t.Context(), spec("1", ""), io.Discard)
	check(t, err)
	if len(asked) > 0 {
		t.Error("the agent was asked though ssh.identity is set")
	}
	check(t, r.Stop(t.Context(), i.ID))

	delete(r.env.Config, "identity")
	t.Setenv("HOME", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := r.Start(ctx, spec("1", ""), io.Discard); err == nil {
		t.Error("it was started without a key")
	}
	var l loginMethods
	held := l.dialAgent(ctx)
	if held != nil {
		t.Error("an agent is connected to after the end")
	}
	bounded, end := context.WithCancel(t.Context())
	held = l.dialAgent(bounded)
	defer l.close()
	end()
	if _, err := held.Signers(); err == nil {
		t.Error("the agent has answered")
	}
}
