package plugin

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"bijou/provision/provider"
	"bijou/provision/provider/protocol"
)

// session is one process of a provider, configured for its environment.
type session struct {
	wanted  Wanted
	plugin  *goplugin.Client
	process *child
	words   *words
	link    *goplugin.GRPCClient
	client  protocol.ProviderClient
	began   time.Time
	calls   sync.WaitGroup // that are under way
}

// launch is what a session needs to begin.
type launch struct {
	path    string
	wanted  Wanted
	sockets string
	limit   time.Duration // for the process to say its address, and for Configure
	log     *slog.Logger
}

// begin starts the process and configures it. What it made is gone if that fails.
func begin(ctx context.Context, l launch) (*session, error) {
	s := &session{wanted: l.wanted, began: time.Now(), words: newWords(l.log)}
	s.process = &child{path: l.path, exited: make(chan struct{}), heard: make(chan struct{})}
	s.plugin = goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  handshake(),
		Plugins:          goplugin.PluginSet{service: &grpcPlugin{}},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		StartTimeout:     l.limit,
		Stderr:           s.words, SyncStdout: s.words, SyncStderr: s.words,
		Logger: hclog.NewNullLogger(), SkipHostEnv: true,
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: l.sockets},
		RunnerFunc:       s.runner,
	})
	err := s.open(ctx, l.limit)
	if err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// runner hands the process over to go-plugin.
func (s *session) runner(_ hclog.Logger, spec *exec.Cmd, sockets string) (runner.Runner, error) {
	s.process.sockets = sockets
	s.process.env = append(os.Environ(), spec.Env...)
	return s.process, nil
}

// open connects and configures.
func (s *session) open(ctx context.Context, limit time.Duration) error {
	release := context.AfterFunc(ctx, func() { _ = s.process.Kill(ctx) })
	defer release()
	link, err := s.plugin.Client()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return s.silence(err, limit)
	}
	s.link = link.(*goplugin.GRPCClient)
	raw, err := s.link.Dispense(service)
	if err != nil {
		return err
	}
	s.client = raw.(protocol.ProviderClient)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, err := s.client.Configure(limited, environmentOut(s.wanted.Environment)); err != nil {
		return s.judge(ctx, limited, err)
	}
	// Nobody else is to connect, and nothing is to be left when both are killed.
	return os.RemoveAll(s.process.sockets)
}

// silence words why the process could not be spoken to.
func (s *session) silence(err error, limit time.Duration) error {
	if s.process.ID() == "" {
		return fmt.Errorf("cannot start its executable: %w", err)
	}
	last := s.last()
	why := strings.ToLower(strings.ReplaceAll(err.Error(), "\n", "; "))
	switch {
	case strings.Contains(why, "timeout while waiting"):
		return fmt.Errorf("it did not begin within %s%s", limit, last)
	case strings.Contains(why, "incompatible"):
		return fmt.Errorf("it speaks another version of the protocol (%s)", why)
	case strings.Contains(why, "exited before"), strings.Contains(why, "failed to read any lines"):
		select {
		case <-s.process.exited:
			return fmt.Errorf("it ended at its start (%s)%s", s.manner(), last)
		case <-time.After(lastWords): // it has closed its stdout, and lives
		}
	}
	return fmt.Errorf("it does not speak the providers' protocol (%s)%s", why, last)
}

// over tells if the process has ended, or is being killed.
func (s *session) over() bool { return s.process.killed.Load() || s.process.dead() }

// manner is how a process that ended did.
func (s *session) manner() string {
	switch {
	case !s.process.dead():
		return "killed"
	case s.process.how == nil:
		return "exit status 0"
	}
	return s.process.how.Error()
}

// judge words how a call failed; limited is what the call was given to end by.
// A process that does not answer, or cannot be reached, is ended.
func (s *session) judge(ctx, limited context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		_ = s.process.Kill(ctx)
		return s.trouble("it does not answer")
	case status.Code(err) != codes.Unavailable: // which the connection itself says, too
		return statusIn(err)
	}
	select {
	case <-s.process.exited:
		return s.trouble(fmt.Sprintf("it ended unexpectedly (%s)", s.manner()))
	case <-time.After(time.Second):
	}
	if s.link.Conn.GetState() == connectivity.Ready {
		return statusIn(err)
	}
	_ = s.process.Kill(ctx)
	return s.trouble("its connection broke")
}

// trouble is what befell the process, with its last words.
func (s *session) trouble(what string) error {
	return &failure{what + s.last(), provider.ErrTransient}
}

// last is what the process said last. If it is about to end, its end is awaited
// for a moment.
func (s *session) last() string {
	select {
	case <-s.process.heard:
	case <-time.After(lastWords):
	}
	return s.words.end()
}

// grace is how long a process may take to end when it is told to.
const grace = 5 * time.Second

// end ends the process and frees what it had.
func (s *session) end() {
	deaf := time.AfterFunc(grace, func() { _ = s.process.Kill(context.Background()) })
	defer deaf.Stop()
	s.plugin.Kill()
	s.process.close()
	_ = os.RemoveAll(s.process.sockets)
}
