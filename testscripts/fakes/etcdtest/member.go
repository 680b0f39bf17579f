package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Member is one server. Several goroutines can call its methods.
type Member struct {
	name    string
	binary  string
	args    []string
	cluster *Cluster

	mu   sync.Mutex
	cmd  *exec.Cmd
	gone chan struct{} // closed when cmd has ended
}

// Socket returns the path of the member's client socket.
func (m *Member) Socket() string { return m.path(m.name + ":1") }

// The URLs contain sockets in the form of host and port, relative to the members' working directory, because
// etcd's flags do not accept paths.
func (m *Member) clientURL() string { return "unix://" + m.name + ":1" }
func (m *Member) peerURL() string   { return "unix://" + m.name + ":2" }

func (m *Member) flags(o Options) []string {
	flags := []string{
		"--name=" + m.name, "--data-dir=" + m.name + ".data", "--log-level=error",
		"--listen-client-urls=" + m.clientURL(), "--advertise-client-urls=" + m.clientURL(),
		"--listen-peer-urls=" + m.peerURL(), "--initial-advertise-peer-urls=" + m.peerURL(),
		"--initial-cluster=" + m.cluster.peers(), "--initial-cluster-state=new",
	}
	if !o.Sync {
		flags = append(flags, "--unsafe-no-fsync")
	}
	return append(flags, o.Flags...)
}

// Start starts a member that was killed, with its existing data. It returns when the member answers, which
// requires a quorum.
func (m *Member) Start() error {
	if err := m.spawn(); err != nil {
		return err
	}
	return m.Ready()
}

func (m *Member) spawn() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd != nil {
		return fmt.Errorf("cannot start member %s: it runs", m.name)
	}
	for _, socket := range []string{m.Socket(), m.path(m.name + ":2")} {
		if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	log, err := os.OpenFile(m.path(m.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(m.binary, m.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = m.cluster.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.cluster.keeper.start(cmd); err != nil {
		return fmt.Errorf("cannot start member %s: %w", m.name, err)
	}
	m.cmd, m.gone = cmd, make(chan struct{})
	go func(gone chan struct{}) {
		// Wait returns an error, since the member is killed.
		_ = cmd.Wait()
		close(gone)
	}(m.gone)
	return nil
}

// Kill ends the member as kill -9 does. It is idempotent.
func (m *Member) Kill() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd == nil {
		return nil
	}
	err := m.cmd.Process.Kill()
	<-m.gone
	m.cmd = nil
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Pause stops the member's process. The process keeps its sockets and connections, and answers nothing.
func (m *Member) Pause() error { return m.signal(syscall.SIGSTOP) }

// Resume continues a paused member.
func (m *Member) Resume() error { return m.signal(syscall.SIGCONT) }

func (m *Member) signal(s syscall.Signal) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd == nil {
		return fmt.Errorf("cannot signal member %s: it does not run", m.name)
	}
	return m.cmd.Process.Signal(s)
}

// readyLimit is many times longer than a member's start on a busy machine.
const readyLimit = 2 * time.Minute

// Ready waits until the member is healthy: it answers, and knows a leader.
func (m *Member) Ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyLimit)
	defer cancel()
	for {
		err := m.healthy(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(m.path(m.name + ".log"))
			return fmt.Errorf("member %s is not ready: %w\n%s", m.name, err, log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// healthy requests the server's own health page over its socket.
func (m *Member) healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://etcd/health", nil)
	if err != nil {
		return err
	}
	resp, err := m.transport().RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if !strings.Contains(string(body), `"health":"true"`) {
		return fmt.Errorf("it says %s", body)
	}
	return nil
}
