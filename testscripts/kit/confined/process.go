package confined

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/gateway"
	"bijou/state/secret/keyfile"
	"bijou/testscripts/kit/accessed"
)

// Program is the name under which a test binary is a gateway: its suite passes [Serve] to applets.MainWith.
const Program = "test-gateway"

// SocketVariable names the socket of a gateway in a different process. If it and [Variable] are set, the
// agents of a test binary reach their state through that gateway.
const SocketVariable = "BIJOU_TEST_GATEWAY"

// machine is the machine whose agents a [Gateway] serves.
const machine = "0"

// Gateway is a gateway in a separate process, as the process of machine 0 is for the other machines. It
// serves the agents of machine 0 and grants them only the rights in the table of state/access. A test can
// kill it, stop it for a while, and restart it.
type Gateway struct {
	t    testing.TB
	dir  string   // of the socket and the recorded refusals
	args []string // of the process

	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// NewGateway starts a gateway in front of the state at the URL, for the environment in a directory. The state
// and the directory need not exist yet: the gateway begins to serve once the state exists. It ends with the
// test, after the cleanup of everything that the test has started later.
func NewGateway(t testing.TB, stateURL, env string) *Gateway {
	t.Helper()
	dir := t.TempDir()
	g := &Gateway{t: t, dir: dir, args: []string{stateURL, env, filepath.Join(dir, "socket")}}
	t.Cleanup(g.Kill)
	g.spawn()
	return g
}

// Vars returns the environment variables for agents that the gateway serves.
func (g *Gateway) Vars() []string {
	return []string{Variable + "=" + g.dir, SocketVariable + "=" + g.args[2]}
}

// Start starts the gateway after Kill, and waits until it serves.
func (g *Gateway) Start() {
	g.t.Helper()
	g.spawn()
	g.AwaitReady()
}

func (g *Gateway) spawn() {
	g.t.Helper()
	g.cmd = exec.Command(Program, g.args...)
	g.cmd.Stderr = os.Stderr
	in, err := g.cmd.StdinPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	if err := g.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}

	g.in, g.out = in, bufio.NewReader(out)
}

// AwaitReady waits until the gateway that NewGateway has started begins to serve.
func (g *Gateway) AwaitReady() {
	g.t.Helper()
	line, err := g.out.ReadString('\n')
	if line != ready+"\n" {
		g.t.Fatalf("the gateway says %q, %v", line, err)
	}
}

// Drain ends all connections, and waits until the gateway has completed all their requests. If an agent has
// died before, none of its requests changes the state after Drain.
func (g *Gateway) Drain() {
	g.t.Helper()
	if _, err := io.WriteString(g.in, "drain\n"); err != nil {
		g.t.Fatal(err)
	}
	g.AwaitReady()
}

// Kill kills the gateway with SIGKILL, and waits for its end.
func (g *Gateway) Kill() {
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
}

// Hang suspends the gateway until Resume.
func (g *Gateway) Hang() { g.signal(syscall.SIGSTOP) }

// Resume continues the gateway after Hang.
func (g *Gateway) Resume() { g.signal(syscall.SIGCONT) }

func (g *Gateway) signal(s syscall.Signal) {
	g.t.Helper()
	if err := g.cmd.Process.Signal(s); err != nil {
		g.t.Fatal(err)
	}
}

// Refused returns the refusals that agents got from the gateway, each once.
func (g *Gateway) Refused() []string {
	g.t.Helper()
	refused, err := accessed.Refused(g.dir)
	if err != nil {
		g.t.Fatal(err)
	}
	return refused
}

// ready is the line that a gateway prints once it serves.
const ready = "ready"

// Serve is the program that a [Gateway] runs. It serves until its input ends. At each line of input it
// drains.
func Serve() {
	if err := serve(os.Args[1], os.Args[2], os.Args[3], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, Program+":", err)
		os.Exit(1)
	}
}

func serve(stateURL, env, socket string, orders io.Reader) error {
	s, err := openOnceMade(stateURL)
	if err != nil {
		return err
	}
	defer s.Close()

	g, err := gateway.New(s.Store(), gateway.Table{})
	if err != nil {
		return err
	}
	g.ServeSecrets(keyfile.In(env))

	order := bufio.NewReader(orders)
	for {
		e, err := g.Listen(gateway.Agent(machine), socket)
		if err != nil {
			return err
		}
		fmt.Println(ready)

		_, err = order.ReadString('\n')
		e.Close()
		if err != nil { // the input has ended
			return nil
		}
	}
}

// openOnceMade opens the state. It waits while the state does not exist yet, or its store is away.
func openOnceMade(url string) (*state.State, error) {
	for {
		s, err := state.Open(context.Background(), url)
		if !errors.Is(err, state.ErrNoStore) && !errors.Is(err, state.ErrFormat) && !errors.Is(err, state.ErrAway) {
			return s, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}
