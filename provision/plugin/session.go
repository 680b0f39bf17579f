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
	path    string // the executable
	wanted  Wanted
	sockets string        // the directory for the process's socket
	timeout time.Duration // limits the start of the process, and the call of Configure
	log     *slog.Logger
}

// maxAnswer limits one answer from a provider, in bytes. That is enough for more than ten thousand instances.
const maxAnswer = 16 << 20

// startSession starts a provider process, connects to it and configures it. If it returns an error, no process
// is left.
func startSession(ctx context.Context, o sessionOptions) (*session, error) {
	s := &session{
		wanted:    o.wanted,
		startedAt: time.Now(),
		stderr:    &stderrLog{LineWriter: text.LineWriter{Max: maxLine}, log: o.log},
	}

	s.stderr.Emit = s.stderr.logLine
	s.process = &childProcess{path: o.path, exited: make(chan struct{}), stderrDone: make(chan struct{})}

	s.plugin = goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  handshake(),
		Plugins:          goplugin.PluginSet{service: &grpcPlugin{}},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		StartTimeout:     o.timeout,
		// The log gets the process's stderr, and the output that go-plugin sends over the connection.
		Stderr:           s.stderr,
		SyncStdout:       s.stderr,
		SyncStderr:       s.stderr,
		Logger:           hclog.NewNullLogger(),
		SkipHostEnv:      true,
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: o.sockets},
		// go-plugin's own limit is 2 GiB.
		GRPCDialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer))},
		RunnerFunc:      s.newRunner,
	})

	err := s.connect(ctx, o.timeout)
	if err != nil {
		s.close()
		return nil, err
	}

	return s, nil
}

// newRunner returns the session's process for go-plugin, which then starts it. The argument spec contains the
// variables of go-plugin's handshake. The argument sockets is the directory that go-plugin has created for
// the process's socket.
func (s *session) newRunner(_ hclog.Logger, spec *exec.Cmd, sockets string) (runner.Runner, error) {
	s.process.socketFolder = sockets
	s.process.env = append(childenv.New(os.Environ(), childenv.Provider), spec.Env...)
	return s.process, nil
}

// connect starts the provider's process, connects to it and configures it. The start and the configuration can
// each take as long as limit. Until connect returns, the end of ctx kills the process.
func (s *session) connect(ctx context.Context, limit time.Duration) error {
	stopWatching := context.AfterFunc(ctx, func() { _ = s.process.Kill(ctx) })
	defer stopWatching()

	conn, err := s.plugin.Client()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return s.explainStart(err, limit)
	}

	s.conn = conn.(*goplugin.GRPCClient)
	client, err := s.conn.Dispense(service)
	if err != nil {
		return err
	}

	s.client = client.(protocol.ProviderClient)
	limited, cancel := limitCall(ctx, limit)
	defer cancel()
	if _, err := s.client.Configure(limited, environmentToProto(s.wanted.Environment)); err != nil {
		return s.explainCall(ctx, limited, err)
	}

	// The connection no longer needs the socket's directory. Once the directory is removed, nobody else can
	// connect, and no files are left if both processes are killed.
	return os.RemoveAll(s.process.socketFolder)
}

// explainStart returns a readable error for go-plugin's error about a start that has failed. It reads the text
// of that error, since go-plugin has no error types.
func (s *session) explainStart(err error, limit time.Duration) error {
	if s.process.ID() == "" {
		return fmt.Errorf("cannot start the provider's executable: %w", err)
	}

	output := s.lastOutput()
	why := strings.ToLower(strings.ReplaceAll(err.Error(), "\n", "; "))

	switch {
	case strings.Contains(why, "timeout while waiting"):
		return fmt.Errorf("the provider did not start within %s%s", limit, output)
	case strings.Contains(why, "incompatible"):
		return fmt.Errorf("the provider uses a different version of the protocol (%s)", why)
	case strings.Contains(why, "exited before"), strings.Contains(why, "failed to read any lines"):
		select {
		case <-s.process.exited:
			return fmt.Errorf("the provider ended while it was starting (%s)%s", s.exitReason(), output)
		case <-time.After(drainTimeout):
			// The process has only closed its stdout, and is still running.
		}
	}

	return fmt.Errorf("the program does not use the protocol of providers (%s)%s", why, output)
}

// hasEnded reports whether the process has exited, or was killed and is about to exit.
func (s *session) hasEnded() bool { return s.process.killed.Load() || s.process.hasExited() }

// exitReason returns the reason why the process has ended, for an error message.
func (s *session) exitReason() string {
	if !s.process.hasExited() {
		// The process was killed, and has not exited yet.
		return "killed"
	}
	if s.process.exitErr == nil {
		return "exit status 0"
	}

	return s.process.exitErr.Error()
}

// explainCall returns the provider's own error for err, the result of a call in gRPC. It returns nil for nil.
// The argument limited is the context of the call, which ends with ctx or after a timeout. If ctx is done,
// explainCall returns its error. If the call has failed because the process has exited, does not answer, or
// has lost its connection, explainCall returns a transient error. It then also kills a process that may still
// be running.
func (s *session) explainCall(ctx, limited context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}

	timedOut := limited.Err() != nil
	if timedOut {
		_ = s.process.Kill(ctx)
		return s.transientError("the provider does not answer")
	}
	if status.Code(err) != codes.Unavailable {
		return statusToError(err)
	}

	// Unavailable can mean that the process has exited or that the connection is broken. It can also be the
	// provider's own answer, over a connection that works.
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

// transientError returns an error that wraps provider.ErrTransient. It adds the process's last output.
func (s *session) transientError(what string) error {
	return &providerError{what + s.lastOutput(), provider.ErrTransient}
}

// lastOutput returns a clause for the end of an error message, with the line that s.stderr has kept of the process's
// output. It returns "" if there is no line. It waits up to drainTimeout for the end of stderr.
func (s *session) lastOutput() string {
	select {
	case <-s.process.stderrDone:
	case <-time.After(drainTimeout):
	}
	return s.stderr.errorSuffix()
}

// stopTimeout is how long close waits at most before it kills the process.
const stopTimeout = 5 * time.Second

// close ends the process, waits until the process has exited, and removes the directory of its socket.
func (s *session) close() {
	// go-plugin asks a connected process to end, and kills it if it has not ended shortly after its answer. The
	// timer is for a process that does not answer.
	killTimer := time.AfterFunc(stopTimeout, func() { _ = s.process.Kill(context.Background()) })
	defer killTimer.Stop()
	s.plugin.Kill()
	s.process.close()
	_ = os.RemoveAll(s.process.socketFolder)
}
