package agents

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/multicall/home"
	"bijou/provision/provider"
	"bijou/state"
	"bijou/state/keys"
	"bijou/state/store/sqlite"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/statetest"
)

// confinedWorld is an environment whose machines cannot reach the store.
type confinedWorld struct {
	*testing.T
	env   home.Environment
	state *state.State
}

func newConfinedWorld(t *testing.T, config map[string]string) *confinedWorld {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "state.db")
	w := &confinedWorld{T: t, env: home.Environment{Dir: dir, Record: home.Record{
		Name: "a", UUID: "u", Provider: "nspawn", Tools: "1-a", State: "sqlite:" + file,
	}}}
	w.ok(w.env.Save())
	w.ok(sqlite.Create(t.Context(), file))
	w.ok(state.Create(t.Context(), w.env.State, state.Environment{Name: "a", UUID: "u", Provider: "nspawn", DefaultSeries: "noble", Config: config}))
	var err error
	w.state, err = state.Open(t.Context(), w.env.State)
	w.ok(err)
	t.Cleanup(func() { w.state.Close() })
	return w
}

func (w *confinedWorld) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// serve runs the role until stop is called.
func (w *confinedWorld) serve() (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error)
	go func() { done <- newGatewayRole(w.state, w.env)(ctx) }()
	return func() {
		cancel()
		w.ok(<-done)
	}
}

func (w *confinedWorld) addMachine() (id string) {
	w.Helper()
	statetest.Update(w, w.state, func(tx *state.Tx) error {
		m, err := tx.AddMachine(state.Machine{Series: "noble", Jobs: []string{state.JobUnits}})
		id = m.ID
		return err
	})
	return id
}

// awaitSocket waits until the machine has a socket, or until it has none.
func (w *confinedWorld) awaitSocket(id string, there bool) {
	w.Helper()
	await.Until(w, await.Poll{Limit: time.Minute}, "the socket of machine "+id, func() bool {
		_, err := os.Lstat(provider.GatewaySocket(w.env.Dir, id))
		return there == (err == nil)
	})
}

