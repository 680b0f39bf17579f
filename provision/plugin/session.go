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
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"bijou/provision/provider"
	"bijou/provision/provider/protocol"
	"bijou/state/childenv"
	"bijou/state/text"
)

// session is one process of a provider, configured for its environment.
type session struct {
	wanted    Wanted
	plugin    *goplugin.Client
	process   *childProcess
	stderr    *stderrLog
	conn      *goplugin.GRPCClient
	client    protocol.ProviderClient
	startedAt time.Time
	calls     sync.WaitGroup // that are under way
}

// sessionOptions describe the process of a session.
type sessionOptions struct {
	path    string
	wanted  Wanted
	sockets string
	timeout time.Duration // for the process to say its address, and for Configure
	log     *slog.Logger
}

// maxAnswer bounds one answer of a provider, in bytes: some ten thousand instances have room in it.
const maxAnswer = 16 << 20

// startSession starts a provider process and connects to it. If it fails, the process is gone.
func startSession(ctx context.Context, l sessionOptions) (*session, error) {
	s := &session{
		wanted:    l.wanted,
		startedAt: time.Now(),
		stderr:    &stderrLog{LineWriter: text.LineWriter{Max: maxLine}, log: l.log},
	}

	s.stderr.Emit = s.stderr.logLine
	s.process = &childProcess{path: l.path, exited: make(chan struct{}), stderrDone: make(chan struct{})}

	s.plugin = goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  handshake(),
		Plugins:          goplugin.PluginSet{service: &grpcPlugin{}},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		StartTimeout:     l.timeout,
		Stderr:           s.stderr,
		SyncStdout:       s.stderr,
		SyncStderr:       s.stderr,
		Logger:           hclog.NewNullLogger(),
		SkipHostEnv:      true,
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: l.sockets},
		// go-plugin itself takes 2 GiB.
		GRPCDialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer))},
		RunnerFunc:      s.newRunner,
	})

	err := s.connect(ctx, l.timeout)
	if err != nil {
		s.close()
		return nil, err
	}

	return s, nil
}

func (s *session) newRunner(_ hclog.Logger, spec *exec.Cmd, sockets string) (runner.Runner, error) {
	s.process.socketFolder = sockets
	s.process.env = append(childenv.New(os.Environ(), childenv.Provider), spec.Env...)
	return s.process, nil
}

// connect waits for the provider's process to begin, and configures it.
func (s *session) connect(ctx context.Context, limit time.Duration) error {
	release := context.AfterFunc(ctx, func() { _ = s.process.Kill(ctx) })
	defer release()

	link, err := s.plugin.Client()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return s.explainStart(err, limit)
	}

	s.conn = link.(*goplugin.GRPCClient)
	raw, err := s.conn.Dispense(service)
	if err != nil {
		return err
	}

	s.client = raw.(protocol.ProviderClient)
	limited, cancel := limitCall(ctx, limit)
	defer cancel()
	if _, err := s.client.Configure(limited, environmentToProto(s.wanted.Environment)); err != nil {
		return s.explainCall(ctx, limited, err)
	}

	// Without the socket's directory nobody else can connect, and nothing is left if both processes are killed.
	return os.RemoveAll(s.process.socketFolder)
}

// explainStart returns a readable error for the plugin library's, which has no types.
func (s *session) explainStart(err error, limit time.Duration) error {
	if s.process.ID() == "" {
		return fmt.Errorf("cannot start its executable: %w", err)
	}

	last := s.lastOutput()
	why := strings.ToLower(strings.ReplaceAll(err.Error(), "\n", "; "))

	switch {
	case strings.Contains(why, "timeout while waiting"):
		return fmt.Errorf("it did not begin within %s%s", limit, last)
	case strings.Contains(why, "incompatible"):
		return fmt.Errorf("it speaks a different version of the protocol (%s)", why)
	case strings.Contains(why, "exited before"), strings.Contains(why, "failed to read any lines"):
		select {
		case <-s.process.exited:
			return fmt.Errorf("it ended at its start (%s)%s", s.exitReason(), last)
		case <-time.After(drainTimeout): // it has closed its stdout, and lives
		}
	}

	return fmt.Errorf("it does not speak the providers' protocol (%s)%s", why, last)
}

func (s *session) hasEnded() bool { return s.process.killed.Load() || s.process.hasExited() }

func (s *session) exitReason() string {
	switch {
	case !s.process.hasExited():
		return "killed"
	case s.process.exitErr == nil:
		return "exit status 0"
	}

	return s.process.exitErr.Error()
}

// explainCall returns the error of a call in the provider's words. limited is the context that the call was
// given. It kills a process that does not answer or cannot be reached.
func (s *session) explainCall(ctx, limited context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		_ = s.process.Kill(ctx)
		return s.transientError("it does not answer")
	case status.Code(err) != codes.Unavailable: // which the connection itself says, too
		return statusToError(err)
	}

	select {
	case <-s.process.exited:
		return s.transientError(fmt.Sprintf("it ended unexpectedly (%s)", s.exitReason()))
	case <-time.After(drainTimeout):
	}

	if s.conn.Conn.GetState() == connectivity.Ready {
		return statusToError(err)
	}

	_ = s.process.Kill(ctx)
	return s.transientError("its connection broke")
}

func (s *session) transientError(what string) error {
	return &providerError{what + s.lastOutput(), provider.ErrTransient}
}

// lastOutput returns a clause with the last line of the process's stderr. If the process is about to end,
// it waits a moment for that.
func (s *session) lastOutput() string {
	select {
	case <-s.process.stderrDone:
	case <-time.After(drainTimeout):
	}
	return s.stderr.errorSuffix()
}

// stopTimeout bounds the end of a process that was told to end.
const stopTimeout = 5 * time.Second

func (s *session) close() {
	killTimer := time.AfterFunc(stopTimeout, func() { _ = s.process.Kill(context.Background()) })
	defer killTimer.Stop()
	s.plugin.Kill()
	s.process.close()
	_ = os.RemoveAll(s.process.socketFolder)
}
