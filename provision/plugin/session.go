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

// session is a running process of a provider, configured for its environment.
type session struct {
	wanted    Wanted
	plugin    *goplugin.Client
	process   *childProcess
	stderr    *stderrLog
	conn      *goplugin.GRPCClient
	client    protocol.ProviderClient
	startedAt time.Time
	calls     sync.WaitGroup // the running calls
}

// sessionOptions describe the process of a session.
type sessionOptions struct {
	path    string
	wanted  Wanted
	sockets string
	timeout time.Duration // limits the start of the process, and the call of Configure
	log     *slog.Logger
}

// maxAnswer limits one answer from a provider, in bytes. That is enough for more than ten thousand instances.
const maxAnswer = 16 << 20

// startSession starts a provider process and connects to it. If startSession fails, the process has ended
// when it returns.
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
		// go-plugin's own limit is 2 GiB.
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

// connect waits for the provider's process to start, and configures it.
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

	// The connection does not need the socket's directory any longer. Once the directory is removed, nobody
	// else can connect, and no files are left if both processes are killed.
	return os.RemoveAll(s.process.socketFolder)
}

// explainStart returns a readable error for an error of go-plugin, which has no error types.
func (s *session) explainStart(err error, limit time.Duration) error {
	if s.process.ID() == "" {
		return fmt.Errorf("cannot start the provider's executable: %w", err)
	}

	last := s.lastOutput()
	why := strings.ToLower(strings.ReplaceAll(err.Error(), "\n", "; "))

	switch {
	case strings.Contains(why, "timeout while waiting"):
		return fmt.Errorf("the provider did not start within %s%s", limit, last)
	case strings.Contains(why, "incompatible"):
		return fmt.Errorf("the provider uses a different version of the protocol (%s)", why)
	case strings.Contains(why, "exited before"), strings.Contains(why, "failed to read any lines"):
		select {
		case <-s.process.exited:
			return fmt.Errorf("the provider ended while it was starting (%s)%s", s.exitReason(), last)
		case <-time.After(drainTimeout):
			// The process has closed its stdout, and is still running.
		}
	}

	return fmt.Errorf("the program does not use the protocol of providers (%s)%s", why, last)
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

// explainCall returns the provider's error for the error of a call. limited is the context of the call. If
// the process does not answer or the connection is broken, explainCall kills the process.
func (s *session) explainCall(ctx, limited context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		_ = s.process.Kill(ctx)
		return s.transientError("the provider does not answer")
	case status.Code(err) != codes.Unavailable:
		// Only Unavailable can also mean that the connection is broken.
		return statusToError(err)
	}

	select {
	case <-s.process.exited:
		return s.transientError(fmt.Sprintf("the provider ended unexpectedly (%s)", s.exitReason()))
	case <-time.After(drainTimeout):
	}

	if s.conn.Conn.GetState() == connectivity.Ready {
		return statusToError(err)
	}

	_ = s.process.Kill(ctx)
	return s.transientError("the connection to the provider broke")
}

func (s *session) transientError(what string) error {
	return &providerError{what + s.lastOutput(), provider.ErrTransient}
}

// lastOutput returns a clause with the last line of the process's stderr. It waits a moment for stderr to be
// read to its end.
func (s *session) lastOutput() string {
	select {
	case <-s.process.stderrDone:
	case <-time.After(drainTimeout):
	}
	return s.stderr.errorSuffix()
}

// stopTimeout is how long a process can take to end before it is killed.
const stopTimeout = 5 * time.Second

func (s *session) close() {
	killTimer := time.AfterFunc(stopTimeout, func() { _ = s.process.Kill(context.Background()) })
	defer killTimer.Stop()
	s.plugin.Kill()
	s.process.close()
	_ = os.RemoveAll(s.process.socketFolder)
}