// TestMachinesHaveTheirSockets checks a machine's socket from the machine's creation to its removal.
func TestMachinesHaveTheirSockets(t *testing.T) {
	w := newConfinedWorld(t, map[string]string{"nspawn.confined": "true"})
	stop := w.serve()
	id := w.addMachine()
	w.awaitSocket(id, true)
	s, err := state.Open(t.Context(), provider.GatewayURL(w.env.Dir, id))
	w.ok(err)
	defer s.Close()
	session, err := s.NewSession(t.Context())
	w.ok(err)
	w.ok(state.Announce(t.Context(), session, s.Update, state.MachineAgent(id)))
	isPresent := func() bool {
		return statetest.Read(t, w.state, func(v *state.View) (bool, error) { return v.IsPresent(state.MachineAgent(id)) })
	}
	if !isPresent() {
		t.Fatal("the machine's agent is not announced")
	}

	stop() // a different process then continues the session
	stop = w.serve()
	statetest.Update(t, s, func(tx *state.Tx) error { return tx.SetMachineStatus(id, state.MachineRunning, "") })
	select {
	case <-session.Done():
		t.Error("the session has ended with the process that served it")
	default:
	}
	if !isPresent() {
		t.Error("the presence has ended with the process that served it")
	}

	statetest.Update(t, w.state, func(tx *state.Tx) error {
		return tx.DestroyMachine(id)
	})
	w.awaitSocket(id, false)
	if isPresent() {
		t.Error("a machine that is gone is still present")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.View(ctx, func(v *state.View) error { _, err := v.Environment(); return err }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	stop()
}

// TestSocketsAreHeldToTheTable checks the rights of clients: it checks that a machine's socket refuses
// changes of records that are not the machine's.
func TestSocketsAreHeldToTheTable(t *testing.T) {
	w := newConfinedWorld(t, map[string]string{"nspawn.confined": "true"})
	stop := w.serve()
	own, other := w.addMachine(), w.addMachine()
	w.awaitSocket(own, true)
	s, err := state.Open(t.Context(), provider.GatewayURL(w.env.Dir, own))
	w.ok(err)
	defer s.Close()

	statetest.Update(t, s, func(tx *state.Tx) error { return tx.SetMachineStatus(own, state.MachineRunning, "") })
	for name, f := range map[string]func(tx *state.Tx) error{
		"another's status": func(tx *state.Tx) error { return tx.SetMachineStatus(other, state.MachineRunning, "") },
		"a setting": func(tx *state.Tx) error {
			v := "false"
			return tx.SetEnvironment(map[string]*string{"nspawn.confined": &v})
		},
		"a machine": func(tx *state.Tx) error {
			_, err := tx.AddMachine(state.Machine{Series: "noble", Jobs: []string{state.JobUnits}})
			return err
		},
	} {
		if err := s.Update(t.Context(), f); !errors.Is(err, state.ErrDenied) {
			t.Errorf("%s: got %v", name, err)
		}
	}

	record, err := home.Load(provider.GatewayDir(w.env.Dir, own))
	w.ok(err)
	if record.State != provider.GatewayURL(w.env.Dir, own) || record.Tools != "1-a" {
		t.Errorf("the machine's record is %+v", record.Record)
	}
	stop()
}

// TestRemovedMachineIsShutOut checks that a machine's connections end when it is removed, and that no new one is served.
func TestRemovedMachineIsShutOut(t *testing.T) {
	w := newConfinedWorld(t, map[string]string{"nspawn.confined": "true"})
	stop := w.serve()
	id := w.addMachine()
	w.awaitSocket(id, true)
	s, err := state.Open(t.Context(), provider.GatewayURL(w.env.Dir, id))
	w.ok(err)
	defer s.Close()
	session, err := s.NewSession(t.Context())
	w.ok(err)
	w.ok(state.Announce(t.Context(), session, s.Update, state.MachineAgent(id)))
	kept, err := net.Dial("unix", provider.GatewaySocket(w.env.Dir, id)) // a connection without a client, on which nothing has been sent yet
	w.ok(err)
	defer kept.Close()

	statetest.Update(t, w.state, func(tx *state.Tx) error { return tx.DestroyMachine(id) })
	w.awaitSocket(id, false)
	if _, err := io.Copy(io.Discard, kept); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a connection that stood: %v", err)
	}
	if _, err := net.Dial("unix", provider.GatewaySocket(w.env.Dir, id)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a new connection: %v", err)
	}

	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err = state.Announce(short, session, s.Update, state.MachineAgent(id))
	if err == nil || statetest.Read(t, w.state, func(v *state.View) (bool, error) { return v.IsPresent(state.MachineAgent(id)) }) {
		t.Errorf("a replay has announced an agent: %v", err)
	}
	stop()
}

// TestDeadMachineIsShutOut checks that a machine whose instance cannot be stopped has no socket any more.
func TestDeadMachineIsShutOut(t *testing.T) {
	w := newConfinedWorld(t, map[string]string{"nspawn.confined": "true"})
	id := w.addMachine()
	statetest.Update(t, w.state, func(tx *state.Tx) error { return tx.SetInstance(id, "i", state.Addresses{}) })
	defer w.serve()()
	w.awaitSocket(id, true)

	w.ok(w.state.DestroyMachine(t.Context(), id, true))
	w.awaitSocket(id, false)
	statetest.View(t, w.state, func(v *state.View) error {
		m, err := v.Machine(id)
		if m.Life != state.Dead {
			t.Errorf("the machine is %s", m.Life)
		}
		return err
	})
}

// TestSocketsAreForConfinedMachines checks that machines have no sockets by default, and that a machine that
// was started with a socket keeps it.
func TestSocketsAreForConfinedMachines(t *testing.T) {
	w := newConfinedWorld(t, nil)
	first, second := w.addMachine(), w.addMachine()
	w.ok(os.MkdirAll(provider.GatewayDir(w.env.Dir, first), 0o700))
	w.ok(os.MkdirAll(provider.GatewayDir(w.env.Dir, "77"), 0o700)) // the directory of a machine that was removed while no gateway ran
	defer w.serve()()
	w.awaitSocket(first, true)
	await.Until(t, await.Poll{Limit: time.Minute}, "what was left is removed", func() bool {
		_, err := os.Lstat(provider.GatewayDir(w.env.Dir, "77"))
		return errors.Is(err, fs.ErrNotExist)
	})
	if _, err := os.Lstat(provider.GatewayDir(w.env.Dir, second)); err == nil {
		t.Error("a machine that is not confined has a socket")
	}

	yes := "true"
	statetest.Update(t, w.state, func(tx *state.Tx) error {
		return tx.SetEnvironment(map[string]*string{"nspawn.confined": &yes})
	})
	w.awaitSocket(second, true)
}

// TestOnlyTheStoresProcessServesIt checks that a machine that reaches the state through a gateway does
// not run a gateway itself.
func TestOnlyTheStoresProcessServesIt(t *testing.T) {
	for _, url := range []string{"bijou+unix:///run/socket", "etcd://h:1/x"} {
		if newGatewayRole(nil, home.Environment{Dir: "/x", Record: home.Record{State: url}}) != nil {
			t.Errorf("%s is served", strings.SplitN(url, ":", 2)[0])
		}
	}
}

// TestDamagedMachineKeepsItsSocket checks that only machines that are dead or gone lose their sockets, and not a
// machine whose record does not decode.
func TestDamagedMachineKeepsItsSocket(t *testing.T) {
	st := statetest.New(t)
	statetest.Update(t, st, func(tx *state.Tx) error {
		return errors.Join(
			tx.Keys().Put(keys.Machine("1"), state.Machine{Life: state.Alive}),
			tx.Keys().Put(keys.Machine("2"), "no record"),
			tx.Keys().Put(keys.Machine("3"), state.Machine{Life: state.Dead}),
		)
	})

	w := statetest.Read(t, st, readWanted)
	if diff := cmp.Diff([]string{"1", "2"}, w.machines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
